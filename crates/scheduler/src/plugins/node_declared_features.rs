//! A pod goes only to nodes that declare what it needs of them (`status.declaredFeatures`, KEP-5328).

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    arguments::Arguments,
    framework::{Reason, Rejection, Shortfall},
    snapshot::Row,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "NodeDeclaredFeatures",
    filter: Some(filter),
    // Nearly all pods. The filter stands after those that look beyond the node, so what it says of a node is not kept.
    skips: Some(|pod, _, _| pod.features.is_empty()),
    shortfall: Some(Shortfall {
        size: |pod, row, _| i64::try_from(missing(pod, row).count()).unwrap_or(i64::MAX),
        text,
    }),
    actor: Actor::Operator,
    wait: "NodeDeclaredFeatures",
    ..Plugin::NONE
};

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, _: &Arguments, rejection: &mut Rejection<'p>) {
    if missing(pod, row).next().is_some() {
        rejection.finally_because(Reason::Text("node(s) didn't match Pod's required features"));
    }
}

fn missing<'a>(pod: &'a PodInfo, row: &'a Row<'_>) -> impl Iterator<Item = &'static str> + 'a {
    pod.features.iter().copied().filter(|it| !row.features.iter().any(|declared| declared == it))
}

fn text(pod: &PodInfo, row: &Row<'_>, _: &Arguments) -> String {
    format!("does not declare {}", missing(pod, row).collect::<Vec<_>>().join(", "))
}
