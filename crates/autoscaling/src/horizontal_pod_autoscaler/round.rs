//! One look at one autoscaler: what is said of it, and what is done (`reconcileAutoscaler`).

use std::collections::BTreeSet;

use corten_api::resources::HORIZONTAL_POD_AUTOSCALERS;
use corten_meta::{Key, Requirement, Time, selector::requirements};
use corten_reconcile::{
    Actor, ApiPath, Condition, Effect, EventType, Failure, Plan, View, Wait, reference, status::status_patch,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    measured::is_measured_together,
    metrics::{Failed, Looking, Proposal, path},
    pod::AutoscaledPod,
    recommendations::{Attempt, Held, Memory, limited_without_behavior},
    replicas::{REPLICAS_MAX, Tolerances},
    spec::{Autoscaler, Behavior, MetricSpec, ScalingRules, Status},
};
use crate::target::{Scale, Target, target};

/// So many metrics of one autoscaler are asked for: they come from servers of others, which may hang.
const METRICS_MAX: usize = 32;

pub(super) struct Round<'a> {
    view: &'a View,
    scaler: &'a Autoscaler,
    key: &'a Key,
    now: Time,
    /// As it was remembered, and as it is to be.
    remembered: Option<Memory>,
    memory: Memory,
    status: Status,
    /// Events of what was found, before anything is done.
    found: Vec<Effect>,
    rescale: Option<Rescale>,
    waits: Vec<Wait>,
}

/// A new count for the target.
struct Rescale {
    patch: Effect,
    event: Effect,
    /// What is remembered once it is done.
    memory: Memory,
}

/// What the metrics ask for together.
struct Wanted {
    replicas: i64,
    name: String,
}

impl<'a> Round<'a> {
    pub(super) fn new(view: &'a View, scaler: &'a Autoscaler, key: &'a Key, now: Time) -> Self {
        let remembered = view.note(key).and_then(|it| Memory::deserialize(it).ok());
        let memory = remembered.clone().unwrap_or_default();
        let (found, waits, status) = (Vec::new(), Vec::new(), scaler.status.clone());
        Self { view, scaler, key, now, remembered, memory, status, found, rescale: None, waits }
    }

    /// What must be fetched first is the error.
    pub(super) fn run(&mut self) -> Result<(), Vec<Effect>> {
        let (view, scaler) = (self.view, self.scaler);
        let spec = &scaler.spec;
        let target = target(view, self.key, &spec.scale_target_ref).map_err(|it| vec![Effect::Fetch(it)])?;
        let target = match target {
            Ok(target) => target,
            Err(why) => {
                self.no_scale(&why);
                return Ok(());
            }
        };
        let able = "the HPA controller was able to get the target's current scale";
        self.set("AbleToScale", "True", "SucceededGetScale", able);
        let current = target.scale.spec.replicas;
        self.memory.begin(current, self.now);
        self.memory.attempt = None;
        if current == 0 && !self.may_leave_zero() {
            let message = "scaling is disabled since the replica count of the target is zero";
            self.set("ScalingActive", "False", "ScalingDisabled", message);
            self.conclude(current, current, None, false);
        } else if current > spec.max_replicas && current != 0 {
            self.scale(&target, spec.max_replicas, "Current number of replicas above Spec.MaxReplicas", None);
        } else if current < spec.min() && current != 0 {
            self.scale(&target, spec.min(), "Current number of replicas below Spec.MinReplicas", None);
        } else {
            self.by_metrics(&target)?;
        }
        Ok(())
    }

    /// The target is at zero because its autoscaler brought it there (KEP-2021; `shouldComputeMetricsForZeroReplicas`).
    fn may_leave_zero(&self) -> bool {
        let spec = &self.scaler.spec;
        self.was_scaled_to_zero() && (spec.min() != 0 || spec.measures_without_pods())
    }

