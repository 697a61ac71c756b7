//! One look at one autoscaler: what is recommended, what is done, and why not.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::resources::VERTICAL_POD_AUTOSCALERS;
use corten_meta::{Key, Selector, Time};
use corten_reconcile::{
    Actor, ApiPath, Condition, EFFECTS_MAX, Effect, EventType, Failure, Plan, View, Wait, reference,
    status::status_patch,
};
use serde::Deserialize;
use serde_json::json;

use super::{
    memory::{Memory, Refused},
    node::MeasuredNode,
    peak,
    pod::{Obstacle, ResizedPod},
    spec::{Autoscaler, Recommendation, Status},
};
use crate::{
    horizontal_pod_autoscaler::measured::{UsageOfPod, Usages, resource_path, unfetched, usages_by_name},
    target::{Target, target},
};

const RESOURCES: [&str; 2] = ["cpu", "memory"];
/// So many containers are recommended for: a Pod may have thousands, and their names may change with every Pod.
const CONTAINERS_MAX: usize = 100;

/// By container and resource the most that one container of that name has used.
type MostUsed = BTreeMap<(String, &'static str), i64>;

pub(super) struct Round<'a> {
    view: &'a View,
    scaler: &'a Autoscaler,
    key: &'a Key,
    now: Time,
    /// As it was remembered, and as it is to be.
    remembered: Memory,
    memory: Memory,
    status: Status,
    /// Events of what was found, before anything is done.
    found: Vec<Effect>,
    resizes: Vec<Effect>,
    waits: Vec<Wait>,
}

impl<'a> Round<'a> {
    pub(super) fn new(view: &'a View, scaler: &'a Autoscaler, key: &'a Key, now: Time) -> Self {
        let mut status = scaler.status.clone();
        status.observed_generation = Some(scaler.metadata.generation);
        let remembered = view.note(key).and_then(|it| Memory::deserialize(it).ok()).unwrap_or_default();
        let (memory, found, resizes, waits) = (remembered.clone(), Vec::new(), Vec::new(), Vec::new());
        Self { view, scaler, key, now, remembered, memory, status, found, resizes, waits }
    }

    /// What must be fetched first is the error.
    pub(super) fn run(&mut self) -> Result<(), ApiPath> {
        self.memory.is_status_refused = false;
        let to = &self.scaler.spec.target_ref;
        match target(self.view, self.key, to)? {
            Err(why) => {
                let message = format!("the target's scale cannot be read: {why}");
                self.has_no_target("FailedGetScale", &message);
                self.waits.push(Wait::new("FailedGetScale", message, Actor::Author).on(&to.kind, &to.name));
            }
            Ok(Target { scale, .. }) => match Selector::parse(&scale.status.selector) {
                Ok(selector) if !scale.status.selector.is_empty() => self.measure(&scale.status.selector, &selector)?,
                _ => {
                    let message = "the target's scale has no selector of Pods that can be read";
                    self.has_no_target("InvalidSelector", message);
                    self.waits.push(Wait::new("InvalidSelector", message, Actor::Author));
                }
            },
        }
        Ok(())
    }

    fn measure(&mut self, text: &str, selector: &Selector) -> Result<(), ApiPath> {
        text.clone_into(&mut self.memory.selector);
        let all = self.view.in_namespace::<ResizedPod>(&self.key.namespace);
        let pods: Vec<&ResizedPod> =
            all.filter(|it| it.is_running() && selector.matches(&it.metadata.labels)).collect();
        self.status.pods = i64::try_from(pods.len()).unwrap_or(i64::MAX);
        let path = resource_path(&self.key.namespace, text);
        let used = match self.view.fetched(self.key, &path) {
            None => return Err(path),
            Some(Err(why)) => Err(unfetched(&path, why)),
            Some(Ok(body)) => usages_by_name(body).and_then(readable),
        };
        match used {
            Err(why) => {
                let message = format!("what the Pods use cannot be read: {why}");
                self.not_recommended("FailedGetResourceMetric", &message);
                self.waits.push(Wait::new("FailedGetResourceMetric", message, Actor::Operator));
            }
            Ok(used) => {
                let most = self.most_used(&pods, &used);
                self.recommend(&pods, most);
                self.apply(&pods);
            }
        }
        Ok(())
    }

    /// What others say of containers that no Pod has, and uses that no node can have seen, count for nothing.
    fn most_used(&mut self, pods: &[&ResizedPod], used: &[UsageOfPod]) -> MostUsed {
        let by_name: BTreeMap<&str, &ResizedPod> = pods.iter().map(|it| (&*it.metadata.name, *it)).collect();
        let mut most = MostUsed::new();
        let mut implausible = None;
        for (pod, of_pod) in used.iter().filter_map(|it| Some((by_name.get(&*it.metadata.name)?, it))) {
            let node = self.view.get::<MeasuredNode>(&pod.node());
            let containers: BTreeSet<&str> = pod.containers().collect();
            for container in of_pod.containers.iter().filter(|it| containers.contains(&*it.name)) {
                for (resource, said) in RESOURCES.iter().filter_map(|it| Some((*it, container.usage.get(*it)?))) {
                    let used = peak::amount(resource, *said);
                    if node.is_some_and(|it| !it.can_have_used(resource, used)) {
                        implausible.get_or_insert((&container.name, &pod.metadata.name, resource, *said));
                        continue;
                    }
                    let most = most.entry((container.name.clone(), resource)).or_default();
                    *most = used.max(*most);
                }
            }
        }
        if let Some((container, pod, resource, said)) = implausible {
            let message = format!(
                "container {container} of pod {pod} is said to use {said} of {resource}, more than its node has: that is ignored"
            );
            self.waits.push(Wait::new("ImplausibleUse", message, Actor::Operator).on("Pod", pod));
        }
        most
    }

