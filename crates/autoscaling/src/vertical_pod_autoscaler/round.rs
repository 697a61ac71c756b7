//! One look at one autoscaler: what is recommended, what is done, and why not.

use std::collections::BTreeMap;

use corten_api::resources::VERTICAL_POD_AUTOSCALERS;
use corten_meta::{Key, Selector, Time};
use corten_reconcile::{
    Actor, ApiPath, Condition, EFFECTS_MAX, Effect, EventType, Plan, View, Wait, go_on_after_failed, reference,
    status::status_patch,
};

use super::{
    peak,
    pod::{Obstacle, ResizedPod},
    spec::{Autoscaler, Recommendation, Status},
};
use crate::{
    horizontal_pod_autoscaler::measured::{resource_path, unfetched, usages},
    target::{Target, target},
};

const RESOURCES: [&str; 2] = ["cpu", "memory"];

pub(super) struct Round<'a> {
    view: &'a View,
    scaler: &'a Autoscaler,
    key: &'a Key,
    now: Time,
    status: Status,
    resizes: Vec<Effect>,
    waits: Vec<Wait>,
}

impl<'a> Round<'a> {
    pub(super) fn new(view: &'a View, scaler: &'a Autoscaler, key: &'a Key, now: Time) -> Self {
        let mut status = scaler.status.clone();
        status.observed_generation = Some(scaler.metadata.generation);
        Self { view, scaler, key, now, status, resizes: Vec::new(), waits: Vec::new() }
    }

    /// What must be fetched first is the error.
    pub(super) fn run(&mut self) -> Result<(), ApiPath> {
        let to = &self.scaler.spec.target_ref;
        match target(self.view, self.key, to)? {
            Err(why) => {
                let message = format!("the target's scale cannot be read: {why}");
                self.not_recommended("FailedGetScale", &message);
                self.waits.push(Wait::new("FailedGetScale", message, Actor::Author).on(&to.kind, &to.name));
            }
            Ok(Target { scale, .. }) => match Selector::parse(&scale.status.selector) {
                Ok(selector) if !scale.status.selector.is_empty() => self.measure(&scale.status.selector, &selector)?,
                _ => {
                    let message = "the target's scale has no selector of Pods that can be read";
                    self.not_recommended("InvalidSelector", message);
                    self.waits.push(Wait::new("InvalidSelector", message, Actor::Author));
                }
            },
        }
        Ok(())
    }

    fn measure(&mut self, text: &str, selector: &Selector) -> Result<(), ApiPath> {
        let all = self.view.in_namespace::<ResizedPod>(&self.key.namespace);
        let pods: Vec<&ResizedPod> =
            all.filter(|it| it.is_running() && selector.matches(&it.metadata.labels)).collect();
        self.status.pods = i64::try_from(pods.len()).unwrap_or(i64::MAX);
        let path = resource_path(&self.key.namespace, text);
        let used = match self.view.fetched(self.key, &path) {
            None => return Err(path),
            Some(Err(why)) => Err(unfetched(&path, why)),
            Some(Ok(body)) => usages(body),
        };
        match used {
            Err(why) => {
                let message = format!("what the Pods use cannot be read: {why}");
                self.not_recommended("FailedGetResourceMetric", &message);
                self.waits.push(Wait::new("FailedGetResourceMetric", message, Actor::Operator));
            }
            Ok(used) => {
                let is_ours = |name: &str| pods.iter().any(|it| it.metadata.name == name);
                let mut most: BTreeMap<(String, &'static str), i64> = BTreeMap::new();
                for container in used.into_iter().filter(|it| is_ours(&it.metadata.name)).flat_map(|it| it.containers) {
                    for resource in RESOURCES {
                        let Some(amount) = container.usage.get(resource) else { continue };
                        let most = most.entry((container.name.clone(), resource)).or_default();
                        *most = (*most).max(peak::amount(resource, *amount));
                    }
                }
                self.recommend(most);
                self.apply(&pods);
            }
        }
        Ok(())
    }

    /// Each container by the most that one of its kind has used. What nothing was seen of keeps its peak until that has faded away.
    fn recommend(&mut self, most: BTreeMap<(String, &'static str), i64>) {
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
        let mut obstacles = Vec::new();
        for pod in pods {
            let resizing = pod.resizing(&self.status.recommendations);
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
    }

    fn not_recommended(&mut self, reason: &str, message: &str) {
        self.set("RecommendationProvided", "False", reason, message);
    }

    fn set(&mut self, kind: &str, holds: &str, reason: &str, message: &str) {
        let now = self.now.whole_seconds();
        Condition::set(&mut self.status.conditions, kind, holds, (reason, message), now);
    }

    pub(super) fn into_plan(mut self) -> Plan {
        let failure = self.view.failure(self.key);
        let mut effects = Vec::new();
        if let Some(failure) = failure.filter(|it| matches!(it.effect, Effect::StrategicPatch { .. })) {
            let message = format!("a Pod could not be resized: {}", failure.message);
            let about = reference(self.scaler);
            let event_type = EventType::Warning;
            effects.push(Effect::Event { about, event_type, reason: "FailedResize", message: message.clone() });
            self.set("Applied", "False", "FailedResize", &message);
            self.waits.push(Wait::new("FailedResize", message, Actor::Operator));
        }
        let meta = &self.scaler.metadata;
        effects.extend(status_patch(VERTICAL_POD_AUTOSCALERS, meta, &self.scaler.status, &self.status));
        self.resizes.truncate(EFFECTS_MAX);
        go_on_after_failed(&mut self.resizes, failure);
        effects.extend(self.resizes);
        Plan { effects, waits: self.waits, ..Plan::default() }
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
