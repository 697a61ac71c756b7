//! A deployment with its ReplicaSets, the numbers its strategy allows, and the plan in the making.

use corten_api::resources;
use corten_meta::Time;
use corten_reconcile::{Effect, EventType, Plan, View, status::exact_patch};
use serde_json::{Value, json};

use super::{revision, template};
use crate::{
    int_or_percent,
    ownership::controller_reference,
    projections::{Deployment, DeploymentStatus, ReplicaSet, reference},
};

pub(super) struct Rollout<'a> {
    pub(super) view: &'a View,
    pub(super) deployment: &'a Deployment,
    /// The set whose template is the deployment's, if there is one.
    pub(super) new: Option<&'a ReplicaSet>,
    /// All others, oldest first.
    pub(super) old: Vec<&'a ReplicaSet>,
    pub(super) now: Time,
    pub(super) effects: Vec<Effect>,
    /// The status as it is written down while the rollout goes on; the counts come last.
    pub(super) status: DeploymentStatus,
}

impl<'a> Rollout<'a> {
    pub(super) fn new(view: &'a View, deployment: &'a Deployment, mut sets: Vec<&'a ReplicaSet>, now: Time) -> Self {
        sets.sort_by_key(|it| (it.metadata.creation_timestamp, &it.metadata.name));
        let new = find_new(deployment, &sets);
        let old = sets.into_iter().filter(|it| new.is_none_or(|new| new.metadata.uid != it.metadata.uid)).collect();
        Self { view, deployment, new, old, now, effects: Vec::new(), status: deployment.status.clone() }
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &'a ReplicaSet> {
        self.old.clone().into_iter().chain(self.new)
    }

