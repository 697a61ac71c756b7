//! Says whether a component of the control plane is well. Deprecated, and never stored.

use corten_api::resources::COMPONENT_STATUSES;
use corten_validation::read::items;
use serde_json::{Value, json};

use crate::{BuiltIn, Policy, Verb, columns::column};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: COMPONENT_STATUSES,
    singular: "componentstatus",
    short_names: &["cs"],
    categories: &[],
    verbs: &[Verb::Get, Verb::List],
    subresources: &[],
    schema: "io.k8s.api.core.v1.ComponentStatus",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Status", "Whether it is healthy.", |object, _| {
            json!(match health(object)["status"].as_str() {
                Some("True") => "Healthy",
                Some(_) => "Unhealthy",
                None => "Unknown",
            })
        }),
        column("Message", "What a look at it found.", |object, _| json!(said(object, "message"))),
        column("Error", "What went wrong with the look.", |object, _| json!(said(object, "error"))),
    ],
    policy: &ComponentStatus,
};

fn health(object: &Value) -> &Value {
    items(object, "/conditions").iter().find(|it| it["type"] == "Healthy").unwrap_or(&Value::Null)
}

fn said<'v>(object: &'v Value, field: &str) -> &'v str {
    health(object)[field].as_str().unwrap_or_default()
}

struct ComponentStatus;

impl Policy for ComponentStatus {}
