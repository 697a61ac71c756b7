//! Says that something happened to an object.

use corten_api::resources::EVENTS;
use corten_meta::{Violation, field};
use corten_schema::{Cursor, violations};
use corten_validation::read::{number, text};
use serde_json::{Value, json};

use crate::{
    BuiltIn, MetadataChecks, Policy, SelectablePath, Verb,
    age::since,
    columns::{column, wide},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: EVENTS,
    singular: "event",
    short_names: &["ev"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.core.v1.Event",
    view_of: None,
    selectable_fields: &[
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "type",
        "source",
    ],
    columns: &[
        column("Last Seen", "When it was last seen to happen.", |object, now| json!(since(last_seen(object), now))),
        column("Type", "Normal or Warning.", |object, _| json!(text(object, "/type"))),
        column("Reason", "Why, in one CamelCase word.", |object, _| json!(text(object, "/reason"))),
        column("Object", "What it is about.", |object, _| json!(about(object))),
        wide("Subobject", "The part of the object it is about.", |object, _| {
            json!(text(object, "/involvedObject/fieldPath"))
        }),
        wide("Source", "Who saw it.", |object, _| json!(source(object))),
        column("Message", "What happened.", |object, _| json!(text(object, "/message").trim())),
        wide("First Seen", "When it was first seen to happen.", |object, now| json!(since(first_seen(object), now))),
        wide("Count", "How often it was seen.", |object, _| json!(count(object))),
        wide("Name", "The name of the event.", |object, _| object["metadata"]["name"].clone()),
    ],
    policy: &Event,
};

pub(crate) struct Event;

fn first_seen(event: &Value) -> &str {
    let first = text(event, "/firstTimestamp");
    if first.is_empty() { text(event, "/eventTime") } else { first }
}

fn last_seen(event: &Value) -> &str {
    let last = text(event, "/lastTimestamp");
    match event.pointer("/series/lastObservedTime").and_then(Value::as_str) {
        Some(observed) => observed,
        None if last.is_empty() => first_seen(event),
        None => last,
    }
}

fn count(event: &Value) -> i64 {
    if event["series"].is_object() { number(event, "/series/count") } else { number(event, "/count").max(1) }
}

fn about(event: &Value) -> String {
    let kind = text(event, "/involvedObject/kind").to_lowercase();
    match text(event, "/involvedObject/name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: &Value) -> String {
    let either = |old: &str, new: &str| if old.is_empty() { new.to_owned() } else { old.to_owned() };
    let component = either(text(event, "/source/component"), text(event, "/reportingComponent"));
    let instance = either(text(event, "/source/host"), text(event, "/reportingInstance"));
    if instance.is_empty() { component } else { format!("{component}, {instance}") }
}

impl Policy for Event {
    /// `source` is the component, else who reports (event.ToSelectableFields).
    fn selectable_path<'a>(&self, field: &'a str) -> SelectablePath<'a> {
        match field {
            "source" => SelectablePath { path: "source.component", instead: Some("reportingComponent") },
            path => SelectablePath { path, instead: None },
        }
    }

    /// legacyValidateEvent looks at no name: whatever can stand in a path is one.
    fn name_violations(&self, name: &str) -> Vec<String> {
        field::path_segment(name)
    }

    fn prepare_create(&self, _object: &mut Value) {}

    fn prepare_update(&self, _new: &mut Value, _old: &Value) {}

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |event| {
            let namespace = event.at("metadata").at("namespace");
            let about = event.at("involvedObject").at("namespace");
            let at_home = match (about.str(), event.at("eventTime").exists()) {
                ("", false) => matches!(namespace.str(), "" | "default"),
                ("", true) => matches!(namespace.str(), "default" | "kube-system"),
                (about, false) => about == namespace.str(),
                (_, true) => true,
            };
            if !at_home {
                about.invalid_as(about.str(), "does not match event.namespace");
            }
            if event.at("eventTime").exists() {
                new_style(event);
            }
        })
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::None
    }
}

/// Events with an exact time also say who reports them and what was done.
fn new_style(event: Cursor<'_>) {
    let controller = event.at("reportingComponent");
    controller.required();
    controller.follows(field::qualified_name);
    for field in ["reportingInstance", "action", "reason"] {
        let field = event.at(field);
        field.required();
        if field.str().len() > 128 {
            field.invalid_as("", "can have at most 128 characters");
        }
    }
    if event.at("message").str().len() > 1024 {
        event.at("message").invalid_as("", "can have at most 1024 characters");
    }
}
