//! A node takes no more volumes of a CSI driver than its CSINode says, and none of a driver that it does not have, where that one
//! wants it so (`preventPodSchedulingIfMissing`).

use std::collections::{BTreeMap, BTreeSet};

use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    among::Among,
    framework::{Reason, Rejection},
    snapshot::Row,
    storage::{PodVolumes, Storage},
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "NodeVolumeLimits",
    filter_among: Some(filter),
    skips: Some(|pod, _, _| pod.claims.is_empty()),
    actor: Actor::Operator,
    wait: "NodeVolumeLimits",
    ..Plugin::NONE
};

type Handles<'a> = BTreeMap<&'a str, BTreeSet<String>>;

fn filter<'a>(pod: &'a PodInfo, row: &Row<'_>, among: &Among<'a>, rejection: &mut Rejection<'a>) {
    if pod.claims.is_empty() {
        return;
    }
    let storage = among.volumes.storage();
    let (own, limits) = (handles(pod, storage), storage.limits(row.name));
    let is_there = |driver: &str| limits.is_some_and(|it| it.contains_key(driver));
    if let Some(driver) = own.keys().copied().find(|it| storage.is_needed_on_node(it) && !is_there(it)) {
        rejection.because(Reason::NoDriver(driver));
        return;
    }
    let limit = |driver: &str| *limits?.get(driver)?;
    if !own.keys().any(|it| limit(it).is_some()) {
        return;
    }
    let there = there(row, storage);
    let is_beyond = |(driver, own): (&&str, &BTreeSet<String>)| {
        let there = there.get(driver);
        let n_new = own.iter().filter(|it| there.is_none_or(|there| !there.contains(*it))).count();
        let n_there = there.map_or(0, BTreeSet::len);
        n_new > 0 && limit(driver).is_some_and(|it| n_there + n_new > it)
    };
    if own.iter().any(is_beyond) {
        rejection.because(Reason::Text("node(s) exceed max volume count"));
    }
}

/// What pods of the node have, and what is attached to it: its pods may have left, or not have come yet.
fn there<'a>(row: &Row<'_>, storage: &'a Storage) -> Handles<'a> {
    let mut all = Handles::new();
    for pod in row.pods.values().filter(|it| !it.claims.is_empty()) {
        for (driver, handles) in handles(pod, storage) {
            all.entry(driver).or_default().extend(handles);
        }
    }
    for csi in storage.attached(row.name) {
        all.entry(&csi.driver).or_default().insert(csi.volume_handle.clone());
    }
    all
}

/// A volume that several pods of a node use counts once; one that is not made yet counts as its claim.
fn handles<'a>(pod: &PodInfo, storage: &'a Storage) -> Handles<'a> {
    let (volumes, mut all) = (PodVolumes::of(pod, storage, |_| true), Handles::new());
    for volume in volumes.bound.iter().filter_map(|it| it.1) {
        if let Some(csi) = &volume.spec.csi {
            all.entry(&csi.driver).or_default().insert(csi.volume_handle.clone());
        }
    }
    for (claim, _) in &volumes.unbound {
        if let Some(driver) = storage.provisioner(claim) {
            all.entry(driver).or_default().insert(claim.metadata.key().to_string());
        }
    }
    all
}
