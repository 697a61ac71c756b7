//! Amounts of resources, in the units of kube-state-metrics.

use std::collections::BTreeMap;

use corten_meta::Quantity;

use crate::exposition::Samples;

pub(crate) type Amounts = BTreeMap<String, Quantity>;

/// `core`, `byte` or `integer`; `None` for a resource of Kubernetes that it does not tell of.
fn unit(resource: &str) -> Option<&'static str> {
    match resource {
        "cpu" => Some("core"),
        "memory" | "storage" | "ephemeral-storage" => Some("byte"),
        "pods" => Some("integer"),
        _ if resource.starts_with("hugepages-") || resource.starts_with("attachable-volumes-") => Some("byte"),
        _ if resource.contains('/') => Some("integer"),
        _ => None,
    }
}

/// What a label's value may hold: letters, digits and underscores.
fn label_value(resource: &str) -> String {
    resource.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '_' }).collect()
}

/// For the labels `resource` and `unit`, after those that are given.
pub(crate) fn of(amounts: &Amounts, first: &[&str], out: &mut Samples<'_>) {
    for (resource, amount) in amounts {
        if let Some(unit) = unit(resource) {
            let resource = label_value(resource);
            out.add(&[first, &[&*resource, unit]].concat(), amount.approximate());
        }
    }
}