    fn was_scaled_to_zero(&self) -> bool {
        self.scaler.status.conditions.iter().any(|it| it.r#type == "ScaledToZero" && it.status == "True")
    }

    fn by_metrics(&mut self, target: &Target) -> Result<(), Vec<Effect>> {
        let Scale { spec: wanted, status, .. } = &target.scale;
        let current = wanted.replicas;
        let all = &self.scaler.spec.metrics;
        let (measured, beyond) = all.split_at(all.len().min(METRICS_MAX));
        let is_together = is_measured_together(self.view, &self.key.namespace);
        let selected = match self.selector(&status.selector) {
            Ok(selector) => {
                let missing = self.missing(measured, &status.selector, is_together);
                if !missing.is_empty() {
                    return Err(missing);
                }
                self.selected(&selector, &status.selector)
            }
            Err(why) => Err(why),
        };
        let pods = match selected {
            Ok(pods) => pods,
            Err(why) => {
                self.conclude(current, self.scaler.status.desired_replicas, None, false);
                self.warn("FailedComputeMetricsReplicas", why);
                return Ok(());
            }
        };
        let looking = Looking {
            view: self.view,
            key: self.key,
            selector: &status.selector,
            is_together,
            pods: &pods,
            spec_replicas: current,
            status_replicas: status.replicas,
            tolerances: Tolerances::of(self.scaler.spec.behavior.as_ref()),
            now: self.now,
        };
        let mut proposals: Vec<_> = measured.iter().map(|it| looking.proposal(it)).collect();
        let statuses =
            proposals.iter().map(|it| it.as_ref().map_or_else(|_| json!({ "type": "" }), |it| it.status.clone()));
        let statuses = Some(statuses.collect());
        if !beyond.is_empty() {
            let message = format!("{} metrics are named, of which the first {METRICS_MAX} are looked at", all.len());
            proposals.push(Err(Failed { reason: "TooManyMetrics", error: message.clone(), message }));
        }
        match self.largest(&proposals, current) {
            Ok(wanted) => self.by_wish(target, &wanted, statuses),
            Err(why) => {
                self.conclude(current, self.scaler.status.desired_replicas, statuses, false);
                self.warn("FailedComputeMetricsReplicas", why);
            }
        }
        Ok(())
    }

    /// What is still to be fetched.
    fn missing(&self, metrics: &[MetricSpec], selector: &str, is_together: bool) -> Vec<Effect> {
        let (view, key) = (self.view, self.key);
        let of_all = |it: &MetricSpec| is_together && it.is_of_resource();
        let paths = |metrics: Vec<&MetricSpec>, selector: &str| -> BTreeSet<ApiPath> {
            metrics.into_iter().filter_map(|it| path(view, &key.namespace, selector, it)).collect()
        };
        let (shared, own): (Vec<_>, Vec<_>) = metrics.iter().partition(|it| of_all(it));
        let shared = paths(shared, "").into_iter().filter(|it| view.brought_for_all(key, it, self.now).is_none());
        let own = paths(own, selector).into_iter().filter(|it| view.fetched(key, it).is_none());
        own.map(Effect::Fetch).chain(shared.map(Effect::FetchForAll)).collect()
    }

    /// By which the target's Pods are told (`validateAndParseSelector`).
    fn selector(&mut self, text: &str) -> Result<Vec<Requirement>, String> {
        if text.is_empty() {
            self.warn("SelectorRequired", "selector is required".into());
            let message = "the HPA target's scale is missing a selector";
            self.set("ScalingActive", "False", "InvalidSelector", message);
            self.waits.push(Wait::new("InvalidSelector", message, Actor::Author));
            return Err("selector is required".into());
        }
        requirements(text).map_err(|why| {
            let message = format!("couldn't convert selector into a corresponding internal selector object: {why}");
            self.refuse_selector("InvalidSelector", &message);
            message
        })
    }

    /// The Pods of the target, which no other autoscaler may have.
    fn selected(&mut self, selector: &[Requirement], text: &str) -> Result<Vec<&'a AutoscaledPod>, String> {
        text.clone_into(&mut self.memory.selector);
        let pods: Vec<&AutoscaledPod> = self.view.selected(&self.key.namespace, selector);
        // The other autoscalers whose targets have some of these Pods, too (`hpasControllingPodsUnderSelector`).
        let mut all = self.view.selecting(&self.key.namespace, pods.iter().map(|it| &it.metadata.labels));
        all.retain(|it| *it != self.key);
        if !all.is_empty() {
            all.push(self.key);
            all.sort();
            let all: Vec<String> = all.iter().map(|it| format!("{{{} {}}}", it.name, it.namespace)).collect();
            let message = format!("pods by selector {text} are controlled by multiple HPAs: [{}]", all.join(" "));
            self.refuse_selector("AmbiguousSelector", &message);
            return Err(message);
        }
        Ok(pods)
    }

