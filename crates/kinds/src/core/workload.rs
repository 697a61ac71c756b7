//! What workloads share: a number of Pods, a selector, a template that the selector matches.

use corten_meta::LabelSelector;
use corten_schema::Cursor;
use corten_validation::{
    fill::{Object, fill, made},
    labels, pod_spec, rules,
};
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) fn default(spec: &mut Object) {
    fill(spec, "replicas", 1);
    default_template(spec);
}

pub(crate) fn default_template(spec: &mut Object) {
    let Some(template) = made(spec, "template") else { return };
    fill(template, "metadata", json!({}));
    if let Some(spec) = made(template, "spec") {
        pod_spec::default(spec);
    }
}

pub(crate) fn validate(spec: Cursor<'_>) {
    spec.at("replicas").non_negative_int();
    spec.at("minReadySeconds").non_negative_int();
    let template = spec.at("template");
    if selector(spec.at("selector"), template.at("metadata").at("labels")) {
        pod_spec::validate_template(template);
        lasting(template, "ReplicaSet");
    }
}

/// Of a Pod that is to be kept alive for ever, nothing else makes sense.
pub(crate) fn lasting(template: Cursor<'_>, owner: &str) {
    let restart = template.at("spec").at("restartPolicy");
    if !restart.is_empty() && restart.str() != "Always" {
        restart.unsupported(&["Always"]);
    }
    let deadline = template.at("spec").at("activeDeadlineSeconds");
    if deadline.exists() {
        deadline.forbidden(&format!("activeDeadlineSeconds in {owner} is not Supported"));
    }
}

/// The status of ReplicaSets and ReplicationControllers.
pub(crate) fn validate_status(status: Cursor<'_>) {
    let of_all = ["fullyLabeledReplicas", "readyReplicas", "availableReplicas"];
    rules::counts(status, &["replicas"]);
    rules::counts(status, &of_all);
    rules::counts(status, &["observedGeneration"]);
    rules::at_most(status, &of_all, "replicas", "status.replicas");
    rules::at_most(status, &["availableReplicas"], "readyReplicas", "readyReplicas");
}

/// Would the selector find Pods made from the template? An absent selector matches nothing.
pub(crate) fn matches(selector: Cursor<'_>, labels: Cursor<'_>) -> bool {
    let wanted = LabelSelector::deserialize(selector.value()).unwrap_or_default();
    let labels = Deserialize::deserialize(labels.value()).unwrap_or_default();
    selector.exists() && wanted.matches(&labels)
}

/// Is there nothing in the selector, so that it would match all?
pub(crate) fn is_all(selector: Cursor<'_>) -> bool {
    selector.at("matchLabels").is_empty() && selector.at("matchExpressions").is_empty()
}

pub(crate) const MISMATCH: &str = "`selector` does not match template `labels`";

/// True where it is a selector: only then the template is looked at.
fn selector(selector: Cursor<'_>, labels: Cursor<'_>) -> bool {
    if !selector.exists() {
        selector.missing("");
    } else {
        let is_one = labels::label_selector(selector);
        if is_all(selector) {
            // `ValidateReplicaSetSpec` says deployment, too.
            selector.invalid("empty selector is invalid for deployment");
        }
        if !is_one {
            selector.invalid("invalid label selector");
            return false;
        }
    }
    let is_empty = selector.exists() && is_all(selector);
    if !is_empty && !matches(selector, labels) {
        labels.invalid(MISMATCH);
    }
    true
}

pub(crate) fn selector_stays(workload: Cursor<'_>, old: &Value) {
    rules::immutable(workload.at("spec").at("selector"), &old["spec"]["selector"]);
}
