//! A Pod whose containers are resized: what they ask for, what they may have instead, and what stands in its way.

use std::{collections::BTreeMap, time::Duration};

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Quantity, Time};
use corten_reconcile::{Condition, Effect, or_default, projection};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{
    peak::{amount, quantity, step},
    spec::Recommendation,
};

/// What differs by less is left as it is: each resize is a change of cgroups, and of what the scheduler knows.
const TOLERATED_PERCENT: i64 = 10;
/// What a Pod will need is not known before. Processor time that is missing makes it slow, memory ends it.
const FIRST_HOUR: Duration = Duration::from_secs(60 * 60);

#[derive(Deserialize)]
pub(super) struct ResizedPod {
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}
projection!(ResizedPod, resources::PODS);

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: Box<str>,
    containers: Box<[Container]>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container {
    name: Box<str>,
    resources: Requirements,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Requirements {
    #[serde(deserialize_with = "or_default")]
    requests: BTreeMap<String, Quantity>,
    #[serde(deserialize_with = "or_default")]
    limits: BTreeMap<String, Quantity>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: Box<str>,
    start_time: Option<Time>,
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<Condition>,
}

/// Why a Pod is not given what is recommended.
pub(super) enum Obstacle {
    /// An earlier resize is under way, or waits for room.
    Resizing(String),
    /// The node can never give it.
    Infeasible(String),
    /// It asks for none of the resource, and a resize may not change its QoS class.
    NoRequest { container: String, resource: String },
    /// It has only just begun: what it has not used yet it may need.
    TooEarly { container: String },
    /// Its limit is less than what is recommended.
    Limit { container: String, resource: String },
}

/// What is to be done about a Pod.
#[derive(Default)]
pub(super) struct Resizing {
    pub(super) patch: Option<Effect>,
    pub(super) obstacles: Vec<Obstacle>,
}

impl ResizedPod {
    pub(super) fn is_running(&self) -> bool {
        &*self.status.phase == "Running" && !self.metadata.is_deleting()
    }

    pub(super) fn node(&self) -> Key {
        Key::cluster(&*self.spec.node_name)
    }

    pub(super) fn containers(&self) -> impl Iterator<Item = &str> {
        self.spec.containers.iter().map(|it| &*it.name)
    }

    pub(super) fn resizing(&self, wanted: &[Recommendation], now: Time) -> Resizing {
        let mut obstacles = Vec::new();
        let is_young = self.status.start_time.is_none_or(|it| now.since(it) < FIRST_HOUR);
        let containers: Vec<Value> =
            self.spec.containers.iter().filter_map(|it| it.resized(wanted, is_young, &mut obstacles)).collect();
        if containers.is_empty() {
            return Resizing { patch: None, obstacles };
        }
        if let Some(obstacle) = self.earlier() {
            return Resizing { patch: None, obstacles: vec![obstacle] };
        }
        let patch = json!({ "metadata": { "uid": self.metadata.uid }, "spec": { "containers": containers } });
        let key = self.metadata.key();
        let patch = Effect::StrategicPatch { resource: resources::PODS, key, subresource: Some("resize"), patch };
        Resizing { patch: Some(patch), obstacles }
    }

    /// What became of an earlier resize, while it is not done (`PodResizePending`, `PodResizeInProgress`).
    fn earlier(&self) -> Option<Obstacle> {
        let holds = |kind: &str| self.status.conditions.iter().find(|it| it.r#type == kind && it.status == "True");
        if let Some(pending) = holds("PodResizePending") {
            let message = pending.message.clone();
            let is_final = pending.reason == "Infeasible";
            // What can never be given is asked for no more: something smaller may be.
            return (!is_final).then_some(Obstacle::Resizing(message));
        }
        holds("PodResizeInProgress").map(|it| Obstacle::Resizing(it.message.clone()))
    }

    /// The node has said that it can never give what was asked for.
    pub(super) fn infeasible(&self) -> Option<Obstacle> {
        let is_it =
            |it: &&Condition| it.r#type == "PodResizePending" && it.status == "True" && it.reason == "Infeasible";
        self.status.conditions.iter().find(is_it).map(|it| Obstacle::Infeasible(it.message.clone()))
    }
}

impl Container {
    /// The container with other requests, where they differ by more than is tolerated.
    fn resized(&self, wanted: &[Recommendation], is_young: bool, obstacles: &mut Vec<Obstacle>) -> Option<Value> {
        let (mut requests, mut limits) = (Map::new(), Map::new());
        for it in wanted.iter().filter(|it| *it.container == *self.name) {
            let named = || (it.container.clone(), it.resource.clone());
            let Some(request) = self.resources.requests.get(&it.resource).copied() else {
                let (container, resource) = named();
                obstacles.push(Obstacle::NoRequest { container, resource });
                continue;
            };
            let limit = self.resources.limits.get(&it.resource).copied();
            let mut target = it.target;
            // Who has a limit that is the request keeps it so: it may be what makes the Pod Guaranteed.
            let moves_limit = limit == Some(request);
            if let Some(limit) = limit.filter(|limit| !moves_limit && *limit <= target) {
                if limit < target {
                    let (container, resource) = named();
                    obstacles.push(Obstacle::Limit { container, resource });
                }
                // Requests that are all limits would make the Pod Guaranteed: no resize may change its QoS class.
                let below = amount(&it.resource, limit).saturating_sub(step(&it.resource));
                target = quantity(&it.resource, below).max(request);
            }
            if is_tolerated(amount(&it.resource, request), amount(&it.resource, target)) {
                continue;
            }
            if is_young && it.resource == "memory" && target < request {
                obstacles.push(Obstacle::TooEarly { container: it.container.clone() });
                continue;
            }
            requests.insert(it.resource.clone(), json!(target));
            if moves_limit {
                limits.insert(it.resource.clone(), json!(target));
            }
        }
        if requests.is_empty() {
            return None;
        }
        let mut resources = json!({ "requests": requests });
        if !limits.is_empty() {
            resources["limits"] = Value::Object(limits);
        }
        Some(json!({ "name": self.name, "resources": resources }))
    }
}

fn is_tolerated(request: i64, target: i64) -> bool {
    let difference = i128::from(request) - i128::from(target);
    difference.abs() * 100 <= i128::from(request) * i128::from(TOLERATED_PERCENT)
}
