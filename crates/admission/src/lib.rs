//! Plugins that change or refuse a write, and what is committed along with it. Each plugin is one file and one row of [`PLUGINS`].

#![expect(
    clippy::result_large_err,
    reason = "a Status is made once for each refused request; a box would burden every signature"
)]

mod api_access;
mod certificates;
mod cluster;
pub mod commit;
mod commit_hook;
mod converted;
mod default_classes;
mod default_toleration_seconds;
mod device_admin_access;
mod escalation;
mod evaluation;
mod expression_authorizer;
mod known_rules;
mod legacy_token;
mod limit_ranger;
mod mountable_secrets;
mod name_suffix;
mod namespace_lifecycle;
mod namespace_locks;
mod node_addresses;
mod node_labels;
mod node_restriction;
mod notes;
mod param_access;
mod patched;
mod persistent_volume_claim_resize;
mod plugin;
mod pod_security;
mod pod_topology_labels;
mod policy_dispatch;
mod policy_source;
mod priority;
mod refusal;
mod reinvocation;
mod resource_quota;
mod review_request;
mod runtime_class;
mod service_account;
mod service_reservations;
pub mod services;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;
mod versions;
mod webhook_dispatch;
mod webhook_source;

pub use cluster::{Cluster, Machine, Uids};
pub use converted::ConvertedObjects;
pub use corten_cel::Fuel;
pub use evaluation::evaluated;
pub use name_suffix::{SUFFIX_BYTES, name_suffix};
pub use namespace_locks::NamespaceLocks;
pub use notes::{Noted, Notes};
pub use plugin::{Admission, Attributes, Operation, RequestForm};
pub use policy_source::{FailingPolicy, Policies, PolicyTrouble};
pub use reinvocation::Reinvocation;
pub use service_reservations::{Ranges, ServiceReservations};
pub use webhook_source::{FailingWebhook, Trouble, Webhooks};

/// In the order they are asked.
pub const PLUGINS: &[&dyn Admission] = &[
    &param_access::ParamAccess,
    &device_admin_access::DeviceAdminAccess,
    &known_rules::KnownRules,
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
    &certificates::PodCertificateSigning,
    &policy_dispatch::MutatingPolicies,
    &webhook_dispatch::MutatingWebhook,
    &policy_dispatch::ValidatingPolicies,
    &webhook_dispatch::ValidatingWebhook,
    &escalation::Escalation,
    &resource_quota::ResourceQuota,
];
