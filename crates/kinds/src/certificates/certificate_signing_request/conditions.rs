//! What was said of a request: `Approved` or `Denied`, never both, and `Failed`. None of them is ever taken back.

use std::collections::BTreeSet;

use corten_schema::Cursor;
use serde_json::Value;

const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];

pub(super) fn check(request: Cursor<'_>) {
    let (mut seen, mut said) = (BTreeSet::new(), "");
    for condition in request.at("status").list("conditions") {
        let kind = condition.at("type");
        kind.required();
        let status = condition.at("status");
        if FINAL.contains(&kind.str()) {
            if status.required() && status.str() != "True" {
                status.unsupported(&["True"]);
            }
        } else if status.required() {
            status.one_of(&["False", "True", "Unknown"]);
        }
        if seen.contains(kind.str()) {
            kind.duplicate();
        }
        seen.insert(kind.str());
        if let it @ ("Approved" | "Denied") = kind.str() {
            if !said.is_empty() && said != it {
                kind.invalid("Approved and Denied conditions are mutually exclusive");
            }
            said = it;
        }
    }
}

/// What may become of the conditions: approvers add `Approved` and `Denied`, signers do not.
pub(super) fn changes(new: Cursor<'_>, old: &Value, by_approver: bool) {
    let conditions = new.at("status").at("conditions");
    for kind in FINAL {
        let before = of_kind(&old["status"]["conditions"], kind);
        let now = of_kind(conditions.value(), kind);
        if now.len() < before.len() {
            conditions.forbidden(&format!("updates may not remove a condition of type {kind:?}"));
        } else if kind != "Failed" && !by_approver && now.len() > before.len() {
            conditions.forbidden(&format!("updates may not add a condition of type {kind:?}"));
        } else if kind != "Failed" && !by_approver && now != before {
            conditions.forbidden(&format!("updates may not modify a condition of type {kind:?}"));
        }
    }
}

fn of_kind<'v>(conditions: &'v Value, kind: &str) -> Vec<&'v Value> {
    conditions.as_array().into_iter().flatten().filter(|it| it["type"] == kind).collect()
}
