//! The fields of slices, classes and claims that the scheduler reads.

use corten_api::{
    resource::v1::{DeviceClassSpec, ResourceClaimSpec, ResourceClaimStatus, ResourceSliceSpec},
    resources,
};
use corten_meta::{Named, ObjectMeta, Resource};
use corten_reconcile::Projection;
use serde::Deserialize;

/// An object about devices that is new or changed.
#[derive(Clone, Debug)]
pub enum DeviceObject {
    Slice(DeviceSlice),
    Class(DeviceClass),
    Claim(DeviceClaim),
}

#[derive(Clone, Debug, Deserialize)]
pub struct DeviceSlice {
    pub metadata: ObjectMeta,
    pub(crate) spec: ResourceSliceSpec,
}

#[derive(Clone, Debug, Deserialize)]
pub struct DeviceClass {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: Option<DeviceClassSpec>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct DeviceClaim {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: ResourceClaimSpec,
    #[serde(default)]
    pub(crate) status: Option<ResourceClaimStatus>,
}

macro_rules! projection {
    ($($type:ident, $variant:ident: $resource:expr,)*) => {
        $(
            impl Named for $type {
                fn meta(&self) -> &ObjectMeta {
                    &self.metadata
                }
            }
            impl Projection for $type {
                const RESOURCE: Resource = $resource;
            }
            impl From<$type> for DeviceObject {
                fn from(object: $type) -> Self {
                    Self::$variant(object)
                }
            }
        )*
    };
}
projection! {
    DeviceSlice, Slice: resources::RESOURCE_SLICES,
    DeviceClass, Class: resources::DEVICE_CLASSES,
    DeviceClaim, Claim: resources::RESOURCE_CLAIMS,
}
