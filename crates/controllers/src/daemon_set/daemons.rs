//! A set with its pods by node, its nodes and revisions, and the plan in the making.

use std::collections::BTreeMap;

use corten_api::resources;
use corten_meta::Time;
use corten_reconcile::{Actor, EFFECTS_MAX, Effect, EventType, Plan, View, Wait, status::status_patch};

use super::{
    eligible::{Eligible, Verdict},
    manage, pods, rolling, status,
};
use crate::{
    names,
    ownership::ClaimedPods,
    pod_template::delete_pod,
    projections::{ControllerRevision, DaemonNode, DaemonSet, Pod, reference},
    revision_history::{self, Newest, Owner},
};

pub(super) struct Daemons<'a> {
    pub(super) view: &'a View,
    pub(super) set: &'a DaemonSet,
    pub(super) now: Time,
    /// Of the revision of the present template.
    pub(super) hash: String,
    pub(super) nodes: Vec<(&'a DaemonNode, Verdict)>,
    /// The pods on each node or meant for it, oldest first; without those that have finished and go.
    pub(super) on_node: BTreeMap<&'a str, Vec<&'a Pod>>,
    old_revisions: Vec<&'a ControllerRevision>,
    pub(super) effects: Vec<Effect>,
    pub(super) waits: Vec<Wait>,
    pub(super) wake_at: Option<Time>,
}

impl<'a> Daemons<'a> {
    /// Or a plan that counts a collision of names.
    pub(super) fn new(
        view: &'a View,
        set: &'a DaemonSet,
        ClaimedPods { pods, revisions }: ClaimedPods<'a>,
        now: Time,
    ) -> Result<Self, Plan> {
        let revisions = revision_history::sorted(revisions);
        let owner = Owner {
            meta: &set.metadata,
            template: &set.spec.template,
            collision_count: set.status.collision_count.unwrap_or(0),
            hash_label: pods::HASH_LABEL,
        };
        let (newest, effect) = revision_history::newest::<DaemonSet>(view, &owner, &revisions);
        let (hash, current) = match newest {
            Newest::Found(it) => (it.metadata.labels.get(pods::HASH_LABEL).cloned().unwrap_or_default(), Some(it)),
            Newest::Made { hash, .. } => (hash, None),
            Newest::Collides => return Err(collision(set)),
        };
        let is_old = |it: &&ControllerRevision| current.is_none_or(|current| current.metadata.uid != it.metadata.uid);
        let eligible = Eligible::of(set);
        let nodes = view.list::<DaemonNode>().map(|it| (it, eligible.verdict(it))).collect();
        Ok(Self {
            view,
            set,
            now,
            hash,
            nodes,
            on_node: by_node(pods),
            old_revisions: revisions.into_iter().filter(is_old).collect(),
            effects: effect.into_iter().collect(),
            waits: Vec::new(),
            wake_at: None,
        })
    }

