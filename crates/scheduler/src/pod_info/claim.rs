//! The claims that a pod needs.

use crate::projections::{PodSpec, Volume};

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
    let claim = |it: &Volume| {
        let named = it.persistent_volume_claim.as_ref().map(|claim| Claim::Named(claim.claim_name.clone()));
        named.or_else(|| it.ephemeral.as_ref().map(|_| Claim::Ephemeral(format!("{pod}-{}", it.name))))
    };
    spec.volumes.iter().filter_map(claim).collect()
}
