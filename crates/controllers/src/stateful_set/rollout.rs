//! A set with its pods and revisions, and the plan in the making.

use std::collections::BTreeMap;

use corten_api::resources;
use corten_meta::Time;
use corten_reconcile::{
    Actor, EFFECTS_MAX, Effect, EventType, Plan, View, Wait, go_on_after_failed,
    status::{exact_patch, status_patch},
};
use serde_json::Value;

use super::{
    claims::{self, Obstacle},
    identity::{self, REVISION_LABEL},
    status, update,
};
use crate::{
    ownership::ClaimedPods,
    pod_template::delete_pod,
    projections::{ControllerRevision, Pod, StatefulSet, reference},
    revision_history::{self, Newest, Owner},
};

const HASH_LABEL: &str = "controller.kubernetes.io/hash";
const FOREVER: i64 = i32::MAX as i64;

/// One version of the set: its revision's name and pod template.
pub(super) struct Version<'a> {
    pub(super) name: String,
    pub(super) template: &'a Value,
}

pub(super) struct Rollout<'a> {
    pub(super) view: &'a View,
    pub(super) set: &'a StatefulSet,
    pub(super) now: Time,
    pub(super) current: Version<'a>,
    pub(super) update: Version<'a>,
    /// The pods that are wanted and there, by ordinal.
    pub(super) replicas: BTreeMap<i64, &'a Pod>,
    /// Those whose ordinal is not wanted, highest first.
    pub(super) condemned: Vec<(i64, &'a Pod)>,
    revisions: Vec<&'a ControllerRevision>,
    /// By wanted ordinal what is done for it: the claims before the pod. No ordinal rests on another.
    of_replicas: Vec<Effect>,
    pub(super) effects: Vec<Effect>,
    pub(super) waits: Vec<Wait>,
    /// Pods that this plan takes away for an update.
    pub(super) n_replaced: i64,
}

impl<'a> Rollout<'a> {
    /// Or a plan that counts a collision of names.
    pub(super) fn new(
        view: &'a View,
        set: &'a StatefulSet,
        ClaimedPods { pods, revisions }: ClaimedPods<'a>,
        now: Time,
    ) -> Result<Self, Plan> {
        let revisions = revision_history::sorted(revisions);
        let owner = Owner {
            meta: &set.metadata,
            template: &set.spec.template,
            collision_count: set.status.collision_count.unwrap_or(0),
            hash_label: HASH_LABEL,
        };
        let (newest, effect) = revision_history::newest::<StatefulSet>(view, &owner, &revisions);
        let name = match newest {
            Newest::Found(revision) => revision.metadata.name.clone(),
            Newest::Made { name, .. } => name,
            Newest::Collides => return Err(collision(set)),
        };
        let update = Version { name, template: &set.spec.template };
        let current = revisions.iter().find(|it| it.metadata.name == set.status.current_revision);
        let current = match current {
            Some(it) => Version { name: it.metadata.name.clone(), template: revision_history::template_of(it) },
            None => Version { name: update.name.clone(), template: update.template },
        };
        let (mut replicas, mut condemned) = (BTreeMap::new(), Vec::new());
        let start = set.spec.ordinals.start;
        for pod in pods {
            match identity::ordinal(&set.metadata.name, &pod.metadata.name) {
                Some(it) if (start..start + set.spec.replicas).contains(&it) => drop(replicas.insert(it, pod)),
                Some(it) => condemned.push((it, pod)),
                None => {}
            }
        }
        condemned.sort_by_key(|it| std::cmp::Reverse(it.0));
        let effects = effect.into_iter().collect();
        Ok(Self {
            view,
            set,
            now,
            current,
            update,
            replicas,
            condemned,
            revisions,
            of_replicas: Vec::new(),
            effects,
            waits: Vec::new(),
            n_replaced: 0,
        })
    }

