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
fn no_type_has_more_fields_than_are_written() {
    let largest = crate::TYPES.iter().max_by_key(|it| it.fields.len()).expect("there are types");
    assert!(largest.fields.len() <= encode::FIELDS_MAX, "{} has {}", largest.name, largest.fields.len());
}

#[test]
fn a_window_is_a_duration() {
    let pod = json!({
        "kind": "PodMetrics", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {"name": "web"},
        "timestamp": "2026-11-20T12:20:00Z", "window": "1m2.024s",
        "containers": [{"name": "c", "usage": {"cpu": "1500n", "memory": "4Mi"}}],
    });
    let written = whole(&pod).expect("protobuf has it");
    // Duration{duration: 62024000000}, field 3.
    let window = [3 << 3 | 2, 7, 1 << 3, 0x80, 0xc4, 0xac, 0x87, 0xe7, 0x01];
    assert!(written.windows(window.len()).any(|it| it == window), "{written:02x?}");
    assert_eq!(decode(&written), Ok(pod.clone()));
    let list =
        json!({ "kind": "PodMetricsList", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": [pod] });
    assert!(whole(&list).is_some());
}

#[test]
fn maps_times_and_quantities() {
    let label = [field(1, b"app"), field(2, b"web")].concat();
    let metadata = [field(11, &label), field(8, &[1 << 3, 60])].concat();
    let object = decode(&body("v1", "ConfigMap", &field(1, &metadata))).expect("valid");
    assert_eq!(object["metadata"], json!({"labels": {"app": "web"}, "creationTimestamp": "1970-01-01T00:01:00Z"}));
}

#[test]
fn schemas_of_custom_resources_are_one_of_two_things() {
    let of_type = |name: &str| field(5, name.as_bytes());
    // items: a schema, then several; additionalProperties: a truth value; dependencies: a schema, and names.
    let depends = |key: &str, what: &[u8]| {
        [
            &[0x82, 0x02][..],
            &[u8::try_from(what.len() + key.len() + 4).expect("short")],
            &field(1, key.as_bytes()),
            &field(2, what),
        ]
        .concat()
    };
    let long = |number: u8, content: &[u8]| {
        [&[((number << 3) & 0x7f) | 0x82, number >> 4][..], &[u8::try_from(content.len()).expect("short")][..], content]
            .concat()
    };
    let schema = [
        long(24, &field(1, &of_type("string"))),
        long(30, &[8, 1]),
        depends("a", &field(1, &of_type("object"))),
        depends("b", &[field(2, b"x"), field(2, b"y")].concat()),
    ]
    .concat();
    let version = field(4, &field(1, &schema));
    let object = decode(&body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &field(2, &field(7, &version))));
    assert_eq!(
        object.expect("valid")["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
        json!({
            "items": { "type": "string" },
            "additionalProperties": true,
            "dependencies": { "a": { "type": "object" }, "b": ["x", "y"] },
        })
    );
}

/// Until v1.23 metadata had `clusterName`, and clients of that time always write it.
#[test]
fn a_field_that_is_gone_or_to_come_is_left_out() {
    let metadata = [field(1, b"c"), field(15, b"")].concat();
    let object =
        decode(&body("v1", "ConfigMap", &[field(1, &metadata), field(9, b"x"), vec![0xc2, 0xb2, 4, 1, b'x']].concat()));
    assert_eq!(object.expect("valid"), json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" } }));
}

#[test]
fn bad_bodies_are_errors() {
    for (bytes, error) in [
        (b"{}".to_vec(), ProtoError::NoPrefix),
        (MAGIC.iter().copied().chain([10, 200]).collect(), ProtoError::Truncated),
        (body("v1", "Unicorn", b""), ProtoError::UnknownKind("Unicorn".into(), "v1".into())),
        (body("v1", "ConfigMap", &[1 << 3, 1]), ProtoError::Malformed("io.k8s.api.core.v1.ConfigMap")),
    ] {
        assert_eq!(decode(&bytes), Err(error));
    }
}

/// Kubernetes's own objects with every field set: what protobuf says must be what JSON says.
#[test]
fn golden_objects_say_the_same_in_protobuf_and_json() {
    let Some(objects) = golden::objects() else { return };
    let mut same = 0;
    for (name, bytes) in objects.iter().filter(|it| it.0.ends_with(".pb")) {
        let json = objects.iter().find(|it| it.0.strip_suffix(".json") == name.strip_suffix(".pb")).expect("its JSON");
        let expected: Value = serde_json::from_slice(&json.1).expect("JSON");
        match decode(bytes) {
            Ok(object) => {
                assert_eq!(whole(&expected).as_ref(), Some(bytes), "{name}");
                assert_eq!(pruned(object), pruned(expected), "{name}");
                same += 1;
            }
            // Of no version that is served.
            Err(ProtoError::UnknownKind(..)) if crate::tests::golden_type(&json.0.replace(".json", "")).is_none() => {}
            Err(error) => panic!("{name}: {error}"),
        }
    }
    assert!(same >= 100, "only {same} golden objects could be read");
}

/// Objects of a real server: what nobody set is written as it writes it.
#[test]
fn what_is_not_set_is_written_as_a_server_of_kubernetes_writes_it() {
    // In these most fields are not set: `pods.core.bin` and `.json`.
    let Some(objects) = golden::archive("etcd-stored.tar.gz") else { return };
    let mut same = 0;
    for (name, bytes) in objects.iter().filter(|it| it.0.ends_with(".bin") && it.1.starts_with(MAGIC)) {
        let json = name.replace(".bin", ".json");
        let Some((_, json)) = objects.iter().find(|it| it.0 == json) else { continue };
        let mut object: Value = serde_json::from_slice(json).expect("JSON");
        object["metadata"]["resourceVersion"] = json!("");
        if NEWER.contains(&&**name) {
            assert_ne!(whole(&object).as_ref(), Some(bytes), "{name} is the same by now");
            continue;
        }
        assert!(whole(&object).as_ref() == Some(bytes), "{name}: {:?}", whole(&object).map(|it| decode(&it)));
        same += 1;
    }
    assert!(same >= 57, "only {same} stored objects were compared");
}

/// Stored in a version that is not the one of their JSON, with blanks in JSON that stands in a message, or without a field that
/// is new since and always written.
const NEWER: &[&str] = &[
    "controllerrevisions.apps.bin",
    "csinodes.storage.k8s.io.bin",
    "deviceclasses.resource.k8s.io.bin",
    "events.events.k8s.io.bin",
    "horizontalpodautoscalers.autoscaling.bin",
    "podgroups.scheduling.k8s.io.bin",
    "resourceclaims.resource.k8s.io.bin",
    "resourceclaimtemplates.resource.k8s.io.bin",
    "workloads.scheduling.k8s.io.bin",
];

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

fn varint(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(u8::try_from(number & 0x7f).expect("seven bits") | 0x80);
        number >>= 7;
    }
    bytes.push(u8::try_from(number).expect("seven bits"));
    bytes
}

/// A length-delimited field of any number and length.
fn long(number: usize, content: &[u8]) -> Vec<u8> {
    [&varint(number << 3 | 2), &varint(content.len()), content].concat()
}

/// Messages, maps and lists are counted as they are nested in JSON, and JSON within a message goes on from where it stands.
#[test]
fn what_is_nested_too_deeply_is_refused() {
    const NOT: usize = 28;
    const ALL_OF: usize = 25;
    const PROPERTIES: usize = 29;
    const DEFAULT: usize = 8;
    let schema =
        crate::find("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps").expect("a type");
    type Wrap = fn(Vec<u8>) -> Vec<u8>;
    let ways: [(usize, Wrap); 3] = [
        (1, |it| long(NOT, &it)),
        (2, |it| long(ALL_OF, &it)),
        (2, |it| long(PROPERTIES, &[long(1, b"a"), long(2, &it)].concat())),
    ];
    let decoded = |bytes: &[u8]| {
        let (mut object, scope) = (Map::new(), Scope { levels: LEVELS_MAX });
        message(bytes, schema, &[], &mut object, inside(scope)?).map(|()| Value::Object(object))
    };
    for (each, wrap) in ways {
        for n in [LEVELS_MAX / each - 1, LEVELS_MAX / each, LEVELS_MAX / each + 1, 10_000] {
            let bytes = (0..n).fold(Vec::new(), |it, _| wrap(it));
            let is_within = n * each < LEVELS_MAX;
            match decoded(&bytes) {
                Ok(value) => assert!(is_within && depth::fits(&value, LEVELS_MAX), "{n} times {each}"),
                Err(error) => assert!(!is_within && error == ProtoError::TooDeep, "{n} times {each}: {error}"),
            }
        }
    }
    for n in [LEVELS_MAX - 3, LEVELS_MAX - 2, LEVELS_MAX - 1, 10_000] {
        let json = format!("{}{}", "[".repeat(n), "]".repeat(n));
        let bytes = long(NOT, &long(DEFAULT, &long(1, json.as_bytes())));
        let is_within = 2 + n <= LEVELS_MAX;
        assert_eq!(decoded(&bytes).map(drop), if is_within { Ok(()) } else { Err(ProtoError::TooDeep) }, "{n} lists");
        let object = long(2, &long(1, json.as_bytes()));
        let type_meta = [field(1, b"apps/v1"), field(2, b"ControllerRevision")].concat();
        let body = [MAGIC.to_vec(), long(1, &type_meta), long(2, &object)].concat();
        let is_within = n < LEVELS_MAX;
        assert_eq!(decode(&body).map(drop), if is_within { Ok(()) } else { Err(ProtoError::TooDeep) }, "{n} lists");
    }
}
