//! A node must have left, of everything a pod asks for, at least as much as it asks for.

use corten_meta::Quantity;
use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo, devices,
    framework::{Gap, Reason},
    snapshot::Row,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "NodeResourcesFit",
    filter: Some(filter),
    gap: Some(Gap { size: gap, text: gap_text }),
    actor: Actor::Operator,
    wait: "InsufficientResources",
    ..Plugin::NONE
};

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, reasons: &mut Vec<Reason<'p>>) {
    if row.n_pods + 1 > row.pods_max {
        reasons.push(Reason::Text("Too many pods"));
    }
    for_each_lack(pod, row, |resource, _, _| reasons.push(Reason::Insufficient(resource)));
}

/// Calls `found` with each resource of which too little is left: its name, how much is missing, how much is asked for.
fn for_each_lack<'p>(pod: &'p PodInfo, row: &Row<'_>, mut found: impl FnMut(&'p str, i64, i64)) {
    let (wanted, total, used) = (&pod.requested, row.allocatable, row.requested);
    // As in `fitsRequest`: a pod that does not ask for a resource fits a node that has overspent it.
    let mut check = |name: &'p str, wanted: i64, left: i64| {
        if wanted > 0 && wanted > left {
            found(name, wanted.saturating_sub(left), wanted);
        }
    };
    check("cpu", wanted.cpu_millis, total.cpu_millis.saturating_sub(used.cpu_millis));
    check("memory", wanted.memory_bytes, total.memory_bytes.saturating_sub(used.memory_bytes));
    let left = total.ephemeral_storage_bytes.saturating_sub(used.ephemeral_storage_bytes);
    check("ephemeral-storage", wanted.ephemeral_storage_bytes, left);
    for (name, wanted) in &wanted.extended {
        if devices::class_on(name, total, row.classes).is_some() {
            // A claim for devices is made for it: see DynamicResources.
            continue;
        }
        let of = |it: &std::collections::BTreeMap<String, i64>| it.get(name).copied().unwrap_or(0);
        check(name, *wanted, of(&total.extended).saturating_sub(of(&used.extended)));
    }
}

/// What is missing, in thousandths of what is asked for, all resources together.
fn gap(pod: &PodInfo, row: &Row<'_>) -> i64 {
    let mut sum = i64::from(row.n_pods + 1 > row.pods_max) * 1000;
    for_each_lack(pod, row, |_, missing, wanted| {
        let share = i128::from(missing) * 1000 / i128::from(wanted);
        sum = sum.saturating_add(i64::try_from(share).unwrap_or(i64::MAX));
    });
    sum
}

fn gap_text(pod: &PodInfo, row: &Row<'_>) -> String {
    let mut parts = Vec::new();
    if row.n_pods + 1 > row.pods_max {
        parts.push(format!("runs its {} pods already", row.pods_max));
    }
    for_each_lack(pod, row, |resource, missing, _| {
        let missing = match resource {
            "cpu" => Quantity::millis(missing),
            "memory" | "ephemeral-storage" => Quantity::bytes(missing),
            _ => Quantity::units(missing),
        };
        parts.push(format!("lacks {missing} {resource}"));
    });
    parts.join(", ")
}
