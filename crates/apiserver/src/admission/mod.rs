//! Plugins that change or refuse a write. Each is one file and one row of [`PLUGINS`].

mod api_access;
mod certificates;
mod default_classes;
mod default_toleration_seconds;
mod legacy_token;
mod limit_ranger;
mod mountable_secrets;
mod namespace_lifecycle;
mod node_addresses;
mod node_labels;
mod node_restriction;
mod persistent_volume_claim_resize;
mod pod_security;
mod pod_topology_labels;
mod priority;
mod refusal;
pub(crate) mod resource_quota;
mod runtime_class;
mod service_account;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;

use corten_kinds::{Kind, Subresource};
use corten_meta::{Resource, Status};
use serde_json::Value;

use crate::{
    access::escalation::Escalation,
    request::{BoxFuture, Context},
};

/// In the order they are asked.
pub const PLUGINS: &[&dyn Admission] = &[
    &namespace_lifecycle::NamespaceLifecycle,
    &limit_ranger::LimitRanger,
    &service_account::ServiceAccount,
    &node_restriction::NodeRestriction,
    &taint_nodes_by_condition::TaintNodesByCondition,
    &legacy_token::LegacyServiceAccountToken,
    &pod_security::PodSecurity,
    &priority::Priority,
    &default_toleration_seconds::DefaultTolerationSeconds,
    &default_classes::DefaultStorageClass,
    &storage_object_in_use_protection::StorageObjectInUseProtection,
    &persistent_volume_claim_resize::PersistentVolumeClaimResize,
    &runtime_class::RuntimeClass,
    &default_classes::DefaultIngressClass,
    &pod_topology_labels::PodTopologyLabels,
    &certificates::CertificateRequester,
    &certificates::CertificateApproval,
    &certificates::CertificateSigning,
    &certificates::ClusterTrustBundleAttest,
    &certificates::CertificateSubjectRestriction,
    &Escalation,
    &resource_quota::ResourceQuota,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// What is asked for. The path's parts are in `ctx.info`.
pub struct Attributes<'a> {
    pub ctx: &'a Context,
    pub operation: Operation,
    pub kind: &'static Kind,
    pub subresource: Option<Subresource>,
    pub namespace: &'a str,
    /// May be empty for a create with `generateName`.
    pub name: &'a str,
    /// What is stored now: for updates and deletes.
    pub old: Option<&'a Value>,
    pub dry_run: bool,
}

impl<'a> Attributes<'a> {
    /// A new object of `resource`, not a subresource of one.
    fn creates(&self, resource: &Resource) -> bool {
        self.operation == Operation::Create && self.subresource.is_none() && self.kind.resource == *resource
    }

    /// The object's name, which a create has only in its body.
    pub(crate) fn name_of<'v>(&self, object: &'v Value) -> &'v str
    where
        'a: 'v,
    {
        let named = object["metadata"]["name"].as_str().filter(|it| !it.is_empty());
        named.unwrap_or(self.name)
    }
}

/// One plugin. Both halves do nothing unless a plugin says otherwise.
pub trait Admission: Send + Sync {
    fn name(&self) -> &'static str;

    /// May change the object (`null` for a delete); called after defaulting, before validation.
    fn admit<'a>(&'a self, _request: &'a Attributes<'a>, _object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async { Ok(()) })
    }

    /// May only refuse; called after validation.
    fn validate<'a>(&'a self, _request: &'a Attributes<'a>, _object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async { Ok(()) })
    }
}
