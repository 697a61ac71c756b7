//! Who serves which version of which group, and what discovery says is served.

use corten_api::resources;
use corten_meta::{Named, ObjectMeta, Resource};
use corten_reconcile::{API_GROUPS, Projection};
use serde::{Deserialize, de::IgnoredAny};

use super::{bare, projection};

/// A registration, as far as it says which server serves a version, and whether that answers.
#[derive(Deserialize)]
pub(crate) struct ApiService {
    #[serde(deserialize_with = "bare")]
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: ApiServiceSpec,
    #[serde(default)]
    status: ApiServiceStatus,
}
projection!(ApiService, resources::API_SERVICES);

#[derive(Deserialize)]
pub(crate) struct ApiServiceSpec {
    #[serde(default)]
    pub(crate) group: String,
    #[serde(default)]
    pub(crate) version: String,
    /// Without one this server itself serves it.
    service: Option<IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ApiServiceStatus {
    conditions: Vec<Available>,
}

#[derive(Deserialize)]
pub(crate) struct Available {
    r#type: String,
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) message: String,
}

impl ApiService {
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.spec.service.is_some()
    }

    pub(crate) fn available(&self) -> Option<&Available> {
        self.status.conditions.iter().find(|it| it.r#type == "Available")
    }
}

/// A group, as discovery tells of it.
#[derive(Deserialize)]
pub(crate) struct ApiGroup {
    #[serde(deserialize_with = "bare")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) versions: Vec<ApiVersion>,
}
projection!(ApiGroup, API_GROUPS);

#[derive(Deserialize)]
pub(crate) struct ApiVersion {
    pub(crate) version: String,
    /// `Current` or `Stale`.
    #[serde(default)]
    pub(crate) freshness: String,
    #[serde(default)]
    pub(crate) resources: Vec<ApiResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ApiResource {
    pub(crate) resource: String,
    #[serde(default)]
    pub(crate) response_kind: ResponseKind,
    pub(crate) scope: String,
    #[serde(default)]
    verbs: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct ResponseKind {
    pub(crate) kind: String,
}

impl ApiResource {
    pub(crate) fn has(&self, verb: &str) -> bool {
        self.verbs.iter().any(|it| it == verb)
    }
}
