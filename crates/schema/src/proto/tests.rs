//! Bodies as clients send them, and every golden object where the folder is there.

use serde_json::{Value, json};

use super::*;
use crate::golden;

/// A length-delimited field.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let length = u8::try_from(content.len()).expect("short");
    [&[number << 3 | 2, length], content].concat()
}

fn body(api_version: &str, kind: &str, object: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
    [MAGIC, &field(1, &type_meta), &field(2, object)].concat()
}

#[test]
fn zeros_that_go_always_writes_are_left_out_and_zeros_that_were_meant_stay() {
    let metadata = [field(1, b"web"), field(2, b""), field(8, b"")].concat();
    // replicas = 0 (a pointer), minReadySeconds = 0 (a plain field).
    let spec = [&[1 << 3, 0][..], &[5 << 3, 0]].concat();
    let object = decode(&body("apps/v1", "Deployment", &[field(1, &metadata), field(2, &spec)].concat()));
    let expected = json!({
        "kind": "Deployment", "apiVersion": "apps/v1", "metadata": {"name": "web"}, "spec": {"replicas": 0}
    });
    assert_eq!(object, Ok(expected));
}

#[test]
fn embedded_structs_are_part_of_their_parent() {
    // Volume{name: "v", VolumeSource{emptyDir: {}}}
    let volume = [field(1, b"v"), field(2, &field(2, b""))].concat();
    let object = decode(&body("v1", "Pod", &field(2, &field(1, &volume)))).expect("valid");
    assert_eq!(object["spec"]["volumes"], json!([{"name": "v", "emptyDir": {}}]));
}

#[test]
fn maps_times_and_quantities() {
    let label = [field(1, b"app"), field(2, b"web")].concat();
    let metadata = [field(11, &label), field(8, &[1 << 3, 60])].concat();
    let object = decode(&body("v1", "ConfigMap", &field(1, &metadata))).expect("valid");
    assert_eq!(object["metadata"], json!({"labels": {"app": "web"}, "creationTimestamp": "1970-01-01T00:01:00Z"}));
}

#[test]
fn bad_bodies_are_errors() {
    for (bytes, error) in [
        (b"{}".to_vec(), ProtoError::NoPrefix),
        (MAGIC.iter().copied().chain([10, 200]).collect(), ProtoError::Truncated),
        (body("v1", "Unicorn", b""), ProtoError::UnknownKind("Unicorn".into(), "v1".into())),
        (body("v1", "ConfigMap", &field(99 % 31, b"")), ProtoError::UnknownField("io.k8s.api.core.v1.ConfigMap", 6)),
        (body("v1", "ConfigMap", &[1 << 3, 1]), ProtoError::Malformed("io.k8s.api.core.v1.ConfigMap")),
    ] {
        assert_eq!(decode(&bytes), Err(error));
    }
}

/// Kubernetes's own objects with every field set: what protobuf says must be what JSON says.
#[test]
fn golden_objects_say_the_same_in_protobuf_and_json() {
    let Some(objects) = golden::objects() else { return };
    let (mut same, mut refused) = (0, Vec::new());
    for (name, bytes) in objects.iter().filter(|it| it.0.ends_with(".pb")) {
        let json = objects.iter().find(|it| it.0.strip_suffix(".json") == name.strip_suffix(".pb")).expect("its JSON");
        let expected: Value = serde_json::from_slice(&json.1).expect("JSON");
        match decode(bytes) {
            Ok(object) => {
                assert_eq!(pruned(object), pruned(expected), "{name}");
                same += 1;
            }
            // A field or kind newer than the table of numbers: refused, never dropped.
            Err(error @ (ProtoError::UnknownField(..) | ProtoError::UnknownKind(..))) => refused.push((name, error)),
            Err(error) => panic!("{name}: {error}"),
        }
    }
    eprintln!("{same} objects say the same, {} are refused: {refused:?}", refused.len());
    assert!(same >= 40, "only {same} golden objects could be read");
}

/// Without what the two forms legitimately write differently: nulls and empty values.
fn pruned(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().map(|(name, it)| (name, pruned(it)));
            Value::Object(kept.filter(|(_, it)| !it.is_null() && *it != json!({}) && *it != json!([])).collect())
        }
        Value::Array(items) => items.into_iter().map(pruned).collect(),
        other => other,
    }
}
