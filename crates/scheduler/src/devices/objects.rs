//! The fields of slices, classes and claims that the scheduler reads.

use corten_allocator::TaintRule;
use corten_api::{
    resource::v1::{DeviceClassSpec, DeviceTaint, ResourceClaimSpec, ResourceClaimStatus, ResourceSliceSpec},
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
    TaintRule(DeviceTaintRule),
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

#[derive(Clone, Debug, Deserialize)]
pub struct DeviceTaintRule {
    pub metadata: ObjectMeta,
    spec: TaintRuleSpec,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaintRuleSpec {
    /// Without one it is about no device; an empty one is about all.
    #[serde(default)]
    device_selector: Option<TaintSelector>,
    taint: DeviceTaint,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct TaintSelector {
    driver: Option<String>,
    pool: Option<String>,
    device: Option<String>,
}

impl DeviceTaintRule {
    pub(crate) fn rule(self) -> Option<TaintRule> {
        let TaintRuleSpec { device_selector, taint } = self.spec;
        device_selector.map(|TaintSelector { driver, pool, device }| TaintRule { driver, pool, device, taint })
    }
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
    DeviceTaintRule, TaintRule: resources::DEVICE_TAINT_RULES,
}
