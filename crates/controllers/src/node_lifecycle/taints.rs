//! The taints that follow from what is known of a node.

use corten_meta::Time;

use crate::projections::{Node, Taint};

pub(super) const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub(super) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
pub(super) const NO_SCHEDULE: &str = "NoSchedule";
pub(super) const NO_EXECUTE: &str = "NoExecute";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// A condition's type and status, and the taint that it means.
const OF_CONDITIONS: [(&str, &str, &str); 6] = [
    ("Ready", "False", NOT_READY),
    ("Ready", "Unknown", UNREACHABLE),
    ("MemoryPressure", "True", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "True", "node.kubernetes.io/disk-pressure"),
    ("NetworkUnavailable", "True", "node.kubernetes.io/network-unavailable"),
    ("PIDPressure", "True", "node.kubernetes.io/pid-pressure"),
];

/// The taint that goes with the state of a node that is not ready.
pub(super) fn of_ready(status: &str) -> &'static str {
    if status == "Unknown" { UNREACHABLE } else { NOT_READY }
}

/// All taints as they should be, where they are not: those of `NoSchedule` follow the conditions, the one of `NoExecute` is
/// decided elsewhere. Everybody else's stay.
pub(super) fn wanted(node: &Node, no_execute: Option<&str>, now: Time) -> Option<Vec<Taint>> {
    let of_conditions = OF_CONDITIONS
        .iter()
        .filter(|(r#type, status, _)| node.condition(r#type).is_some_and(|it| it.status == *status));
    let mut wanted: Vec<(&str, &str)> = of_conditions.map(|it| (it.2, NO_SCHEDULE)).collect();
    if node.spec.unschedulable {
        wanted.push((UNSCHEDULABLE, NO_SCHEDULE));
    }
    wanted.extend(no_execute.map(|it| (it, NO_EXECUTE)));

    let is_ours = |it: &Taint| match &*it.effect {
        NO_SCHEDULE => it.key == UNSCHEDULABLE || OF_CONDITIONS.iter().any(|(_, _, key)| *key == it.key),
        NO_EXECUTE => it.key == NOT_READY || it.key == UNREACHABLE,
        _ => false,
    };
    let is_wanted = |it: &Taint| wanted.contains(&(&*it.key, &*it.effect));
    let mut taints: Vec<Taint> = node.spec.taints.iter().filter(|it| !is_ours(it) || is_wanted(it)).cloned().collect();
    let n_kept = taints.len();
    let missing = wanted.iter().filter(|(key, effect)| node.taint(key, effect).is_none());
    taints.extend(missing.map(|(key, effect)| Taint {
        key: (*key).into(),
        effect: (*effect).into(),
        time_added: Some(now),
        ..Taint::default()
    }));
    let is_same = n_kept == node.spec.taints.len() && taints.len() == n_kept;
    (!is_same).then_some(taints)
}
