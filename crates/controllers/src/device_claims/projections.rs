//! The fields of claims and templates that are read.

use corten_api::resources;
use corten_meta::{Named, ObjectMeta, Resource};
use corten_reconcile::Projection;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::Value;

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
    pub(super) allocation: Option<IgnoredAny>,
    pub(super) reserved_for: Vec<Consumer>,
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

impl Named for Claim {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}
impl Projection for Claim {
    const RESOURCE: Resource = resources::RESOURCE_CLAIMS;
}
impl Named for Template {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}
impl Projection for Template {
    const RESOURCE: Resource = resources::RESOURCE_CLAIM_TEMPLATES;
}
