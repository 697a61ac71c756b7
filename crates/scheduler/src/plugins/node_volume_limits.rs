//! A node takes no more volumes of a CSI driver than its CSINode says.

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

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, among: &Among<'_>, rejection: &mut Rejection<'p>) {
    if pod.claims.is_empty() {
        return;
    }
    let storage = among.volumes.storage();
    let Some(limits) = storage.limits(row.name) else { return };
    let own = handles(pod, storage);
    if !own.keys().any(|it| limits.contains_key(*it)) {
        return;
    }
    let mut all = own.clone();
    for pod in row.pods.values().filter(|it| !it.claims.is_empty()) {
        for (driver, handles) in handles(pod, storage) {
            all.entry(driver).or_default().extend(handles);
        }
    }
    let is_beyond = |driver: &&str| limits.get(*driver).is_some_and(|limit| all[driver].len() > *limit);
    if own.keys().any(is_beyond) {
        rejection.because(Reason::Text("node(s) exceed max volume count"));
    }
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
