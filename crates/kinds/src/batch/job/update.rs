//! What may change in the life of a Job: how many Pods at once, and, until it has begun, where they may run.

use corten_schema::Cursor;
use corten_validation::{fill::means_the_same, rules};
use serde_json::Value;

use crate::keep;

const FIXED: [&str; 5] = ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"];

pub(super) fn validate(job: Cursor<'_>, old: &Value) {
    let (spec, before) = (job.at("spec"), &old["spec"]);
    completions(spec, before);
    rules::immutable(spec.at("selector"), &before["selector"]);
    template(spec.at("template"), &before["template"], may_be_moved(old));
    for field in FIXED {
        rules::immutable(spec.at(field), &before[field]);
    }
}

fn completions(spec: Cursor<'_>, old: &Value) {
    let completions = spec.at("completions");
    if means_the_same(completions.value(), &old["completions"]) {
        return;
    }
    if spec.at("completionMode").str() != "Indexed" {
        return completions.invalid("field is immutable");
    }
    if completions.value() != spec.at("parallelism").value() {
        completions.invalid("can only be modified in tandem with spec.parallelism");
    }
}

/// Queues suspend a Job, choose where it is to run, and let it go.
fn may_be_moved(old: &Value) -> bool {
    old["spec"]["suspend"] == true && old["status"]["startTime"].is_null()
}

fn template(template: Cursor<'_>, old: &Value, movable: bool) {
    let mut allowed = template.value().clone();
    if movable {
        for field in ["nodeSelector", "tolerations", "schedulingGates"] {
            keep(&mut allowed["spec"], &old["spec"], field);
        }
        let affinity = &old["spec"]["affinity"];
        if allowed["spec"]["affinity"].is_null() {
            keep(&mut allowed["spec"], &old["spec"], "affinity");
        } else {
            keep(&mut allowed["spec"]["affinity"], affinity, "nodeAffinity");
        }
        for field in ["labels", "annotations"] {
            keep(&mut allowed["metadata"], &old["metadata"], field);
        }
        for list in ["containers", "initContainers"] {
            resources(&mut allowed["spec"][list], &old["spec"][list]);
        }
    }
    if !means_the_same(&allowed, old) {
        template.invalid("field is immutable");
    }
}

fn resources(new: &mut Value, old: &Value) {
    let (Some(new), Some(old)) = (new.as_array_mut(), old.as_array()) else { return };
    new.iter_mut().zip(old).for_each(|(new, old)| keep(new, old, "resources"));
}