    fn refuse_selector(&mut self, reason: &'static str, message: &str) {
        self.warn(reason, message.to_owned());
        self.set("ScalingActive", "False", reason, message);
        let wait = if reason == "AmbiguousSelector" {
            Wait::new("AmbiguousSelector", message, Actor::Author)
        } else {
            Wait::new("InvalidSelector", message, Actor::Author)
        };
        self.waits.push(wait);
    }

    /// What the metric that asks for most asks for. Nothing goes down while one of them says nothing
    /// (`computeReplicasForMetrics`).
    fn largest(&mut self, proposals: &[Result<Proposal, Failed>], current: i64) -> Result<Wanted, String> {
        let failed: Vec<&Failed> = proposals.iter().filter_map(|it| it.as_ref().err()).collect();
        failed.iter().for_each(|it| self.warn(it.reason, it.message.clone()));
        let mut wanted = Wanted { replicas: 0, name: String::new() };
        for it in proposals.iter().flatten() {
            if wanted.replicas == 0 || it.replicas > wanted.replicas {
                wanted = Wanted { replicas: it.replicas.min(REPLICAS_MAX), name: it.name.clone() };
            }
        }
        if let Some(first) = failed.first()
            && (failed.len() == proposals.len() || wanted.replicas < current)
        {
            let message = format!("the HPA was unable to compute the replica count: {}", first.message);
            self.set("ScalingActive", "False", first.reason, &message);
            self.wait_for(first, "the replica count cannot be computed");
            let (n, all) = (failed.len(), proposals.len());
            return Err(format!("invalid metrics ({n} invalid out of {all}), first error is: {}", first.error));
        }
        if let Some(first) = failed.first() {
            self.wait_for(first, "the replica count is computed without one of the metrics, and does not go down");
        }
        let message = format!("the HPA was able to successfully calculate a replica count from {}", wanted.name);
        self.set("ScalingActive", "True", "ValidMetricFound", &message);
        Ok(wanted)
    }

    fn wait_for(&mut self, failed: &Failed, effect: &str) {
        let wait = wait_for_metric(failed, effect);
        let to = &self.scaler.spec.scale_target_ref;
        self.waits.push(if failed.is_for_want_of_pods() { wait.on(&to.kind, &to.name) } else { wait });
    }

    /// Goes as far towards what the metrics ask for as it may.
    fn by_wish(&mut self, target: &Target, wanted: &Wanted, statuses: Option<Vec<Value>>) {
        let (spec, now) = (&self.scaler.spec, self.now);
        let current = target.scale.spec.replicas;
        let desired = wanted.replicas.max(0);
        let mut reason = match desired {
            more if more > current => format!("{} above target", wanted.name),
            less if less < current => "All metrics below target".into(),
            _ => String::new(),
        };
        let stabilized = match &spec.behavior {
            Some(behavior) => self.memory.stabilized_by(behavior, current, desired, now),
            None => Held {
                replicas: self.memory.stabilized(desired, now),
                reason: "ScaleDownStabilized",
                message: "recent recommendations were higher than current one, applying the highest recent recommendation",
            },
        };
        if stabilized.replicas == desired {
            self.set("AbleToScale", "True", "ReadyForNewScale", "recommended size matches current size");
        } else {
            self.set("AbleToScale", "True", stabilized.reason, stabilized.message);
        }
        let limited = match &spec.behavior {
            Some(behavior) => self.memory.limited_by(behavior, spec, current, stabilized.replicas, now),
            None => limited_without_behavior(spec, current, stabilized.replicas),
        };
        let is_limited = limited.replicas != stabilized.replicas;
        self.set("ScalingLimited", if is_limited { "True" } else { "False" }, limited.reason, limited.message);
        let mut replicas = limited.replicas;
        if current == 0 && spec.min() > 0 {
            replicas = replicas.max(spec.min());
            if reason.is_empty() {
                reason = "Current number of replicas below Spec.MinReplicas".into();
            }
        }
        self.wait_for_what_is_held(desired, &stabilized, &limited, replicas);
        if replicas == current {
            self.conclude(current, current, statuses, false);
        } else {
            self.scale(target, replicas, &reason, statuses);
        }
    }

