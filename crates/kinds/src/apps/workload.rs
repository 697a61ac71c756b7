//! What Deployments and ReplicaSets share: a number of Pods, a selector, a template that the selector matches.

use corten_meta::LabelSelector;
use corten_schema::Cursor;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    core::pod_spec,
    fill::{Object, fill, made, means_the_same},
};

pub(super) fn default(spec: &mut Object) {
    fill(spec, "replicas", 1);
    let Some(template) = made(spec, "template") else { return };
    fill(template, "metadata", json!({}));
    if let Some(spec) = made(template, "spec") {
        pod_spec::default(spec);
    }
}

pub(super) fn validate(spec: Cursor<'_>) {
    spec.at("replicas").non_negative_int();
    spec.at("minReadySeconds").non_negative_int();
    let template = spec.at("template");
    selector(spec.at("selector"), template.at("metadata").at("labels"));
    pod_spec::validate_template(template);
    // Of a Pod that is to be kept alive for ever, nothing else makes sense.
    let restart = template.at("spec").at("restartPolicy");
    if !restart.is_empty() && restart.str() != "Always" {
        restart.unsupported(&["Always"]);
    }
    let deadline = template.at("spec").at("activeDeadlineSeconds");
    if deadline.exists() {
        deadline.forbidden("activeDeadlineSeconds in ReplicaSet is not Supported");
    }
}

fn selector(selector: Cursor<'_>, labels: Cursor<'_>) {
    if !selector.exists() {
        selector.missing("");
    } else {
        pod_spec::label_selector(selector);
        if selector.at("matchLabels").is_empty() && selector.at("matchExpressions").is_empty() {
            // As upstream: it says deployment of ReplicaSets too.
            return selector.invalid("empty selector is invalid for deployment");
        }
        let known = ["In", "NotIn", "Exists", "DoesNotExist"];
        if selector.list("matchExpressions").any(|it| !known.contains(&it.at("operator").str())) {
            return selector.invalid("invalid label selector");
        }
    }
    // An absent selector matches nothing.
    let wanted = LabelSelector::deserialize(selector.value()).unwrap_or_default();
    let labels_map = Deserialize::deserialize(labels.value()).unwrap_or_default();
    if !selector.exists() || !wanted.matches(&labels_map) {
        labels.invalid("`selector` does not match template `labels`");
    }
}

pub(super) fn selector_stays(workload: Cursor<'_>, old: &Value) {
    let selector = workload.at("spec").at("selector");
    if !means_the_same(selector.value(), &old["spec"]["selector"]) {
        selector.invalid("field is immutable");
    }
}
