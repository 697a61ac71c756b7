//! What the server knows of each kind: names, scope, verbs, columns, policy. [`KINDS`] is the table; the server, discovery,
//! `kubectl get` tables, RBAC defaults, the command line and the tests are read off its rows.

mod columns;
mod fill;
mod policy;
mod row;

mod apps;
mod authentication;
mod authorization;
mod coordination;
mod core;
mod corten;
mod rbac;
mod scheduling;

pub use columns::human_duration;
pub use policy::{Policy, keep};
pub use row::{Cell, Column, Kind, Subresource, Verb};

/// Every resource, sorted by group, version and plural.
pub static KINDS: &[Kind] = &[
    core::config_map::KIND,
    core::event::KIND,
    core::namespace::KIND,
    core::node::KIND,
    core::pod::KIND,
    core::secret::KIND,
    core::service_account::KIND,
    apps::deployment::KIND,
    apps::replica_set::KIND,
    authentication::self_subject_review::KIND,
    authorization::self_subject_access_review::KIND,
    authorization::subject_access_review::KIND,
    coordination::lease::KIND,
    corten::journal::KIND,
    rbac::cluster_role_binding::KIND,
    rbac::cluster_role::KIND,
    rbac::role_binding::KIND,
    rbac::role::KIND,
    scheduling::priority_class::KIND,
];

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

/// The resource messages and journals name: `pods`, `deployments.apps`.
pub fn by_qualified(qualified: &str) -> Option<&'static Kind> {
    let (plural, group) = qualified.split_once('.').unwrap_or((qualified, ""));
    KINDS.iter().find(|it| it.resource.plural == plural && it.resource.group == group)
}

/// The resource a person means: `pod`, `pods`, `po`, `deployments.apps`.
pub fn by_name(name: &str) -> Option<&'static Kind> {
    let is_named = |it: &&Kind| it.resource.plural == name || it.singular == name || it.short_names.contains(&name);
    KINDS.iter().find(is_named).or_else(|| by_qualified(name))
}

#[cfg(test)]
mod tests;
