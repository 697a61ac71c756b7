//! What the server knows of each kind: names, scope, verbs, columns, policy. [`KINDS`] is the table; the server, discovery,
//! `kubectl get` tables, RBAC defaults, the command line and the tests are read off its rows.

mod age;
pub mod bounds;
mod built_in;
mod column;
mod column_type;
mod columns;
pub mod custom;
mod deleted;
mod deprecated;
mod path_column;
mod policy;
mod row;
mod scale;
pub mod scale_form;
mod table;
mod verb;

mod admissionregistration;
mod apiextensions;
mod apiregistration;
mod apiserverinternal;
mod apps;
mod authentication;
mod authorization;
mod autoscaling;
mod batch;
mod certificates;
mod coordination;
mod core;
mod corten;
mod discovery;
mod disruption;
mod events;
mod flowcontrol;
mod metrics;
mod networking;
mod node;
mod rbac;
mod resource;
mod scheduling;
mod storage;
mod storagemigration;
mod subresource;
mod webhook_client;

use std::sync::LazyLock;

pub use age::human_duration;
pub use apiextensions::not_structural;
pub use apiregistration::api_service::served_here_alone;
pub(crate) use built_in::BuiltIn;
pub use column::{Cell, Column, ColumnRef, Columns};
pub use column_type::ColumnType;
pub use core::binding;
pub use core::pod::host_ports;
pub use core::service::allocation as service_allocation;
pub use deleted::returns_deleted_object;
pub use deprecated::{Deprecation, deprecation};
pub use flowcontrol::bootstrap as flow_control;
pub use path_column::PathColumn;
pub use policy::{MetadataChecks, Policy, SelectablePath, UpdateRules, keep};
pub use row::{ConversionWebhook, CustomSchema, Kind, KindRef, Names, PolicyRef, Schema, Version, Versions, ViewOf};
pub use scale::Scale;
pub use subresource::Subresource;
pub use table::Kinds;
pub use verb::Verb;

/// Every resource, sorted by group, version and plural.
pub static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let rows = vec![
        core::binding::KIND,
        core::component_status::KIND,
        core::config_map::KIND,
        core::endpoints::KIND,
        core::event::KIND,
        core::limit_range::KIND,
        core::namespace::KIND,
        core::node::KIND,
        core::persistent_volume_claim::KIND,
        core::persistent_volume::KIND,
        core::pod::KIND,
        core::pod_template::KIND,
        core::replication_controller::KIND,
        core::resource_quota::KIND,
        core::secret::KIND,
        core::service_account::KIND,
        core::service::KIND,
        admissionregistration::mutating_admission_policy::KIND,
        admissionregistration::mutating_admission_policy_binding::KIND,
        admissionregistration::mutating_webhook_configuration::KIND,
        admissionregistration::validating_admission_policy::KIND,
        admissionregistration::validating_admission_policy_binding::KIND,
        admissionregistration::validating_webhook_configuration::KIND,
        admissionregistration::mutating_admission_policy::V1ALPHA1,
        admissionregistration::mutating_admission_policy_binding::V1ALPHA1,
        admissionregistration::mutating_admission_policy::V1BETA1,
        admissionregistration::mutating_admission_policy_binding::V1BETA1,
        apiextensions::custom_resource_definition::KIND,
        apiregistration::api_service::KIND,
        apps::controller_revision::KIND,
        apps::daemon_set::KIND,
        apps::deployment::KIND,
        apps::replica_set::KIND,
        apps::stateful_set::KIND,
        authentication::self_subject_review::KIND,
        authentication::token_review::KIND,
        authorization::local_subject_access_review::KIND,
        authorization::self_subject_access_review::KIND,
        authorization::self_subject_rules_review::KIND,
        authorization::subject_access_review::KIND,
        autoscaling::horizontal_pod_autoscaler::V1,
        autoscaling::horizontal_pod_autoscaler::KIND,
        batch::cron_job::KIND,
        batch::job::KIND,
        certificates::certificate_signing_request::KIND,
        certificates::cluster_trust_bundle::KIND,
        certificates::pod_certificate_request::KIND,
        certificates::cluster_trust_bundle::V1BETA1,
        certificates::pod_certificate_request::V1BETA1,
        coordination::lease::KIND,
        coordination::lease_candidate::V1ALPHA2,
        coordination::lease_candidate::KIND,
        corten::journal::KIND,
        corten::vertical_pod_autoscaler::KIND,
        discovery::endpoint_slice::KIND,
        events::event::KIND,
        flowcontrol::flow_schema::KIND,
        flowcontrol::priority_level_configuration::KIND,
        apiserverinternal::storage_version::KIND,
        metrics::node_metrics::KIND,
        metrics::pod_metrics::KIND,
        networking::ingress_class::KIND,
        networking::ingress::KIND,
        networking::ip_address::KIND,
        networking::network_policy::KIND,
        networking::service_cidr::KIND,
        node::runtime_class::KIND,
        disruption::pod_disruption_budget::KIND,
        rbac::cluster_role_binding::KIND,
        rbac::cluster_role::KIND,
        rbac::role_binding::KIND,
        rbac::role::KIND,
        resource::device_class::KIND,
        resource::device_taint_rule::KIND,
        resource::resource_claim::KIND,
        resource::resource_claim_template::KIND,
        resource::resource_slice::KIND,
        resource::device_taint_rule::V1ALPHA3,
        resource::resource_pool_status_request::KIND,
        resource::device_class::V1BETA1,
        resource::resource_claim::V1BETA1,
        resource::resource_claim_template::V1BETA1,
        resource::resource_slice::V1BETA1,
        resource::device_class::V1BETA2,
        resource::device_taint_rule::V1BETA2,
        resource::resource_claim::V1BETA2,
        resource::resource_claim_template::V1BETA2,
        resource::resource_slice::V1BETA2,
        scheduling::priority_class::KIND,
        scheduling::composite_pod_group::KIND,
        scheduling::pod_group::V1ALPHA3,
        scheduling::workload::V1ALPHA3,
        scheduling::pod_group::KIND,
        scheduling::workload::KIND,
        storage::csi_driver::KIND,
        storage::csi_node::KIND,
        storage::csi_storage_capacity::KIND,
        storage::storage_class::KIND,
        storage::volume_attachment::KIND,
        storage::volume_attributes_class::KIND,
        storagemigration::storage_version_migration::KIND,
        storagemigration::storage_version_migration::V1BETA1,
    ];
    rows.into_iter().map(BuiltIn::kind).collect()
});

