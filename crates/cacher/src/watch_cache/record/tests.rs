use std::sync::Arc;

use corten_kinds::{Kind, by_path, custom};
use serde_json::{Value, json};

use super::Reader;

/// Reads the kind's selectable fields from the bytes and from the object: both must find the same.
fn fields(kind: &Kind, object: &Value) -> Vec<(String, String)> {
    let reader = Reader::new(kind);
    let read = reader.read(object.to_string().as_bytes()).expect("it is JSON");
    assert_eq!(read, reader.read_value(object));
    kind.selectable_fields.iter().map(str::to_owned).zip(read.fields).collect()
}

fn found<'a>(fields: &'a [(String, String)], name: &str) -> &'a str {
    &fields.iter().find(|it| it.0 == name).expect("the kind can be selected by it").1
}

/// A kind of somebody's own whose selectable fields are called as two that upstream renames of its own kinds.
fn custom_kind() -> Arc<Kind> {
    let text = json!({ "type": "string" });
    let schema = json!({ "type": "object", "properties": { "source": text, "reportingComponent": text,
        "status": { "type": "object", "properties": { "successful": text, "succeeded": text } } } });
    let definition = json!({
        "metadata": { "name": "runs.example.com" },
        "spec": { "group": "example.com", "scope": "Namespaced", "names": { "plural": "runs", "kind": "Run" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema },
                "selectableFields": [{ "jsonPath": ".source" }, { "jsonPath": ".status.successful" }] }] },
        "status": { "acceptedNames": { "plural": "runs", "singular": "run", "kind": "Run", "listKind": "RunList" } },
    });
    custom::rows(&definition).expect("the definition is whole").stored
}

#[test]
fn only_the_kinds_that_rename_a_field_read_it_elsewhere() {
    let event = by_path("", "v1", "events").expect("Events are served");
    let read = |object: Value| found(&fields(event, &object), "source").to_owned();
    assert_eq!(read(json!({ "source": { "component": "kubelet" }, "reportingComponent": "x" })), "kubelet");
    assert_eq!(read(json!({ "reportingComponent": "x", "source": {} })), "x");

    let job = by_path("batch", "v1", "jobs").expect("Jobs are served");
    assert_eq!(found(&fields(job, &json!({ "status": { "succeeded": 3 } })), "status.successful"), "3");

    let run = json!({ "source": "a", "reportingComponent": "b", "status": { "successful": "c", "succeeded": "d" } });
    let read = fields(&custom_kind(), &run);
    assert_eq!((found(&read, "source"), found(&read, "status.successful")), ("a", "c"));
    let read = fields(&custom_kind(), &json!({ "reportingComponent": "b", "status": { "succeeded": "d" } }));
    assert_eq!((found(&read, "source"), found(&read, "status.successful")), ("", ""));
}