    fn wait_for_what_is_held(&mut self, desired: i64, stabilized: &Held, limited: &Held, replicas: i64) {
        let held = |by: &str| format!("the metrics ask for {desired} replicas, the target has {replicas}: {by}");
        let behavior = self.scaler.spec.behavior.as_ref();
        let is_disabled =
            |rules: fn(&Behavior) -> &ScalingRules| behavior.is_some_and(|it| rules(it).select_policy == "Disabled");
        let wait = match (stabilized.reason, limited.reason) {
            ("ScaleUpStabilized", _) if stabilized.replicas != desired => {
                Wait::new("ScaleUpStabilized", held(stabilized.message), Actor::Cluster)
            }
            _ if stabilized.replicas != desired => {
                Wait::new("ScaleDownStabilized", held(stabilized.message), Actor::Cluster)
            }
            _ if limited.replicas == stabilized.replicas => return,
            (_, "ScaleUpLimit") if is_disabled(|it| &it.scale_up) => {
                Wait::new("ScaleUpDisabled", held("its behavior lets nothing scale up"), Actor::Author)
            }
            (_, "ScaleDownLimit") if is_disabled(|it| &it.scale_down) => {
                Wait::new("ScaleDownDisabled", held("its behavior lets nothing scale down"), Actor::Author)
            }
            (_, "ScaleUpLimit") => Wait::new("ScaleUpLimit", held(limited.message), Actor::Cluster),
            (_, "ScaleDownLimit") => Wait::new("ScaleDownLimit", held(limited.message), Actor::Cluster),
            (_, "TooManyReplicas") => Wait::new("TooManyReplicas", held(limited.message), Actor::Author),
            // Fewer than there may be: nothing is missing.
            _ => return,
        };
        self.waits.push(wait);
    }

    fn scale(&mut self, target: &Target, replicas: i64, reason: &str, statuses: Option<Vec<Value>>) {
        let current = target.scale.spec.replicas;
        let spec = &self.scaler.spec;
        self.conclude(current, self.scaler.status.desired_replicas, statuses.clone(), false);
        let mut memory = self.memory.clone();
        memory.scaled(spec.behavior.as_ref(), current, replicas, self.now);
        self.memory.attempt = Some(Attempt { reason: reason.to_owned(), status: self.status.clone() });
        // Whatever has changed meanwhile, the count is what the metrics ask for.
        let patch = json!({ "metadata": { "uid": target.scale.metadata.uid }, "spec": { "replicas": replicas } });
        let patch = Effect::Patch {
            resource: target.resource.clone(),
            key: target.key.clone(),
            subresource: Some("scale"),
            patch,
        };
        let event =
            self.event(EventType::Normal, "SuccessfulRescale", format!("New size: {replicas}; reason: {reason}"));
        let message = format!("the HPA controller was able to update the target scale to {replicas}");
        self.set("AbleToScale", "True", "SucceededRescale", &message);
        if current > 0 && replicas == 0 && spec.min() == 0 && spec.measures_without_pods() {
            self.set("ScaledToZero", "True", "ScaledToZero", "the HPA controller scaled the workload to zero");
        } else {
            let message = "the HPA controller did not scale the workload to zero";
            self.set("ScaledToZero", "False", "NotScaledToZero", message);
        }
        self.rescale = Some(Rescale { patch, event, memory });
        self.conclude(current, replicas, statuses, true);
    }

