//! A pod runs where its volumes are, or can be made. One that waits for claims which get theirs without it waits with them.

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    among::Among,
    framework::{Reason, Refusal, Rejection},
    snapshot::{Row, Snapshot},
    storage,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "VolumeBinding",
    pre_filter: Some(pre_filter),
    filter_among: Some(filter),
    skips: Some(|pod, _, _| pod.claims.is_empty()),
    actor: Actor::Author,
    wait: "VolumeBinding",
    ..Plugin::NONE
};

fn pre_filter(pod: &PodInfo, snapshot: &Snapshot) -> Option<Refusal> {
    let (message, claim) = storage::refusal(pod, &snapshot.storage)?;
    Some(Refusal { message, claim: Some(("PersistentVolumeClaim", claim)) })
}

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, among: &Among<'_>, rejection: &mut Rejection<'p>) {
    if pod.claims.is_empty() {
        return;
    }
    let Err(conflicts) = among.volumes.on(row.name, row.labels) else { return };
    for (applies, text) in [
        (conflicts.elsewhere, "node(s) didn't match PersistentVolume's node affinity"),
        (conflicts.none_found, "node(s) didn't find available persistent volumes to bind"),
        (conflicts.no_room, "node(s) did not have enough free storage"),
        (conflicts.missing, "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"),
    ] {
        if applies {
            rejection.finally_because(Reason::Text(text));
        }
    }
}
