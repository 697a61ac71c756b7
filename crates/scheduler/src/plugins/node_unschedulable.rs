//! A cordoned node (`spec.unschedulable`) takes only pods that tolerate its taint of the same meaning.

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    framework::{Gap, Reason},
    placement::tolerates,
    snapshot::Row,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "NodeUnschedulable",
    filter: Some(filter),
    gap: Some(Gap { size: |_, _| 0, text: |_, _| "is cordoned".into() }),
    actor: Actor::Operator,
    wait: "NodeUnschedulable",
    ..Plugin::NONE
};

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, reasons: &mut Vec<Reason<'p>>) {
    if !row.unschedulable {
        return;
    }
    if !tolerates(&pod.tolerations, "node.kubernetes.io/unschedulable", "", "NoSchedule") {
        reasons.push(Reason::Text("node(s) were unschedulable"));
    }
}
