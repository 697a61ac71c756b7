//! Amounts of resources, in the units of kube-state-metrics.

use std::collections::BTreeMap;

use corten_meta::Quantity;

use crate::exposition::{Samples, label_text};

pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// `core`, `byte` or `integer`; `None` for a resource of Kubernetes that it does not tell of.
fn unit(resource: &str) -> Option<&'static str> {
    match resource {
        "cpu" => Some("core"),
        "memory" | "storage" | "ephemeral-storage" => Some("byte"),
        "pods" => Some("integer"),
        _ if resource.starts_with("hugepages-") || resource.starts_with("attachable-volumes-") => Some("byte"),
        _ if is_extended(resource) => Some("integer"),
        _ => None,
    }
}

/// Somebody else's, as a device's; not the name of a quota either.
fn is_extended(resource: &str) -> bool {
    resource.contains('/') && !resource.contains("kubernetes.io/") && !resource.starts_with("requests.")
}

/// For the labels `resource` and `unit`, after those that are given.
pub(crate) fn of(amounts: &Amounts, first: &[&str], out: &mut Samples<'_>) {
    for (resource, amount) in amounts {
        if let Some(unit) = unit(resource) {
            let resource = label_text(resource);
            out.add(&[first, &[&*resource, unit]].concat(), amount.approximate());
        }
    }
}