impl Kind {
    /// The row in whose form the objects are stored: this one, unless it is a view.
    pub fn stored_row(&'static self) -> &'static Self {
        let stored = |view: &ViewOf| by_path(&view.stored.group, &view.stored.version, &view.stored.plural);
        self.view_of.as_ref().and_then(stored).unwrap_or(self)
    }
}

/// The resource a path names: `("apps", "v1", "deployments")`; the core group is `""`.
pub fn by_path(group: &str, version: &str, plural: &str) -> Option<&'static Kind> {
    let wanted = (group, version, plural);
    KINDS
        .binary_search_by(|it| (&*it.resource.group, &*it.resource.version, &*it.resource.plural).cmp(&wanted))
        .ok()
        .map(|at| &KINDS[at])
}

/// The resource of objects with this `apiVersion` and `kind`: `("apps/v1", "Deployment")`.
pub fn by_kind(api_version: &str, kind: &str) -> Option<&'static Kind> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    KINDS.iter().find(|it| it.resource.kind == kind && it.resource.group == group && it.resource.version == version)
}

/// The kind and name of the object that a Journal is about: `deployments.apps.web`. Both may hold dots: the longest resource wins.
pub fn by_journal(name: &str) -> Option<(&'static Kind, &str)> {
    let candidates = KINDS.iter().filter(|it| it.is_stored()).filter_map(|kind| {
        let object = name.strip_prefix(&kind.resource.qualified())?.strip_prefix('.')?;
        (!object.is_empty()).then_some((kind, object))
    });
    candidates.min_by_key(|it| it.1.len())
}

/// The resource messages and journals name: `pods`, `deployments.apps`.
pub fn by_qualified(qualified: &str) -> Option<&'static Kind> {
    let (plural, group) = qualified.split_once('.').unwrap_or((qualified, ""));
    let is_named = |it: &&Kind| it.resource.plural == plural && it.resource.group == group;
    KINDS.iter().filter(|it| it.view_of.is_none()).find(is_named).or_else(|| KINDS.iter().find(is_named))
}

/// The resource a person means: `pod`, `pods`, `po`, `deployments.apps`.
pub fn by_name(name: &str) -> Option<&'static Kind> {
    let is_named = |it: &&Kind| it.resource.plural == name || it.singular == name || it.short_names.contains(name);
    let is_one = |it: &&Kind| it.view_of.is_none() && !name.is_empty() && is_named(it);
    KINDS.iter().find(is_one).or_else(|| by_qualified(name))
}

#[cfg(test)]
mod tests;
