//! A pod runs where its claims for devices have theirs, or can be given some. One that waits for its claims waits with them.

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    among::Among,
    devices::{self, Conflict, PodDevices},
    framework::{Reason, Refusal, Rejection},
    snapshot::{Row, Snapshot},
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "DynamicResources",
    pre_filter: Some(pre_filter),
    filter_among: Some(filter),
    skips: Some(|pod, _, _| !pod.may_be_given_devices()),
    actor: Actor::Operator,
    wait: "DynamicResources",
    ..Plugin::NONE
};

fn pre_filter(pod: &PodInfo, snapshot: &Snapshot) -> Option<Refusal> {
    let (message, claim) = devices::refusal(pod, &snapshot.devices)?;
    Some(Refusal { message, claim: claim.map(|it| ("ResourceClaim", it)) })
}

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, among: &Among<'_>, rejection: &mut Rejection<'p>) {
    if !PodDevices::matter(pod, row.for_devices(), row.classes) {
        return;
    }
    match among.devices.on(row.for_devices()) {
        Ok(_) => {}
        Err(Conflict::Elsewhere) => rejection.finally_because(Reason::Text("resourceclaim not available on the node")),
        Err(Conflict::TooMuchWork) => rejection.finally_because(Reason::Text(devices::TIMED_OUT)),
        Err(Conflict::NoDevices) => rejection.finally_because(Reason::Text("cannot allocate all claims")),
    }
}