    /// The sets that want pods.
    pub(super) fn active(&self) -> impl Iterator<Item = &'a ReplicaSet> {
        self.all().filter(|it| it.spec.replicas > 0)
    }

    pub(super) fn replicas(&self) -> i64 {
        self.deployment.spec.replicas
    }

    fn is_rolling(&self) -> bool {
        self.deployment.spec.strategy.r#type != "Recreate"
    }

    /// How many pods more than wanted there may be.
    pub(super) fn surge_max(&self) -> i64 {
        if self.is_rolling() { self.fenceposts().0 } else { 0 }
    }

    /// How many pods fewer than wanted may be available.
    pub(super) fn unavailable_max(&self) -> i64 {
        if self.is_rolling() && self.replicas() > 0 { self.fenceposts().1.min(self.replicas()) } else { 0 }
    }

    /// `maxSurge` rounds up and `maxUnavailable` down; if both come out as zero nothing could move, so one pod may be missing.
    fn fenceposts(&self) -> (i64, i64) {
        let rule = &self.deployment.spec.strategy.rolling_update;
        let surge = int_or_percent::rounded_up(&rule.max_surge, self.replicas());
        let unavailable = int_or_percent::rounded_down(&rule.max_unavailable, self.replicas());
        if surge == 0 && unavailable == 0 { (0, 1) } else { (surge, unavailable) }
    }

    /// Did someone change `spec.replicas` since the sets were last sized?
    pub(super) fn is_resized(&self) -> bool {
        self.active().any(|it| revision::desired(it).is_some_and(|desired| desired != self.replicas()))
    }

    /// How many pods the new set should have now, given what the strategy leaves room for.
    pub(super) fn new_set_replicas(&self) -> i64 {
        let current = self.new.map_or(0, |it| it.spec.replicas);
        if !self.is_rolling() {
            return self.replicas();
        }
        let total_max = self.replicas() + self.surge_max();
        let total: i64 = self.all().map(|it| it.spec.replicas).sum();
        if total >= total_max {
            return current;
        }
        current + (total_max - total).min(self.replicas() - current)
    }

    /// Brings the new set's annotations up to date, and its revision to the front. Says whether that took a patch.
    pub(super) fn adopt_revision(&mut self) -> bool {
        let Some(set) = self.new else { return false };
        let next = revision::next(&self.old);
        let annotations = revision::annotations(self.deployment, set, next);
        let min_ready = self.deployment.spec.min_ready_seconds;
        if annotations.is_empty() && set.spec.min_ready_seconds == min_ready {
            self.note_revision(revision::of(set).max(next));
            return false;
        }
        let mut patch = json!({});
        if !annotations.is_empty() {
            patch["metadata"]["annotations"] = Value::Object(annotations);
        }
        if set.spec.min_ready_seconds != min_ready {
            patch["spec"]["minReadySeconds"] = json!(min_ready);
        }
        self.effects.push(exact_patch(resources::REPLICA_SETS, &set.metadata, patch));
        self.note_revision(revision::of(set).max(next));
        true
    }

    /// Shows the new set's revision at the deployment.
    fn note_revision(&mut self, number: i64) {
        let number = number.to_string();
        let meta = &self.deployment.metadata;
        if meta.annotations.get(revision::REVISION) != Some(&number) {
            let patch = json!({ "metadata": { "uid": meta.uid, "annotations": { revision::REVISION: number } } });
            let (resource, key) = (resources::DEPLOYMENTS, meta.key());
            // By the status: a changed annotation counts up the generation (deploymentStrategy.PrepareForUpdate).
            self.effects.push(Effect::Patch { resource, key, subresource: Some("status"), patch });
        }
    }

    /// Makes the ReplicaSet of the deployment's template. Its name may be another's: then the collision is counted, and
    /// the next call tries another name.
    pub(super) fn create_new_set(&mut self) {
        let hash = template::hash(&self.deployment.spec.template, self.status.collision_count.unwrap_or(0));
        let key = template::set_key(&self.deployment.metadata, &hash);
        if self.view.get::<ReplicaSet>(&key).is_some() {
            self.status.collision_count = Some(self.status.collision_count.unwrap_or(0) + 1);
            return;
        }
        let replicas = self.new_set_replicas();
        let number = revision::next(&self.old);
        match super::progress::create_failure(self) {
            Some(error) => self.say_create_failed(&key.name, &error),
            None => super::progress::created_set(self, &key.name),
        }
        let object = self.new_set(&key.name, &hash, replicas, number);
        self.effects.push(Effect::Create { resource: resources::REPLICA_SETS, object });
        if replicas > 0 {
            self.event(format!("Scaled up replica set {} from 0 to {replicas}", key.name));
        }
        self.note_revision(number);
    }

    /// The create is tried again, but what failed is said first: if it fails again, nothing behind it is done.
    fn say_create_failed(&mut self, name: &str, error: &str) {
        let message = format!("Failed to create new replica set {name:?}: {error}");
        super::progress::create_failed(self, &message);
        let about = reference(self.deployment);
        let (event_type, reason) = (EventType::Warning, super::progress::CREATE_FAILED);
        self.effects.push(Effect::Event { about, event_type, reason, message });
    }

    fn new_set(&self, name: &str, hash: &str, replicas: i64, number: i64) -> Value {
        let spec = &self.deployment.spec;
        let mut pod_template = spec.template.clone();
        pod_template["metadata"]["labels"][template::HASH_LABEL] = json!(hash);
        let mut selector = serde_json::to_value(&spec.selector.written).expect("a selector can be written");
        selector["matchLabels"][template::HASH_LABEL] = json!(hash);
        let mut annotations = revision::copied(self.deployment);
        annotations.insert(revision::REVISION.into(), json!(number.to_string()));
        annotations.extend(revision::sizes(self.replicas(), self.surge_max()));
        let mut object = json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": name,
                "namespace": self.deployment.metadata.namespace,
                "labels": pod_template["metadata"]["labels"],
                "annotations": annotations,
                "ownerReferences": [controller_reference::<Deployment>(&self.deployment.metadata)],
            },
            "spec": { "replicas": replicas, "selector": selector, "template": pod_template },
        });
        if spec.min_ready_seconds > 0 {
            object["spec"]["minReadySeconds"] = json!(spec.min_ready_seconds);
        }
        object
    }

    /// Sets a set's size, and notes at it for which size of the deployment that was. Says whether anything had to change.
    pub(super) fn resize(&mut self, set: &ReplicaSet, replicas: i64) -> bool {
        let sizes = revision::sizes(self.replicas(), self.surge_max());
        let is_noted =
            sizes.iter().all(|(name, value)| set.metadata.annotations.get(name).map(String::as_str) == value.as_str());
        let from = set.spec.replicas;
        if from == replicas && is_noted {
            return false;
        }
        let patch = json!({ "metadata": { "annotations": sizes }, "spec": { "replicas": replicas } });
        self.effects.push(exact_patch(resources::REPLICA_SETS, &set.metadata, patch));
        if from != replicas {
            let way = if replicas > from { "up" } else { "down" };
            self.event(format!("Scaled {way} replica set {} from {from} to {replicas}", set.metadata.name));
        }
        from != replicas
    }

    fn event(&mut self, message: String) {
        let about = reference(self.deployment);
        let (event_type, reason) = (EventType::Normal, "ScalingReplicaSet");
        self.effects.push(Effect::Event { about, event_type, reason, message });
    }

    /// Deletes the oldest sets without pods that are more than the history limit.
    pub(super) fn clean_up(&mut self) {
        let Some(limit) = self.deployment.spec.revision_history_limit.filter(|it| *it != i64::from(i32::MAX)) else {
            return;
        };
        let mut sets: Vec<_> = self.old.iter().copied().filter(|it| !it.metadata.is_deleting()).collect();
        sets.sort_by_key(|it| revision::of(it));
        let n_surplus = sets.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        let is_idle = |it: &&ReplicaSet| {
            it.spec.replicas == 0 && it.status.replicas == 0 && it.metadata.generation <= it.status.observed_generation
        };
        let deletes = sets.into_iter().take(n_surplus).filter(is_idle).map(|it| Effect::Delete {
            resource: resources::REPLICA_SETS,
            key: it.metadata.key(),
            uid: it.metadata.uid.clone(),
            propagation: corten_reconcile::Propagation::Background,
            grace_seconds: None,
        });
        self.effects.extend(deletes);
    }

    /// The plan of a step that looks at nothing but numbers.
    pub(super) fn with_counts(mut self) -> Plan {
        super::progress::count(&mut self);
        super::progress::finish(self, None)
    }
}

/// As in `FindNewReplicaSet`: of several sets with the deployment's template, the oldest. Beyond it: a set that was made
/// from this template but does not look so, because the server completed it by other rules, is the new one all the same;
/// else a new one would be made again and again.
fn find_new<'a>(deployment: &Deployment, sets: &[&'a ReplicaSet]) -> Option<&'a ReplicaSet> {
    let template = &deployment.spec.template;
    let is_equal = |it: &&ReplicaSet| template::are_equal(&it.spec.template, template);
    let hash = template::hash(template, deployment.status.collision_count.unwrap_or(0));
    let is_named_so = |it: &&ReplicaSet| it.metadata.labels.get(template::HASH_LABEL) == Some(&hash);
    sets.iter().copied().find(is_equal).or_else(|| sets.iter().copied().find(is_named_so))
}
