//! A pod's claim for devices: one of that name, or one that is made for the pod.

use corten_meta::Key;

use crate::{Pod, PodInfo};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DeviceClaimRef {
    /// `None`: it is not made yet.
    name: Option<String>,
    /// It is made for the pod, from a template.
    pub(crate) is_made: bool,
}

impl DeviceClaimRef {
    /// Those that are needed: one that was made without a name is not.
    pub(crate) fn all(pod: &Pod) -> Vec<Self> {
        let made = |name: &str| pod.status.resource_claim_statuses.iter().find(|it| it.name == name);
        let one = |it: &crate::projections::ResourceClaim| match (&it.resource_claim_name, made(&it.name)) {
            (Some(name), _) => Some(Self { name: Some(name.clone()), is_made: false }),
            (None, None) => Some(Self { name: None, is_made: true }),
            (None, Some(made)) => made.resource_claim_name.clone().map(|name| Self { name: Some(name), is_made: true }),
        };
        pod.spec.resource_claims.iter().filter_map(one).collect()
    }

    pub(crate) fn key(&self, pod: &PodInfo) -> Option<Key> {
        self.name.as_ref().map(|it| Key::new(&*pod.key.namespace, it.as_str()))
    }
}
