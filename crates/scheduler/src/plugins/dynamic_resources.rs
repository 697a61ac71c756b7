//! A pod runs where its claims for devices have theirs, or can be given some: rather where they are given what they name first. One that
//! waits for its claims waits with them.

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    among::Among,
    devices::{self, Conflict, PodDevices},
    framework::{Points, Reason, Refusal, Rejection, SCORE_MAX, Score, Scoring},
    snapshot::{Row, Snapshot},
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "DynamicResources",
    pre_filter: Some(pre_filter),
    filter_among: Some(filter),
    skips: Some(|pod, _, _| !pod.may_be_given_devices()),
    score: Some(Score { weight: 1, points: Points::All(points) }),
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

/// The further in front what a claim is given stands in `firstAvailable`, the better; the best of the nodes has all points.
fn points(scoring: &Scoring<'_>) -> Option<Vec<i64>> {
    let Scoring { pod, snapshot, feasible, .. } = *scoring;
    if pod.device_claims.is_empty() {
        return None;
    }
    let devices = PodDevices::of(pod, &snapshot.devices);
    if !devices.have_alternatives() {
        return None;
    }
    let mut points: Vec<i64> = feasible.iter().map(|it| devices.rank_on(snapshot.row_at(*it).for_devices())).collect();
    let most = points.iter().copied().max().filter(|it| *it > 0)?;
    points.iter_mut().for_each(|it| *it = *it * SCORE_MAX / most);
    Some(points)
}