    pub(super) fn run(mut self) -> Plan {
        let n_before = self.effects.len();
        let failure = self.failure_event();
        manage::run(&mut self);
        if self.effects.len() == n_before && self.set.spec.update_strategy.r#type == "RollingUpdate" {
            // What is missing or surplus comes first (`DaemonSetsController.updateDaemonSet`).
            rolling::run(&mut self);
        }
        let history = self.surplus_history();
        let status = status::of(&self);
        self.wait_for_unavailable();
        let patch = status_patch(resources::DAEMON_SETS, &self.set.metadata, &self.set.status, &status);
        // The status before what may fail; the revision before all that names it.
        self.effects.splice(n_before..n_before, patch.into_iter().chain(failure).chain(history));
        self.wake_when_available();
        Plan { effects: self.effects, waits: self.waits, wake_at: self.wake_at, ..Plan::default() }
    }

    /// For the pods of one plan.
    pub(super) fn names(&self) -> Vec<String> {
        let meta = &self.set.metadata;
        let prefix = names::prefix(&meta.name);
        names::untaken(self.view, meta, &prefix, self.now).take(EFFECTS_MAX).collect()
    }

    /// Makes pods for these nodes, of each how many have failed there before.
    pub(super) fn make_each(&mut self, nodes: &[(&str, u32)]) {
        for ((node, failures), name) in nodes.iter().zip(self.names()) {
            self.make(&name, node, *failures);
        }
    }

    /// Makes a pod of this name for a node where so many have failed before.
    pub(super) fn make(&mut self, name: &str, node: &str, failures: u32) {
        let object = pods::pod(self.set, &self.hash, node, name, failures);
        self.effects.push(Effect::Create { resource: resources::PODS, object });
        self.effects.push(self.event(EventType::Normal, "SuccessfulCreate", format!("Created pod: {name}")));
    }

    pub(super) fn delete(&mut self, pod: &Pod) {
        self.effects.push(delete_pod(pod));
        let message = format!("Deleted pod: {}", pod.metadata.name);
        self.effects.push(self.event(EventType::Normal, "SuccessfulDelete", message));
    }

    pub(super) fn event(&self, event_type: EventType, reason: &'static str, message: String) -> Effect {
        Effect::Event { about: reference(self.set), event_type, reason, message }
    }

    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        pod.is_available(self.set.spec.min_ready_seconds, self.now)
    }

    pub(super) fn is_updated(&self, pod: &Pod) -> bool {
        pods::is_updated(self.set, &self.hash, pod)
    }

    pub(super) fn wait(&mut self, reason: &str, message: String) {
        self.waits.push(Wait::new(reason, message, Actor::Cluster));
    }

    pub(super) fn wake(&mut self, at: Time) {
        self.wake_at = Some(self.wake_at.map_or(at, |it| it.min(at)));
    }

    /// The first pod that does not serve explains the others.
    fn wait_for_unavailable(&mut self) {
        let all = || self.on_node.values().flatten();
        let n_unavailable = all().filter(|it| !self.is_available(it)).count();
        let first = all().find(|it| !it.is_finished() && !self.is_available(it));
        if let Some(first) = first.map(|it| it.metadata.name.clone()) {
            let message = format!("{n_unavailable} of {} pods are not ready", all().count());
            self.waits.push(Wait::new("PodsNotReady", message, Actor::Cluster).on("Pod", &first));
        }
    }

    fn wake_when_available(&mut self) {
        let min_ready = self.set.spec.min_ready_seconds;
        let pods = self.on_node.values().flatten();
        let next = pods.filter_map(|it| it.available_at(min_ready)).filter(|it| *it > self.now).min();
        if let Some(next) = next {
            self.wake(next);
        }
    }

    pub(super) fn failed_effect(&self) -> Option<&'a Effect> {
        Some(&self.view.failure(&self.set.metadata.key())?.effect)
    }

    /// What the last plan failed with.
    fn failure_event(&mut self) -> Option<Effect> {
        let failure = self.view.failure(&self.set.metadata.key())?;
        let (reason, words) = match &failure.effect {
            Effect::Create { resource, .. } if *resource == resources::PODS => ("FailedCreate", "Error creating"),
            Effect::Delete { resource, .. } if *resource == resources::PODS => ("FailedDelete", "Error deleting"),
            _ => return None,
        };
        let message = format!("{words}: {}", failure.message);
        self.waits.push(Wait::new(reason, format!("{}: {}", words.to_lowercase(), failure.message), Actor::Operator));
        Some(self.event(EventType::Warning, reason, message))
    }

    /// The oldest revisions of no pod, beyond the limit.
    fn surplus_history(&self) -> Vec<Effect> {
        let Some(limit) = self.set.spec.revision_history_limit else { return Vec::new() };
        let n_surplus = self.old_revisions.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        let label = |meta: &'a corten_meta::ObjectMeta| meta.labels.get(pods::HASH_LABEL);
        let of_pods: Vec<_> = self.on_node.values().flatten().filter_map(|it| label(&it.metadata)).collect();
        let idle = self.old_revisions.iter().filter(|it| label(&it.metadata).is_none_or(|it| !of_pods.contains(&it)));
        idle.take(n_surplus).map(|it| revision_history::delete(it)).collect()
    }
}

fn by_node(pods: Vec<&Pod>) -> BTreeMap<&str, Vec<&Pod>> {
    let mut on_node: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in pods.into_iter().filter(|it| !(it.is_finished() && it.metadata.is_deleting())) {
        if let Some(node) = pods::node(pod) {
            on_node.entry(node).or_default().push(pod);
        }
    }
    for pods in on_node.values_mut() {
        pods.sort_by_key(|it| (it.metadata.creation_timestamp, &it.metadata.name));
    }
    on_node
}

fn collision(set: &DaemonSet) -> Plan {
    let mut status = set.status.clone();
    status.collision_count = Some(status.collision_count.unwrap_or(0) + 1);
    let patch = status_patch(resources::DAEMON_SETS, &set.metadata, &set.status, &status);
    let message = "the name of its new revision is taken, another is tried";
    let wait = Wait::new("RevisionNameTaken", message, Actor::Cluster);
    Plan { effects: patch.into_iter().collect(), waits: vec![wait], ..Plan::default() }
}
