//! A pod whose volumes are claims waits for its claims.
//!
//! The server has no PersistentVolumeClaims yet, so none can be found and such a pod stays unschedulable: placed, it
//! would wait on its node for a volume nobody makes.

use corten_reconcile::Actor;

use crate::{Plugin, PodInfo, seen::PodSpec};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "VolumeBinding",
    pre_filter: Some(pre_filter),
    actor: Actor::Author,
    wait: "VolumeBinding",
    ..Plugin::NONE
};

/// A PersistentVolumeClaim a pod needs, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    Named(String),
    /// To be made for the pod alone, from a volume's `ephemeral` template.
    Ephemeral(String),
}

impl Claim {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Named(name) | Self::Ephemeral(name) => name,
        }
    }
}

pub(crate) fn claims(pod: &str, spec: &PodSpec) -> Vec<Claim> {
    let claim = |it: &crate::seen::Volume| {
        let named = it.persistent_volume_claim.as_ref().map(|claim| Claim::Named(claim.claim_name.clone()));
        named.or_else(|| it.ephemeral.as_ref().map(|_| Claim::Ephemeral(format!("{pod}-{}", it.name))))
    };
    spec.volumes.iter().filter_map(claim).collect()
}

fn pre_filter(pod: &PodInfo) -> Option<String> {
    pod.claims.first().map(|it| match it {
        Claim::Named(name) => format!("persistentvolumeclaim {name:?} is not bound: this release binds no volumes"),
        Claim::Ephemeral(name) => {
            format!("waiting for ephemeral volume controller to create the persistentvolumeclaim {name:?}")
        }
    })
}
