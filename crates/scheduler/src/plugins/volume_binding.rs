//! A pod whose volumes are claims waits for its claims.
//!
//! The server has no PersistentVolumeClaims yet, so none can be found and such a pod stays unschedulable: placed, it
//! would wait on its node for a volume nobody makes.

use corten_reconcile::Actor;

use crate::{Plugin, PodInfo, pod_info::Claim};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "VolumeBinding",
    pre_filter: Some(pre_filter),
    actor: Actor::Author,
    wait: "VolumeBinding",
    ..Plugin::NONE
};

fn pre_filter(pod: &PodInfo) -> Option<String> {
    pod.claims.first().map(|it| match it {
        Claim::Named(name) => format!("persistentvolumeclaim {name:?} is not bound: this release binds no volumes"),
        Claim::Ephemeral(name) => {
            format!("waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}")
        }
    })
}