    /// `setStatus`
    fn conclude(&mut self, current: i64, desired: i64, metrics: Option<Vec<Value>>, is_scaled: bool) {
        let status = &mut self.status;
        status.current_replicas = current;
        status.desired_replicas = desired;
        status.current_metrics = metrics;
        status.observed_generation = Some(self.scaler.metadata.generation).filter(|it| *it > 0);
        if is_scaled {
            status.last_scale_time = Some(self.now.whole_seconds());
        }
    }

    fn no_scale(&mut self, why: &str) {
        self.warn("FailedGetScale", why.to_owned());
        let message = format!("the HPA controller was unable to get the target's current scale: {why}");
        self.set("AbleToScale", "False", "FailedGetScale", &message);
        let to = &self.scaler.spec.scale_target_ref;
        self.waits.push(Wait::new("FailedGetScale", message, Actor::Author).on(&to.kind, &to.name));
    }

    /// What could not be written the last time.
    pub(super) fn tell_of(&mut self, failure: &Failure) {
        let Failure { effect, message: why, .. } = failure;
        let Effect::Patch { patch, subresource: Some("scale"), .. } = effect else {
            self.warn("FailedUpdateStatus", why.clone());
            return;
        };
        let replicas = &patch["spec"]["replicas"];
        let attempt = self.memory.attempt.take();
        let reason = attempt.as_ref().map_or("", |it| &it.reason);
        let event = format!("New size: {replicas}; reason: {reason}; error: {why}");
        self.warn("FailedRescale", event);
        if let Some(Attempt { status, .. }) = attempt {
            self.status = status;
        }
        let message = format!("the HPA controller was unable to update the target scale: {why}");
        self.set("AbleToScale", "False", "FailedUpdateScale", &message);
        let to = &self.scaler.spec.scale_target_ref;
        self.waits.push(Wait::new("FailedUpdateScale", message, Actor::Operator).on(&to.kind, &to.name));
    }

    fn set(&mut self, kind: &str, holds: &str, reason: &str, message: &str) {
        let now = self.now.whole_seconds();
        Condition::set(&mut self.status.conditions, kind, holds, (reason, message), now);
    }

    fn warn(&mut self, reason: &'static str, message: String) {
        let event = self.event(EventType::Warning, reason, message);
        self.found.push(event);
    }

    fn event(&self, event_type: EventType, reason: &'static str, message: String) -> Effect {
        Effect::Event { about: reference(self.scaler), event_type, reason, message }
    }

    pub(super) fn into_plan(self) -> Plan {
        let remember = |memory: &Memory| Effect::Remember { note: json!(memory) };
        let mut effects = self.found;
        if self.remembered.as_ref() != Some(&self.memory) {
            effects.push(remember(&self.memory));
        }
        if let Some(Rescale { patch, event, memory }) = self.rescale {
            effects.extend([patch, event, remember(&memory)]);
        }
        let meta = &self.scaler.metadata;
        effects.extend(status_patch(HORIZONTAL_POD_AUTOSCALERS, meta, &self.scaler.status, &self.status));
        Plan { effects, waits: self.waits, ..Plan::default() }
    }
}

fn wait_for_metric(failed: &Failed, effect: &str) -> Wait {
    let message = format!("{effect}: {}", failed.message);
    let actor = if failed.is_of_author() { Actor::Author } else { Actor::Operator };
    match failed.reason {
        "FailedGetResourceMetric" => Wait::new("FailedGetResourceMetric", message, actor),
        "FailedGetContainerResourceMetric" => Wait::new("FailedGetContainerResourceMetric", message, actor),
        "FailedGetPodsMetric" => Wait::new("FailedGetPodsMetric", message, actor),
        "FailedGetObjectMetric" => Wait::new("FailedGetObjectMetric", message, actor),
        "FailedGetExternalMetric" => Wait::new("FailedGetExternalMetric", message, actor),
        "TooManyMetrics" => Wait::new("TooManyMetrics", message, Actor::Author),
        _ => Wait::new("InvalidMetricSourceType", message, Actor::Author),
    }
}
