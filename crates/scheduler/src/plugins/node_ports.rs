//! Two pods cannot have the same port of the same node: same number and protocol, and an address in common.

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    arguments::Arguments,
    framework::{Reason, Rejection, Shortfall},
    pod_info::HostPort,
    snapshot::Row,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "NodePorts",
    filter: Some(filter),
    shortfall: Some(Shortfall { size: shortfall, text: shortfall_text }),
    actor: Actor::Author,
    wait: "NodePorts",
    ..Plugin::NONE
};

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, _: &Arguments, rejection: &mut Rejection<'p>) {
    if taken(pod, row).next().is_some() {
        rejection.because(Reason::Text("node(s) didn't have free ports for the requested pod ports"));
    }
}

/// The ports the pod asks for and the node has given away.
fn taken<'p>(pod: &'p PodInfo, row: &Row<'p>) -> impl Iterator<Item = &'p HostPort> {
    let ports = row.ports;
    pod.ports.iter().filter(move |it| it.collides_with_any(ports))
}

fn shortfall(pod: &PodInfo, row: &Row<'_>, _: &Arguments) -> i64 {
    i64::try_from(taken(pod, row).count()).unwrap_or(i64::MAX)
}

fn shortfall_text(pod: &PodInfo, row: &Row<'_>, _: &Arguments) -> String {
    let ports = taken(pod, row).map(|it| format!("{}/{}", it.port, it.protocol));
    format!("has given away the port {}", ports.collect::<Vec<_>>().join(", "))
}
