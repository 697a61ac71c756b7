//! Tells kubelets by an annotation of their node how long what they read of ConfigMaps and Secrets may be old: the longer, the
//! more nodes there are.
//!
//! As upstream (ttl_controller.go) the ranges of sizes overlap, so that a cluster at an edge does not go to and fro.

use corten_api::resources;
use corten_meta::{Key, Time};
use corten_reconcile::{Controller, Plan, Table, Verb, View, Wake, Watch, Write, status::exact_patch};
use serde_json::json;

use crate::projections::Node;

const ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";

/// Seconds, and the numbers of nodes for which they hold: the first and the last.
const STEPS: [(u32, usize, usize); 5] =
    [(0, 0, 100), (15, 90, 500), (30, 450, 1000), (60, 900, 2000), (300, 1800, usize::MAX)];

pub struct NodeTtl;

impl Controller for NodeTtl {
    fn name(&self) -> &'static str {
        "ttl"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<Node>(Wake::Itself)]
    }

    fn writes(&self) -> &'static [Write] {
        const { &[Write { verb: Verb::Patch, resource: resources::NODES, fields: &["metadata.annotations"] }] }
    }

    fn reconcile(&self, view: &View, key: &Key, _now: Time) -> Plan {
        let Some(node) = view.get::<Node>(key).filter(|it| !it.metadata.is_deleting()) else {
            return Plan::default();
        };
        let told = node.metadata.annotations.get(ANNOTATION);
        let seconds = seconds(view.table(&resources::NODES).map_or(0, Table::len), told.and_then(|it| it.parse().ok()));
        if told.is_some_and(|it| *it == seconds.to_string()) {
            return Plan::default();
        }
        let patch = json!({ "metadata": { "annotations": { ANNOTATION: seconds.to_string() } } });
        Plan { effects: vec![exact_patch(resources::NODES, &node.metadata, patch)], ..Plan::default() }
    }
}

/// What is told already stays as long as it may.
fn seconds(n_nodes: usize, told: Option<u32>) -> u32 {
    let holds = |step: &&(u32, usize, usize)| (step.1..=step.2).contains(&n_nodes);
    let stays = STEPS.iter().find(|it| Some(it.0) == told).filter(holds);
    stays.or_else(|| STEPS.iter().find(holds)).map_or(0, |it| it.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_at_an_edge_keep_what_they_have() {
        for (n_nodes, told, expected) in [
            (1, None, 0),
            (100, None, 0),
            (101, Some(0), 15),
            (95, Some(15), 15),
            (89, Some(15), 0),
            (95, None, 0),
            (1900, Some(60), 60),
            (2001, Some(60), 300),
            (5000, Some(7), 300),
        ] {
            assert_eq!(seconds(n_nodes, told), expected, "{n_nodes} nodes, {told:?}");
        }
    }
}
