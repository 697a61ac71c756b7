//! Resource lists: how much of what, and which names there are.

use corten_meta::{Quantity, field};
use corten_schema::Cursor;

const STANDARD: [&str; 20] = [
    "configmaps",
    "cpu",
    "ephemeral-storage",
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "memory",
    "persistentvolumeclaims",
    "pods",
    "replicationcontrollers",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
    "requests.storage",
    "resourcequotas",
    "secrets",
    "services",
    "services.loadbalancers",
    "services.nodeports",
    "storage",
];

/// Is it a name without a domain that Kubernetes knows?
fn is_standard(name: &str) -> bool {
    STANDARD.contains(&name) || name.starts_with("hugepages-") || name.starts_with("requests.hugepages-")
}

/// A qualified name, or one that Kubernetes gave.
pub fn name(name: &str, at: Cursor<'_>) {
    let reasons = field::qualified_name(name);
    let bad = !reasons.is_empty();
    reasons.iter().for_each(|it| at.invalid_as(name, it));
    if !bad && !name.contains('/') && !is_standard(name) {
        at.invalid_as(name, "must be a standard resource type or fully qualified");
    }
}

/// The name of what a quota counts.
pub fn quota_name(quota: &str, at: Cursor<'_>) {
    name(quota, at);
    if !quota.contains('/') && !is_standard(quota) {
        at.invalid_as(quota, "must be a standard resource for quota");
    }
}

/// Not negative, and a whole number where things are counted.
pub fn quantity(name: &str, value: Cursor<'_>) {
    value.non_negative_quantity();
    let is_counted = matches!(
        name,
        "pods"
            | "services"
            | "replicationcontrollers"
            | "resourcequotas"
            | "secrets"
            | "configmaps"
            | "persistentvolumeclaims"
            | "services.nodeports"
            | "services.loadbalancers"
    ) || name.contains('/');
    if is_counted && value.quantity().is_some_and(|it| it != Quantity::units(it.value())) {
        value.invalid("must be an integer");
    }
}

/// More than nothing.
pub fn positive(value: Cursor<'_>) {
    if value.quantity().is_some_and(|it| it <= Quantity::ZERO) {
        value.invalid("must be greater than zero");
    }
}
