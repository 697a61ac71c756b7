//! Deletes pods that nobody else will: of nodes that are gone, of nodes out of service, of no node, and too many ended ones.
//!
//! A key is a node's name; a pod without a node has its own, and all ended pods together have [`ENDED`].

use std::time::Duration;

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{
    Actor, Answer, Controller, EFFECTS_MAX, Effect, Plan, Propagation, Table, Verb, View, Wait, Wake, Watch, Write,
};
use serde_json::json;

use crate::{
    projections::{Node, Pod},
    taint_eviction::disrupted,
};

/// Upstream's `--terminated-pod-gc-threshold`.
const ENDED_MAX: usize = 12_500;
/// How long a node must have been gone: it may only have been registered anew.
const QUARANTINE: Duration = Duration::from_secs(40);
/// No node has this name.
const ENDED: &str = "ended pods";
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

pub struct PodGarbageCollector;

impl Controller for PodGarbageCollector {
    fn name(&self) -> &'static str {
        "pod-garbage-collector"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<Pod>(Wake::With(keys_of)), Watch::new::<Node>(Wake::Itself)]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Patch, resource: resources::PODS, fields: &["status.phase", "status.conditions"] },
                Write { verb: Verb::Delete, resource: resources::PODS, fields: &[] },
            ]
        }
    }

    fn about(&self) -> Option<corten_meta::Resource> {
        Some(resources::NODES)
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        if !key.namespace.is_empty() {
            return unscheduled(view, key);
        }
        if key.name == ENDED {
            return Plan { effects: surplus(view, ENDED_MAX), ..Plan::default() };
        }
        match view.get::<Node>(key) {
            Some(node) => out_of_service(view, node),
            None => orphans(view, key, now),
        }
    }
}

fn keys_of(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    let Some(pod) = view.get::<Pod>(&pod.key()) else { return Vec::new() };
    if pod.spec.node_name.is_empty() {
        return if pod.metadata.is_deleting() { vec![pod.metadata.key()] } else { Vec::new() };
    }
    let node = Key::cluster(&*pod.spec.node_name);
    let is_node_well = view.get::<Node>(&node).is_some_and(|it| !is_out_of_service(it));
    let ended = (pod.is_finished() && may_be_too_many(view, pod)).then(|| Key::cluster(ENDED));
    ended.into_iter().chain((!is_node_well).then_some(node)).collect()
}

/// All pods must be looked at to count the ended ones: not before there are so many, and then for one in sixty-four.
fn may_be_too_many(view: &View, pod: &Pod) -> bool {
    let n_pods = view.table(&resources::PODS).map_or(0, Table::len);
    let sum: u32 = pod.metadata.uid.bytes().map(u32::from).sum();
    n_pods > ENDED_MAX && sum.is_multiple_of(64)
}

fn is_out_of_service(node: &Node) -> bool {
    node.spec.taints.iter().any(|it| it.key == OUT_OF_SERVICE)
}

/// A pod that was deleted before it got a node has nobody to end it.
fn unscheduled(view: &View, key: &Key) -> Plan {
    let pod = view.get::<Pod>(key).filter(|it| it.metadata.is_deleting() && it.spec.node_name.is_empty());
    Plan { effects: pod.into_iter().flat_map(|it| end(it, None)).collect(), ..Plan::default() }
}

/// Of more ended pods than are kept, the oldest; evicted ones first.
fn surplus(view: &View, n_max: usize) -> Vec<Effect> {
    let mut ended: Vec<&Pod> = view.list::<Pod>().filter(|it| it.is_finished() && !it.metadata.is_deleting()).collect();
    let n_surplus = ended.len().saturating_sub(n_max);
    if n_surplus == 0 {
        return Vec::new();
    }
    ended.sort_by_key(|it| {
        let is_evicted = it.has_failed() && &*it.status.reason == "Evicted";
        (!is_evicted, it.metadata.creation_timestamp, &it.metadata.name)
    });
    ended.into_iter().take(n_surplus.min(EFFECTS_MAX)).flat_map(|it| end(it, None)).collect()
}

/// An administrator has said that the node will not come back: what is leaving it has left.
fn out_of_service(view: &View, node: &Node) -> Plan {
    if !is_out_of_service(node) || node.ready().is_none_or(|it| it == "True") {
        return Plan::default();
    }
    let leaving = view.on_node::<Pod>(&node.metadata.name).filter(|it| it.metadata.is_deleting());
    let effects = leaving.take(EFFECTS_MAX).flat_map(|it| end(it, None)).collect();
    Plan { effects, ..Plan::default() }
}

fn orphans(view: &View, key: &Key, now: Time) -> Plan {
    let mut pods = view.on_node::<Pod>(&key.name).peekable();
    if pods.peek().is_none() {
        return Plan::default();
    }
    let wait = |message: &str| Wait::new("NodeGone", message, Actor::Cluster);
    match (view.answer(&resources::NODES, key), view.answered_at(&resources::NODES, key)) {
        (Some(Answer::Missing), Some(since)) if now >= since.after(QUARANTINE) => {
            let told = |it| disrupted(it, "DeletionByPodGC", "PodGC: node no longer exists", now);
            let effects = pods.take(EFFECTS_MAX).flat_map(|it| end(it, told(it))).collect();
            Plan { effects, ..Plan::default() }
        }
        (Some(Answer::Missing), Some(since)) => Plan {
            waits: vec![wait("its node is gone; it is given up when that has been so for 40 s")],
            wake_at: Some(since.after(QUARANTINE)),
            ..Plan::default()
        },
        (Some(Answer::Found { .. }), _) => Plan::default(),
        _ => Plan { effects: vec![Effect::Ask { resource: resources::NODES, key: key.clone() }], ..Plan::default() },
    }
}

/// Ends a pod at once, and says so in its status first: there is nobody to ask whether it ran to its end.
fn end(pod: &Pod, told: Option<Effect>) -> Vec<Effect> {
    let (resource, key) = (resources::PODS, pod.metadata.key());
    let mut effects = Vec::new();
    if !pod.is_finished() {
        let mut patch = match told {
            Some(Effect::StrategicPatch { patch, .. }) => patch,
            _ => json!({ "metadata": { "uid": pod.metadata.uid } }),
        };
        patch["status"]["phase"] = json!("Failed");
        effects.push(Effect::StrategicPatch {
            resource: resource.clone(),
            key: key.clone(),
            subresource: Some("status"),
            patch,
        });
    }
    let (uid, propagation) = (pod.metadata.uid.clone(), Propagation::Background);
    effects.push(Effect::Delete { resource, key, uid, propagation, grace_seconds: Some(0) });
    effects
}

#[cfg(test)]
mod tests {
    use corten_reconcile::fixture::World;

    use super::*;

    #[test]
    fn of_too_many_ended_pods_the_evicted_and_the_oldest_go() {
        let text = "pod a failed age=3m\npod b succeeded age=2m\npod c failed age=1m status.reason=Evicted\npod d running age=9m";
        let world = World::parse(text).expect("a world");
        let view = world.view(&PodGarbageCollector.watches());
        let ended = |n_max| surplus(&view, n_max).iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        assert_eq!(ended(3), "");
        assert_eq!(ended(2), "delete Pod default/c");
        assert_eq!(ended(1), "delete Pod default/c, delete Pod default/a");
    }
}
