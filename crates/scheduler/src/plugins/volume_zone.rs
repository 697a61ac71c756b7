//! A bound volume that is labelled with zones or regions is used on nodes of one of them.

use std::collections::BTreeMap;

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    among::Among,
    framework::{Reason, Rejection},
    snapshot::Row,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "VolumeZone",
    filter_among: Some(filter),
    skips: Some(|pod, _, _| pod.claims.is_empty()),
    actor: Actor::Operator,
    wait: "VolumeZone",
    ..Plugin::NONE
};

/// Each with the name it has had before.
const LABELS: [(&str, &str); 2] = [
    ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"),
];

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, among: &Among<'_>, rejection: &mut Rejection<'p>) {
    if pod.claims.is_empty() {
        return;
    }
    let volumes = || among.volumes.bound.iter().filter_map(|it| it.1);
    if !volumes().all(|it| LABELS.iter().all(|names| is_near(*names, &it.metadata.labels, row.labels))) {
        rejection.finally_because(Reason::Text("node(s) had no available volume zone"));
    }
}

/// A volume may be in several zones: `a__b`. A node without any such label is not told from others.
fn is_near((name, old_name): (&str, &str), volume: &BTreeMap<String, String>, node: &BTreeMap<String, String>) -> bool {
    let has_labels = LABELS.iter().any(|it| node.contains_key(it.0) || node.contains_key(it.1));
    let Some(zones) = volume.get(name).or_else(|| volume.get(old_name)).filter(|_| has_labels) else { return true };
    let of_node = node.get(name).or_else(|| node.get(old_name));
    of_node.is_some_and(|of_node| zones.split("__").any(|it| it == of_node))
}
