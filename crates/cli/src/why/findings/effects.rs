//! Kinds that nothing here acts on, and conditions that say no.

use corten_kinds::Kind;
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::Findings;
use crate::why::account::{items, text, time};

/// Objects of these kinds are stored, and no loop of this release looks at them.
const WITHOUT_EFFECT: &[(&str, &str, &str)] = &[
    ("horizontalpodautoscaler", "NoAutoscaler", "no loop of this release scales by it: scale its target by hand"),
    ("ingress", "NoIngressController", "no ingress controller runs here: it routes nothing until one is installed"),
    ("mutatingadmissionpolicy", "NotEnforced", "it is stored, and this release does not enforce it"),
    ("mutatingadmissionpolicybinding", "NotEnforced", "it is stored, and this release does not enforce it"),
    ("mutatingwebhookconfiguration", "NotEnforced", "it is stored, and this release does not call it"),
    (
        "networkpolicy",
        "NotEnforced",
        "it is stored, and this release does not enforce it: every pod reaches every other",
    ),
    ("persistentvolume", "NoVolumeBinder", "no loop of this release binds volumes to claims"),
    ("resourceclaim", "NoDeviceAllocator", "no loop of this release allocates devices"),
    ("validatingadmissionpolicy", "NotEnforced", "it is stored, and this release does not enforce it"),
    ("validatingadmissionpolicybinding", "NotEnforced", "it is stored, and this release does not enforce it"),
    ("validatingwebhookconfiguration", "NotEnforced", "it is stored, and this release does not call it"),
];

/// Conditions that are `True` where all is well.
const GOOD: [&str; 6] = ["Accepted", "Available", "Established", "NamesAccepted", "Ready", "Programmed"];

pub(super) fn general(kind: &Kind, object: &Value, found: &mut Findings) {
    if let Some((_, reason, message)) = WITHOUT_EFFECT.iter().find(|it| it.0 == kind.singular) {
        found.add(reason, *message, Actor::Operator);
    }
    let is_builtin_group = matches!(&*kind.resource.group, "apps" | "policy" | "batch" | "certificates.k8s.io");
    for condition in items(object, "/status/conditions").iter().filter(|_| !is_builtin_group) {
        if GOOD.contains(&text(condition, "/type")) && condition["status"] == "False" {
            let (name, said) = (text(condition, "/type"), text(condition, "/message"));
            let reason = Some(text(condition, "/reason")).filter(|it| !it.is_empty()).unwrap_or("NotReady");
            let mut wait = Wait::new(reason, format!("condition {name} is False: {said}"), Actor::Operator);
            wait.since = time(&condition["lastTransitionTime"]);
            found.wait(wait);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_names_a_kind() {
        assert!(WITHOUT_EFFECT.is_sorted_by_key(|it| it.0));
        for (kind, ..) in WITHOUT_EFFECT {
            assert_eq!(corten_kinds::by_name(kind).map(|it| it.singular), Some(*kind));
        }
    }
}