    /// Each container by the most that one of its kind has used. What nothing was seen of keeps its peak until that has faded away.
    fn recommend(&mut self, pods: &[&ResizedPod], most: MostUsed) {
        let containers: BTreeSet<&str> = pods.iter().flat_map(|it| it.containers()).collect();
        let mut peaks: BTreeMap<(String, String), (i64, Time)> = BTreeMap::new();
        for it in &self.scaler.status.recommendations {
            let peak = peak::amount(&it.resource, it.peak);
            peaks.insert((it.container.clone(), it.resource.clone()), (peak, it.peak_time));
        }
        for ((container, resource), used) in most {
            let key = (container, resource.to_owned());
            let seen = peak::after(peaks.get(&key).copied(), used, self.now.whole_seconds());
            peaks.insert(key, seen);
        }
        peaks.retain(|_, (peak, at)| *at == self.now.whole_seconds() || peak::faded(*peak, self.now.since(*at)) > 0);
        // Those of Pods that are no more go where there is not room for all.
        while peaks.len() > CONTAINERS_MAX * RESOURCES.len() {
            let of_none = peaks.keys().rfind(|it| !containers.contains(&*it.0));
            let Some(last) = of_none.or_else(|| peaks.keys().next_back()).cloned() else { break };
            peaks.remove(&last);
        }
        let spec = &self.scaler.spec;
        let recommended = |((container, resource), (peak, peak_time)): ((String, String), (i64, Time))| {
            let left = peak::faded(peak, self.now.since(peak_time));
            let wanted = peak::quantity(&resource, peak::target(&resource, left, spec.headroom_percent));
            let target = spec.within_bounds(&container, &resource, wanted);
            let peak = peak::quantity(&resource, peak);
            Recommendation { container, resource, peak, peak_time, target }
        };
        self.status.recommendations = peaks.into_iter().map(recommended).collect();
        if self.status.recommendations.is_empty() {
            let message = "nothing was measured of the Pods yet";
            self.not_recommended("NoUsage", message);
            if self.status.pods > 0 {
                self.waits.push(Wait::new("NoUsage", message, Actor::Cluster));
            }
        } else {
            self.set("RecommendationProvided", "True", "Measured", "by what the containers are seen to use");
        }
    }

    fn apply(&mut self, pods: &[&ResizedPod]) {
        if self.status.recommendations.is_empty() {
            return;
        }
        if self.scaler.spec.mode == "Off" {
            return self.set("Applied", "False", "Off", "the mode is Off: it recommends, and resizes nothing");
        }
        if pods.is_empty() {
            return self.set("Applied", "Unknown", "NoPods", "no Pod of the target runs");
        }
        if let Some(other) = self.stronger(pods) {
            let message = format!("its Pods are resized by the VerticalPodAutoscaler {other}, which is older");
            self.set("Applied", "False", "AmbiguousTarget", &message);
            self.waits.push(Wait::new("AmbiguousTarget", message, Actor::Author).on("VerticalPodAutoscaler", &other));
            return;
        }
        let mut obstacles = Vec::new();
        for pod in pods {
            let resizing = pod.resizing(&self.status.recommendations, self.now);
            self.resizes.extend(resizing.patch);
            let of_pod = resizing.obstacles.into_iter().chain(pod.infeasible());
            obstacles.extend(of_pod.map(|it| (&*pod.metadata.name, it)));
        }
        if let Some((pod, obstacle)) = obstacles.into_iter().next() {
            let wait = told(pod, obstacle);
            self.set("Applied", "False", &wait.reason.clone(), &wait.message.clone());
            self.waits.push(wait);
        } else if self.resizes.is_empty() {
            self.set("Applied", "True", "Resized", "all Pods ask for what is recommended, or nearly so");
        } else {
            let message = format!("{} of {} Pods are resized", self.resizes.len(), pods.len());
            self.set("Applied", "False", "Resizing", &message);
        }
        self.go_on_after_refused();
    }

