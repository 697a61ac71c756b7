//! Plugins that change or refuse a write, and what is committed along with it. Each plugin is one file and one row of [`PLUGINS`].

#![expect(
    clippy::result_large_err,
    reason = "a Status is made once for each refused request; a box would burden every signature"
)]

mod api_access;
mod api_servers;
mod availability;
mod binding_room;
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
mod failure_row;
mod host_port_pool;
mod host_ports;
mod known_rules;
mod legacy_token;
mod limit_ranger;
mod measures;
mod mountable_secrets;
mod name_suffix;
mod namespace_lifecycle;
mod namespace_locks;
mod node_addresses;
mod node_declared_features;
mod node_labels;
mod node_restriction;
mod node_room;
mod node_turns;
mod notes;
mod operation;
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
mod round;
mod runtime_class;
mod service_account;
mod service_reservations;
pub mod services;
mod storage_object_in_use_protection;
mod taint_nodes_by_condition;
mod told;
mod versions;
mod webhook_dispatch;

pub use webhook_dispatch::answer;
mod webhook_source;

pub use cluster::{Cluster, Machine, Uids};
pub use converted::ConvertedObjects;
pub use corten_cel::Fuel;
pub use evaluation::evaluated;
pub use host_port_pool::HostPortPool;
pub use host_ports::HostPortChoice;
pub use measures::Measures;
pub use name_suffix::{SUFFIX_BYTES, name_suffix};
pub use namespace_locks::NamespaceLocks;
pub use node_room::NodeRoom;
pub use notes::{Noted, Notes};
pub use plugin::{Admission, Attributes, Operation, Plugin, RequestForm};
pub use policy_source::{FailingPolicy, Policies, PolicyTrouble};
pub use reinvocation::Reinvocation;
pub use round::{admit, admit_by_webhooks, validate, validate_by_webhooks};
pub use service_reservations::{Ranges, ServiceReservations};
pub use webhook_source::{FailingWebhook, Trouble, Webhooks};

/// In the order they are asked.
pub const PLUGINS: &[Plugin] = &[
    Plugin::validates(&param_access::ParamAccess),
    Plugin::validates(&device_admin_access::DeviceAdminAccess),
    Plugin::admits(&known_rules::KnownRules),
    Plugin::admits(&namespace_lifecycle::NamespaceLifecycle),
    Plugin::both(&limit_ranger::LimitRanger),
    Plugin::both(&service_account::ServiceAccount),
    Plugin::admits(&node_restriction::NodeRestriction),
    Plugin::admits(&taint_nodes_by_condition::TaintNodesByCondition),
    Plugin::admits(&legacy_token::LegacyServiceAccountToken),
    // It has no counterpart upstream, and stands before what judges the node's network.
    Plugin::both(&host_ports::HostPorts),
    Plugin::validates(&pod_security::PodSecurity),
    Plugin::both(&priority::Priority),
    // Nor has this one. What it has said the next one leaves.
    Plugin::both(&availability::Availability),
    Plugin::admits(&default_toleration_seconds::DefaultTolerationSeconds),
    Plugin::admits(&default_classes::DefaultStorageClass),
    Plugin::admits(&storage_object_in_use_protection::StorageObjectInUseProtection),
    Plugin::validates(&persistent_volume_claim_resize::PersistentVolumeClaimResize),
    Plugin::both(&runtime_class::RuntimeClass),
    Plugin::admits(&default_classes::DefaultIngressClass),
    Plugin::admits(&pod_topology_labels::PodTopologyLabels),
    Plugin::validates(&node_declared_features::NodeDeclaredFeatureValidator),
    Plugin::admits(&certificates::CertificateRequester),
    Plugin::validates(&certificates::CertificateApproval),
    Plugin::validates(&certificates::CertificateSigning),
    Plugin::validates(&certificates::ClusterTrustBundleAttest),
    Plugin::validates(&certificates::CertificateSubjectRestriction),
    Plugin::both(&certificates::PodCertificateSigning),
    Plugin::admits(&policy_dispatch::MutatingPolicies),
    Plugin::admits(&webhook_dispatch::MutatingWebhook),
    Plugin::validates(&policy_dispatch::ValidatingPolicies),
    Plugin::validates(&webhook_dispatch::ValidatingWebhook),
    Plugin::validates(&escalation::Escalation),
    Plugin::validates(&resource_quota::ResourceQuota),
];
