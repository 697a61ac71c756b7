//! Keeps what a StatefulSet's or DaemonSet's template was, so that it can be rolled back.

use corten_api::resources::CONTROLLER_REVISIONS;
use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::fill,
    read::{items, number, text},
};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Verb,
    columns::{AGE, column},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: CONTROLLER_REVISIONS,
    singular: "controllerrevision",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.apps.v1.ControllerRevision",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Controller", "Whose revision it is.", |object, _| json!(controller(object))),
        column("Revision", "Its number among the revisions of its controller.", |object, _| {
            json!(number(object, "/revision").to_string())
        }),
        AGE,
    ],
    policy: &ControllerRevision,
};

struct ControllerRevision;

/// `daemonset.apps/web`.
fn controller(revision: &Value) -> String {
    let Some(owner) = items(revision, "/metadata/ownerReferences").iter().find(|it| it["controller"] == true) else {
        return "<none>".into();
    };
    let group = text(owner, "/apiVersion").split_once('/').map_or("", |it| it.0);
    let dot = if group.is_empty() { "" } else { "." };
    format!("{}/{}", format!("{}{dot}{group}", text(owner, "/kind")).to_lowercase(), text(owner, "/name"))
}

impl Policy for ControllerRevision {
    fn default(&self, object: &mut Value) {
        if let Some(object) = object.as_object_mut() {
            // Go's type does not leave it out.
            fill(object, "revision", 0);
        }
    }

    fn prepare_create(&self, _object: &mut Value) {}

    fn prepare_update(&self, _new: &mut Value, _old: &Value) {}

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |revision| {
            data(revision.at("data"));
            revision.at("revision").non_negative_int();
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        // What is kept may be anything: empty text in it is no less than other text.
        violations(new, |revision| {
            if revision.at("data").value() != &old["data"] {
                revision.at("data").invalid("field is immutable");
            }
        })
    }

    fn has_generation(&self) -> bool {
        false
    }
}

fn data(data: Cursor<'_>) {
    if !data.exists() {
        data.missing("data is mandatory");
    }
}