    pub(super) fn run(mut self) -> Plan {
        // The revision comes first: what follows names it.
        let mut effects = std::mem::take(&mut self.effects);
        if !self.set.metadata.is_deleting() {
            self.steer();
        }
        let status = status::of(&self);
        let patch = status_patch(resources::STATEFUL_SETS, &self.set.metadata, &self.set.status, &status);
        effects.extend(patch);
        effects.extend(self.failure_event());
        effects.extend(self.surplus_history(&status.current_revision));
        if !self.is_ordered() {
            go_on_after_failed(&mut self.of_replicas, self.view.failure(&self.set.metadata.key()));
        }
        effects.append(&mut self.of_replicas);
        effects.append(&mut self.effects);
        let wake_at = self.next_available();
        Plan { effects, waits: self.waits, wake_at, ..Plan::default() }
    }

    fn steer(&mut self) {
        let may_go_on = self.keep_replicas() && self.take_condemned();
        if may_go_on && self.set.spec.update_strategy.r#type != "OnDelete" {
            update::run(self);
        }
    }

    pub(super) fn is_ordered(&self) -> bool {
        self.set.spec.pod_management_policy != "Parallel"
    }

    fn ordinals(&self) -> std::ops::Range<i64> {
        let start = self.set.spec.ordinals.start;
        start..start + self.set.spec.replicas
    }

    // ---- keeping ----

    /// Looks after each wanted pod, lowest ordinal first. Says whether surplus and updates may be thought of.
    fn keep_replicas(&mut self) -> bool {
        let mut n_made = 0;
        for ordinal in self.ordinals() {
            let is_done = match self.replicas.get(&ordinal).copied() {
                Some(pod) => self.keep(ordinal, pod),
                None if n_made == EFFECTS_MAX => return false,
                None => {
                    n_made += 1;
                    self.make(ordinal);
                    false
                }
            };
            if !self.effects.is_empty() {
                self.of_replicas.push(Effect::Sequence(std::mem::take(&mut self.effects)));
            }
            if !is_done && self.is_ordered() {
                return false;
            }
        }
        true
    }

    /// Says whether the pod is all it should be.
    fn keep(&mut self, ordinal: i64, pod: &'a Pod) -> bool {
        if pod.is_finished() {
            if !pod.metadata.is_deleting() {
                self.delete(pod);
            }
            self.wait_for("PodFinished", "has finished and is replaced", pod);
            return false;
        }
        if pod.status.phase == "Pending" {
            self.claim_storage(ordinal);
        }
        if pod.metadata.is_deleting() {
            self.wait_for("PodTerminating", "is stopping, a new one follows", pod);
            return false;
        }
        if !is_running(pod) {
            self.wait_for("PodNotReady", "is not ready", pod);
            return false;
        }
        if !pod.is_available(self.set.spec.min_ready_seconds, self.now) {
            self.wait_for("PodNotAvailable", "has not been ready for long enough", pod);
            return false;
        }
        if let Some(patch) = identity::missing_labels(pod, ordinal) {
            self.effects.push(exact_patch(resources::PODS, &pod.metadata, patch));
            let (pod, set) = (&pod.metadata.name, &self.set.metadata.name);
            let message = format!("update Pod {pod} in StatefulSet {set} successful");
            self.effects.push(self.event(EventType::Normal, "SuccessfulUpdate", message));
        }
        let retained = claims::retained(self.view, self.set, ordinal, pod, false);
        self.effects.extend(retained);
        true
    }

    fn make(&mut self, ordinal: i64) {
        let name = identity::name(self.set, ordinal);
        if let Some(obstacle) = claims::obstacle(self.view, self.set, ordinal) {
            let (reason, claim, why) = match obstacle {
                Obstacle::Stale(claim) => ("ClaimStale", claim, "still belongs to an earlier pod of this name"),
                Obstacle::Deleting(claim) => ("ClaimTerminating", claim, "is being deleted"),
            };
            let message = format!("pod {name} cannot be made: its claim {claim} {why}");
            self.waits.push(Wait::new(reason, message, Actor::Cluster).on("PersistentVolumeClaim", &claim));
            return;
        }
        self.claim_storage(ordinal);
        let version = self.version_for(ordinal);
        let object = identity::pod(self.set, ordinal, version.template, &version.name);
        self.effects.push(Effect::Create { resource: resources::PODS, object });
        let message = format!("create Pod {name} in StatefulSet {} successful", self.set.metadata.name);
        self.effects.push(self.event(EventType::Normal, "SuccessfulCreate", message));
        if self.waits.last().is_none_or(|it| it.reason != "PodsMissing") {
            let message = format!("{} of {} pods are there", self.replicas.len(), self.set.spec.replicas);
            self.waits.push(Wait::new("PodsMissing", message, Actor::Cluster));
        }
    }

    /// As in `newVersionedStatefulSetPod`: below the partition pods keep the current version.
    fn version_for(&self, ordinal: i64) -> &Version<'a> {
        let strategy = &self.set.spec.update_strategy;
        let start = self.set.spec.ordinals.start;
        let n_current = match &strategy.rolling_update {
            _ if strategy.r#type != "RollingUpdate" => 0,
            Some(rule) => rule.partition,
            None => self.set.status.current_replicas,
        };
        if ordinal < start + n_current { &self.current } else { &self.update }
    }

    fn claim_storage(&mut self, ordinal: i64) {
        let (view, set) = (self.view, self.set);
        for (claim, object) in claims::missing(view, set, ordinal) {
            let resource = resources::PERSISTENT_VOLUME_CLAIMS;
            self.effects.push(Effect::Create { resource, object });
            let (pod, set) = (identity::name(set, ordinal), &set.metadata.name);
            let message = format!("create Claim {claim} Pod {pod} in StatefulSet {set} success");
            let event = self.event(EventType::Normal, "SuccessfulCreate", message);
            self.effects.push(event);
        }
    }

    // ---- surplus ----

    /// Takes away pods whose ordinal is not wanted, highest first. Says whether updates may be thought of.
    fn take_condemned(&mut self) -> bool {
        let first_unavailable = self.first_unavailable();
        for (ordinal, pod) in self.condemned.clone() {
            let retained = claims::retained(self.view, self.set, ordinal, pod, true);
            self.effects.extend(retained);
        }
        for (_, pod) in self.condemned.clone() {
            if pod.metadata.is_deleting() {
                self.wait_for("PodTerminating", "is surplus and stopping", pod);
            } else if self.is_ordered() && self.is_unavailable(pod) && first_unavailable != Some(&pod.metadata.uid) {
                self.wait_for("PodNotReady", "is surplus, but others must be available before it may go", pod);
            } else {
                self.delete(pod);
                self.wait_for("PodsSurplus", "is surplus and taken away", pod);
            }
            if self.is_ordered() {
                return false;
            }
        }
        true
    }

    fn first_unavailable(&self) -> Option<&'a str> {
        let condemned = self.condemned.iter().rev().map(|it| it.1);
        let all = self.replicas.values().copied().chain(condemned);
        let mut unavailable = all.filter(|it| self.is_unavailable(it));
        unavailable.next().map(|it| &*it.metadata.uid)
    }

    pub(super) fn is_unavailable(&self, pod: &Pod) -> bool {
        pod.metadata.is_deleting() || !self.is_running_and_available(pod)
    }

    pub(super) fn is_running_and_available(&self, pod: &Pod) -> bool {
        is_running(pod) && pod.is_available(self.set.spec.min_ready_seconds, self.now)
    }

    // ---- what it says and does ----

    pub(super) fn delete(&mut self, pod: &Pod) {
        self.effects.push(delete_pod(pod));
        let (pod, set) = (&pod.metadata.name, &self.set.metadata.name);
        let message = format!("delete Pod {pod} in StatefulSet {set} successful");
        self.effects.push(self.event(EventType::Normal, "SuccessfulDelete", message));
    }

    pub(super) fn wait_for(&mut self, reason: &str, what: &str, pod: &Pod) {
        let name = &pod.metadata.name;
        self.waits.push(Wait::new(reason, format!("pod {name} {what}"), Actor::Cluster).on("Pod", name));
    }

    fn event(&self, event_type: EventType, reason: &'static str, message: String) -> Effect {
        Effect::Event { about: reference(self.set), event_type, reason, message }
    }

    /// What the last plan failed with.
    fn failure_event(&mut self) -> Option<Effect> {
        let failure = self.view.failure(&self.set.metadata.key())?;
        let (set, error) = (&self.set.metadata.name, &failure.message);
        let (reason, message) = match &failure.effect {
            Effect::Create { resource, object } if *resource == resources::PODS => {
                let pod = object["metadata"]["name"].as_str().unwrap_or_default();
                ("FailedCreate", format!("create Pod {pod} in StatefulSet {set} failed error: {error}"))
            }
            Effect::Create { resource, object } if *resource == resources::PERSISTENT_VOLUME_CLAIMS => {
                let claim = object["metadata"]["name"].as_str().unwrap_or_default();
                let pod = identity::parts(claim).map(|it| format!("{set}-{}", it.1)).unwrap_or_default();
                ("FailedCreate", format!("create Claim {claim} Pod {pod} in StatefulSet {set} failed error: {error}"))
            }
            Effect::Delete { resource, key, .. } if *resource == resources::PODS => {
                ("FailedDelete", format!("delete Pod {} in StatefulSet {set} failed error: {error}", key.name))
            }
            Effect::Patch { resource, key, .. } if *resource == resources::PODS => {
                ("FailedUpdate", format!("update Pod {} in StatefulSet {set} failed error: {error}", key.name))
            }
            _ => return None,
        };
        self.waits.push(Wait::new(reason, message.clone(), Actor::Operator));
        Some(self.event(EventType::Warning, reason, message))
    }

    /// The oldest revisions that nobody is of any more, beyond the limit.
    fn surplus_history(&self, current: &str) -> Vec<Effect> {
        let Some(limit) = self.set.spec.revision_history_limit.filter(|it| *it != FOREVER) else { return Vec::new() };
        let all = self.replicas.values().chain(self.condemned.iter().map(|it| &it.1));
        let of_pods: Vec<&str> =
            all.filter_map(|it| it.metadata.labels.get(REVISION_LABEL).map(String::as_str)).collect();
        let is_live = |name: &str| name == current || name == self.update.name || of_pods.contains(&name);
        let idle: Vec<_> = self.revisions.iter().filter(|it| !is_live(&it.metadata.name)).collect();
        let n_surplus = idle.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        idle.into_iter().take(n_surplus).map(|it| revision_history::delete(it)).collect()
    }

    fn next_available(&self) -> Option<Time> {
        let all = self.replicas.values().chain(self.condemned.iter().map(|it| &it.1));
        all.filter_map(|it| it.available_at(self.set.spec.min_ready_seconds)).filter(|it| *it > self.now).min()
    }
}

pub(super) fn is_running(pod: &Pod) -> bool {
    pod.status.phase == "Running" && pod.is_ready()
}

fn collision(set: &StatefulSet) -> Plan {
    let mut status = set.status.clone();
    status.collision_count = Some(status.collision_count.unwrap_or(0) + 1);
    let patch = status_patch(resources::STATEFUL_SETS, &set.metadata, &set.status, &status);
    let message = "the name of its new revision is taken, another is tried";
    let wait = Wait::new("RevisionNameTaken", message, Actor::Cluster);
    Plan { effects: patch.into_iter().collect(), waits: vec![wait], ..Plan::default() }
}
