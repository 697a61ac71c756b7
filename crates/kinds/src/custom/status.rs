//! What the status of a definition says.

use corten_meta::{Time, Violation, aggregate, transition_time};
use serde_json::{Value, json};

use super::{
    accepted_names::{Names, accepted},
    approval,
};

/// Held by a definition that is being deleted until its objects are gone.
pub const CLEANUP_FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// Of a schema that no definition can be made with any more.
const NON_STRUCTURAL: &str = "NonStructuralSchema";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub kind: &'static str,
    pub is_true: bool,
    pub reason: &'static str,
    pub message: String,
}

/// The status after its names were looked at, beside those of `others` of its group, and its schemas, of which some may be
/// [`not_structural`](crate::not_structural); `None` where it says that already.
pub fn with_names(definition: &Value, others: &[Names], not_structural: &[Violation], now: Time) -> Option<Value> {
    let (names, conflict) = accepted(definition, others);
    let has_conflict = conflict.is_some();
    let (reason, message) = conflict.map_or(("NoConflicts", "no conflicts found".into()), |it| (it.reason, it.message));
    let named = Condition { kind: "NamesAccepted", is_true: !has_conflict, reason, message };
    let mut new = definition.clone();
    if !new["status"].is_object() {
        new["status"] = json!({});
    }
    new["status"]["acceptedNames"] = names.json();
    if let Some(approval) = approval::condition(definition) {
        set(&mut new, &approval, now);
    }
    set(&mut new, &named, now);
    match aggregate(not_structural.iter().map(ToString::to_string)) {
        None => unset(&mut new, NON_STRUCTURAL),
        Some(message) => {
            set(&mut new, &Condition { kind: NON_STRUCTURAL, is_true: true, reason: "Violations", message }, now);
        }
    }
    // Who was established once stays so: its objects are served by the names it had.
    if !has_condition(definition, "Established") {
        let (reason, message) = if has_conflict {
            ("NotAccepted", "not all names are accepted")
        } else {
            ("Installing", "the initial names have been accepted")
        };
        set(&mut new, &Condition { kind: "Established", is_true: false, reason, message: message.into() }, now);
    }
    (new["status"] != definition["status"]).then_some(new)
}

/// The definition with one more condition; `None` where it has that already.
pub fn with_condition(definition: &Value, condition: &Condition, now: Time) -> Option<Value> {
    let mut new = definition.clone();
    set(&mut new, condition, now);
    (new["status"] != definition["status"]).then_some(new)
}

pub fn has_condition(definition: &Value, kind: &str) -> bool {
    let conditions = definition["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|it| it["type"] == kind && it["status"] == "True")
}

fn unset(definition: &mut Value, kind: &str) {
    if let Some(conditions) = definition["status"]["conditions"].as_array_mut() {
        conditions.retain(|it| it["type"] != kind);
    }
}

fn set(definition: &mut Value, condition: &Condition, now: Time) {
    let status = if condition.is_true { "True" } else { "False" };
    let mut new = json!({
        "type": condition.kind,
        "status": status,
        "lastTransitionTime": now.to_string(),
        "reason": condition.reason,
        "message": condition.message,
    });
    let conditions = &mut definition["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|it| it["type"] == condition.kind) {
        Some(old) => {
            new["lastTransitionTime"] = transition_time(Some(old), status, now);
            *old = new;
        }
        None => conditions.push(new),
    }
}
