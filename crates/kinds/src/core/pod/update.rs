//! What may change in the life of a Pod: images, tolerations (more of them), the deadline (sooner), gates (fewer).

use std::collections::BTreeSet;

use corten_meta::Violation;
use corten_schema::{Cursor, Ordered, violations};
use corten_validation::{difference, fill::means_the_same};
use serde_json::Value;

use super::annotations;

const ONLY: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";

pub(super) fn violations_of(new: &Value, old: &Value) -> Vec<Violation> {
    violations(new, |pod| {
        annotations::validate_update(pod, old);
        let (spec, before) = (pod.at("spec"), &old["spec"]);
        for list in ["containers", "initContainers"] {
            if spec.at(list).items().len() != before[list].as_array().map_or(0, Vec::len) {
                return spec.at(list).forbidden("pod updates may not add or remove containers");
            }
        }
        deadline(spec.at("activeDeadlineSeconds"), &before["activeDeadlineSeconds"]);
        tolerations(spec.at("tolerations"), &before["tolerations"]);
        let was_gated = before["schedulingGates"].as_array().is_some_and(|it| !it.is_empty());
        gates(spec.at("schedulingGates"), &before["schedulingGates"]);
        let allowed = with_allowed_changes(spec.value(), before, was_gated);
        if !means_the_same(&allowed, before) {
            spec.forbidden(&format!("{ONLY}\n{}", difference("spec", before, &allowed)));
        }
    })
}

fn deadline(new: Cursor<'_>, old: &Value) {
    let Some(old) = old.as_i64() else { return };
    if !new.exists() {
        new.invalid("must not update from a positive integer to nil value");
    } else if new.int() > old {
        new.invalid("must be less than or equal to previous value");
    }
}

/// Old ones stay, though `tolerationSeconds` may change.
fn tolerations(new: Cursor<'_>, old: &Value) {
    let identity = |it: &'_ Value| {
        ["key", "operator", "value", "effect"].map(|field| it[field].as_str().unwrap_or_default().to_owned())
    };
    let now: BTreeSet<[String; 4]> = new.items().iter().map(identity).collect();
    if !old.as_array().into_iter().flatten().all(|it| now.contains(&identity(it))) {
        new.forbidden("existing toleration can not be modified except its tolerationSeconds");
    }
}

fn gates(new: Cursor<'_>, old: &Value) {
    let old: BTreeSet<Ordered<'_>> = old.as_array().into_iter().flatten().map(|it| Ordered(&it["name"])).collect();
    for gate in new.each() {
        if !old.contains(&Ordered(gate.at("name").value())) {
            let detail = format!("only deletion is allowed, but found new scheduling gate '{}'", gate.at("name").str());
            gate.forbidden(&detail);
        }
    }
}

/// The new spec with everything that may change as it was before.
fn with_allowed_changes(new: &Value, old: &Value, was_gated: bool) -> Value {
    let mut spec = new.clone();
    for list in ["containers", "initContainers"] {
        let before = old[list].as_array().map_or(&[][..], Vec::as_slice);
        for (at, image) in before.iter().map(|it| &it["image"]).enumerate() {
            spec[list][at]["image"] = image.clone();
        }
    }
    let mut free = vec!["activeDeadlineSeconds", "tolerations", "schedulingGates"];
    if was_gated {
        // Until the scheduler may see it, a Pod can still be told where not to go.
        free.extend(["nodeSelector", "affinity"]);
    }
    let grace = "terminationGracePeriodSeconds";
    if spec[grace] == 1 && old[grace].as_i64().is_some_and(|it| it < 0) {
        free.push(grace);
    }
    for field in free {
        crate::keep(&mut spec, old, field);
    }
    spec
}
