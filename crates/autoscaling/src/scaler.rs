//! An autoscaler's own object, of either kind.

use corten_meta::{Named, ObjectMeta, Resource};
use corten_reconcile::Projection;
use serde::{Deserialize, de::DeserializeOwned};

/// What is wanted by one kind of autoscalers.
pub(crate) trait ScalerSpec: PartialEq + DeserializeOwned + Send + Sync + 'static {
    type Status: Default + DeserializeOwned + Send + Sync + 'static;
    const RESOURCE: Resource;
}

#[derive(Deserialize)]
#[serde(bound = "")]
pub(crate) struct Scaler<S: ScalerSpec> {
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: S,
    #[serde(default)]
    pub(crate) status: S::Status,
}

impl<S: ScalerSpec> Named for Scaler<S> {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}
impl<S: ScalerSpec> Projection for Scaler<S> {
    const RESOURCE: Resource = S::RESOURCE;
}

/// A status says what was looked at: it calls for no new look.
impl<S: ScalerSpec> PartialEq for Scaler<S> {
    fn eq(&self, other: &Self) -> bool {
        let is_same = self.metadata.uid == other.metadata.uid && self.spec == other.spec;
        is_same && self.metadata.is_deleting() == other.metadata.is_deleting()
    }
}