    /// Of the autoscalers that would resize some of the same Pods one does it: the oldest.
    fn stronger(&self, pods: &[&ResizedPod]) -> Option<String> {
        let age = |it: &'a Autoscaler| (it.metadata.creation_timestamp, &it.metadata.name);
        let others = self.view.selecting(&self.key.namespace, pods.iter().map(|it| &it.metadata.labels)).into_iter();
        let others = others.filter(|it| *it != self.key).filter_map(|it| self.view.get::<Autoscaler>(it));
        let others = others.filter(|it| it.spec.mode != "Off" && !it.metadata.is_deleting());
        let oldest = others.min_by_key(|it| age(it)).filter(|it| age(it) < age(self.scaler));
        oldest.map(|it| it.metadata.name.clone())
    }

    /// What could not be written the last time.
    pub(super) fn tell_of(&mut self, failure: &Failure) {
        let Effect::StrategicPatch { key, .. } = &failure.effect else {
            self.warn("FailedUpdateStatus", failure.message.clone());
            self.status.clone_from(&self.scaler.status);
            self.memory.is_status_refused = true;
            return;
        };
        let message = format!("pod {} could not be resized: {}", key.name, failure.message);
        self.warn("FailedResize", message.clone());
        self.memory.refused = Some(Refused { pod: key.name.clone(), message });
        self.tell_of_refused();
    }

    /// The refused resize is tried once more, after all others.
    fn go_on_after_refused(&mut self) {
        let Some(refused) = &self.memory.refused else { return };
        let is_it = |it: &Effect| matches!(it, Effect::StrategicPatch { key, .. } if *key.name == refused.pod);
        if let Some(at) = self.resizes.iter().position(is_it) {
            self.resizes.rotate_left(at + 1);
            self.tell_of_refused();
        } else {
            self.memory.refused = None;
        }
    }

    fn tell_of_refused(&mut self) {
        let Some(Refused { pod, message }) = self.memory.refused.clone() else { return };
        self.set("Applied", "False", "FailedResize", &message);
        self.waits.push(Wait::new("FailedResize", message, Actor::Operator).on("Pod", &pod));
    }

    fn warn(&mut self, reason: &'static str, message: String) {
        let about = reference(self.scaler);
        self.found.push(Effect::Event { about, event_type: EventType::Warning, reason, message });
    }

    /// Nobody knows its Pods: it stands in no other's way.
    fn has_no_target(&mut self, reason: &str, message: &str) {
        self.memory.selector.clear();
        self.not_recommended(reason, message);
        if self.status.conditions.iter().any(|it| it.r#type == "Applied") {
            self.set("Applied", "Unknown", reason, message);
        }
    }

    fn not_recommended(&mut self, reason: &str, message: &str) {
        self.set("RecommendationProvided", "False", reason, message);
    }

    fn set(&mut self, kind: &str, holds: &str, reason: &str, message: &str) {
        let now = self.now.whole_seconds();
        Condition::set(&mut self.status.conditions, kind, holds, (reason, message), now);
    }

    pub(super) fn into_plan(mut self) -> Plan {
        let mut effects = self.found;
        if self.remembered != self.memory {
            effects.push(Effect::Remember { note: json!(self.memory) });
        }
        let meta = &self.scaler.metadata;
        let status = status_patch(VERTICAL_POD_AUTOSCALERS, meta, &self.scaler.status, &self.status);
        self.resizes.truncate(EFFECTS_MAX);
        if self.remembered.is_status_refused {
            effects.extend(self.resizes.into_iter().chain(status));
        } else {
            effects.extend(status.into_iter().chain(self.resizes));
        }
        Plan { effects, waits: self.waits, ..Plan::default() }
    }
}

/// Those that can be read, unless none can.
fn readable(usages: Usages) -> Result<Vec<UsageOfPod>, String> {
    let mut first_error = None;
    let of_pod = |it: Result<UsageOfPod, String>| it.map_err(|why| first_error = first_error.take().or(Some(why))).ok();
    let read: Vec<UsageOfPod> = usages.into_values().filter_map(of_pod).collect();
    match first_error {
        Some(why) if read.is_empty() => Err(why),
        _ => Ok(read),
    }
}

/// Why a Pod does not have what is recommended, and who must act.
fn told(pod: &str, obstacle: Obstacle) -> Wait {
    match obstacle {
        Obstacle::Resizing(why) => {
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            let message = format!("pod {pod} is being resized{why}");
            Wait::new("PodResizing", message, Actor::Cluster).on("Pod", pod)
        }
        Obstacle::Infeasible(why) => {
            let message = format!("the node of pod {pod} cannot give it what is recommended: {why}");
            Wait::new("ResizeInfeasible", message, Actor::Author).on("Pod", pod)
        }
        Obstacle::TooEarly { container } => {
            let message = format!("container {container} of pod {pod} keeps its memory in the Pod's first hour");
            Wait::new("FirstHour", message, Actor::Cluster).on("Pod", pod)
        }
        Obstacle::NoRequest { container, resource } => {
            let message =
                format!("container {container} of pod {pod} has no request of {resource} that could be resized");
            Wait::new("RequestMissing", message, Actor::Author)
        }
        Obstacle::Limit { container, resource } => {
            let message =
                format!("container {container} of pod {pod} has a limit of {resource} below what is recommended");
            Wait::new("LimitTooLow", message, Actor::Author)
        }
    }
}
