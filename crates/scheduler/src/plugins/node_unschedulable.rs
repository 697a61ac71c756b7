//! A cordoned node (`spec.unschedulable`) takes only pods that tolerate its taint of the same meaning.

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    arguments::Arguments,
    framework::{Reason, Rejection, Shortfall},
    placement::tolerates,
    snapshot::Row,
};

pub(crate) const NAME: &str = "NodeUnschedulable";

pub(super) const PLUGIN: Plugin = Plugin {
    name: NAME,
    filter: Some(filter),
    shortfall: Some(Shortfall { size: |_, _, _| 0, text: |_, _, _| "is cordoned".into() }),
    actor: Actor::Operator,
    wait: "NodeUnschedulable",
    ..Plugin::NONE
};

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, _: &Arguments, rejection: &mut Rejection<'p>) {
    if !row.unschedulable {
        return;
    }
    if !tolerates(&pod.tolerations, "node.kubernetes.io/unschedulable", "", "NoSchedule") {
        rejection.finally_because(Reason::Text("node(s) were unschedulable"));
    }
}
