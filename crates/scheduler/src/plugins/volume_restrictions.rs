//! A claim that is ReadWriteOncePod is for one pod: no other is placed while a pod uses it.

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    among::Among,
    framework::{Reason, Rejection},
    snapshot::Row,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "VolumeRestrictions",
    filter_among: Some(filter),
    skips: Some(|pod, _, _| pod.claims.is_empty()),
    actor: Actor::Author,
    wait: "VolumeRestrictions",
    ..Plugin::NONE
};

fn filter<'p>(pod: &'p PodInfo, _row: &Row<'_>, among: &Among<'_>, rejection: &mut Rejection<'p>) {
    if !pod.claims.is_empty() && among.is_claim_taken() {
        let text = "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode";
        rejection.because(Reason::Text(text));
    }
}
