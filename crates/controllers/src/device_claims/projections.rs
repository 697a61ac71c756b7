//! The fields of claims, templates, slices and rules that are read.

use corten_api::resources;
use corten_meta::{Named, ObjectMeta, Resource, Time};
use corten_reconcile::Projection;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::projections::projection;

/// The annotation of a claim that was made for a pod: which of the pod's claims it is.
pub(super) const POD_CLAIM: &str = "resource.kubernetes.io/pod-claim-name";

#[derive(Deserialize)]
pub(super) struct Claim {
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Status {
    pub(super) allocation: Option<Allocation>,
    pub(super) reserved_for: Vec<Consumer>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Allocation {
    devices: Devices,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Devices {
    results: Vec<AllocatedDevice>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct AllocatedDevice {
    pub(super) driver: String,
    pub(super) pool: String,
    pub(super) device: String,
    pub(super) tolerations: Vec<DeviceToleration>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeviceToleration {
    pub(super) key: String,
    pub(super) operator: String,
    pub(super) value: String,
    pub(super) effect: String,
    pub(super) toleration_seconds: Option<i64>,
}

impl Claim {
    pub(super) fn devices(&self) -> impl Iterator<Item = &AllocatedDevice> {
        self.status.allocation.iter().flat_map(|it| &it.devices.results)
    }
}

#[derive(Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Consumer {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) api_group: String,
    pub(super) resource: String,
    pub(super) name: String,
    pub(super) uid: String,
}

#[derive(Deserialize)]
pub(super) struct Template {
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: Value,
}

#[derive(Deserialize)]
pub(super) struct DeviceSlice {
    pub(super) metadata: ObjectMeta,
    #[serde(deserialize_with = "slice")]
    pub(super) spec: SliceSpec,
}

pub(super) struct SliceSpec {
    /// The driver's name and the pool's.
    pub(super) pool: String,
    pub(super) generation: i64,
    pub(super) devices: Vec<SliceDevice>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct SliceDevice {
    pub(super) name: Box<str>,
    pub(super) taints: Vec<DeviceTaint>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct DeviceTaint {
    pub(super) key: String,
    pub(super) value: String,
    pub(super) effect: String,
    pub(super) time_added: Option<Time>,
}

/// The word by which the slices of a pool are found.
pub(super) fn pool(driver: &str, pool: &str) -> String {
    format!("{driver} {pool}")
}

fn slice<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SliceSpec, D::Error> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Spec {
        driver: String,
        pool: Pool,
        devices: Vec<SliceDevice>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Pool {
        name: String,
        generation: i64,
    }
    let spec = Spec::deserialize(deserializer)?;
    let pool = pool(&spec.driver, &spec.pool.name);
    Ok(SliceSpec { pool, generation: spec.pool.generation, devices: spec.devices })
}

#[derive(Deserialize)]
pub(super) struct TaintRule {
    pub(super) metadata: ObjectMeta,
    #[serde(default)]
    pub(super) spec: TaintRuleSpec,
    #[serde(default)]
    pub(super) status: TaintRuleStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct TaintRuleSpec {
    /// Without one it is about no device; an empty one is about all.
    pub(super) device_selector: Option<TaintSelector>,
    pub(super) taint: DeviceTaint,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct TaintSelector {
    pub(super) driver: Option<String>,
    pub(super) pool: Option<String>,
    pub(super) device: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct TaintRuleStatus {
    pub(super) conditions: Vec<RuleCondition>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct RuleCondition {
    pub(super) r#type: String,
    pub(super) status: String,
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) observed_generation: i64,
    pub(super) last_transition_time: Option<Time>,
}

impl Named for DeviceSlice {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn found_by(&self) -> Option<&str> {
        Some(&self.spec.pool)
    }
}
impl Projection for DeviceSlice {
    const RESOURCE: Resource = resources::RESOURCE_SLICES;
}
projection!(Claim, resources::RESOURCE_CLAIMS);
projection!(Template, resources::RESOURCE_CLAIM_TEMPLATES);
projection!(TaintRule, resources::DEVICE_TAINT_RULES);
