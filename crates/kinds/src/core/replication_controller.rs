//! Keeps a number of equal Pods alive: the ancestor of ReplicaSets, with a selector of plain labels.

use std::collections::BTreeMap;

use corten_api::resources::REPLICATION_CONTROLLERS;
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{fill, is_absent, made},
    pod_spec,
    read::number,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Subresource, Verb,
    columns::{AGE, CONTAINERS, IMAGES, integer, labels_text, wide},
    core::workload,
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: REPLICATION_CONTROLLERS,
    singular: "replicationcontroller",
    short_names: &["rc"],
    categories: &["all"],
    verbs: Verb::ALL,
    subresources: &[Subresource::Scale, Subresource::Status],
    schema: "io.k8s.api.core.v1.ReplicationController",
    view_of: None,
    selectable_fields: &["status.replicas"],
    columns: &[
        integer("Desired", "How many Pods there are to be.", |object, _| json!(number(object, "/spec/replicas"))),
        integer("Current", "How many Pods there are.", |object, _| json!(number(object, "/status/replicas"))),
        integer("Ready", "How many of them are ready.", |object, _| json!(number(object, "/status/readyReplicas"))),
        AGE,
        CONTAINERS,
        IMAGES,
        wide("Selector", "Which Pods it counts as its own.", |object, _| {
            json!(labels_text(&object["spec"]["selector"]))
        }),
    ],
    policy: &ReplicationController,
};

struct ReplicationController;

impl Policy for ReplicationController {
    fn name_violations(&self, name: &str) -> Vec<String> {
        field::long_name(name)
    }

    /// The template's labels stand in for a selector and for the object's own labels.
    fn default(&self, object: &mut Value) {
        let labels = object["spec"]["template"]["metadata"]["labels"].clone();
        let has_labels = labels.as_object().is_some_and(|it| !it.is_empty());
        let Some(object) = object.as_object_mut() else { return };
        if has_labels
            && let Some(metadata) = made(object, "metadata")
            && is_empty(metadata.get("labels"))
        {
            metadata.insert("labels".into(), labels.clone());
        }
        let Some(spec) = made(object, "spec") else { return };
        if has_labels && is_empty(spec.get("selector")) {
            spec.insert("selector".into(), labels);
        }
        fill(spec, "replicas", 1);
        if !is_absent(spec, "template") {
            workload::default_template(spec);
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |object| {
            let spec = object.at("spec");
            spec.at("minReadySeconds").non_negative_int();
            if spec.at("selector").is_empty() {
                spec.at("selector").missing("");
            }
            spec.at("replicas").non_negative_int();
            template(spec);
        })
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        pod_spec::warnings(new, old, &["spec", "template", "spec"], pod_spec::Name::OfPods)
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, |object| workload::validate_status(object.at("status")))
    }
}

fn is_empty(map: Option<&Value>) -> bool {
    map.and_then(Value::as_object).is_none_or(serde_json::Map::is_empty)
}

fn template(spec: Cursor<'_>) {
    let template = spec.at("template");
    if !template.exists() {
        return template.missing("");
    }
    let labels = template.at("metadata").at("labels");
    let map = |it: Cursor<'_>| BTreeMap::<String, String>::deserialize(it.value()).unwrap_or_default();
    let (selector, given) = (map(spec.at("selector")), map(labels));
    if !selector.is_empty() && selector.iter().any(|(key, value)| given.get(key) != Some(value)) {
        labels.invalid(workload::MISMATCH);
    }
    pod_spec::validate_template(template);
    // The message names the heir.
    workload::lasting(template, "ReplicaSet");
}
