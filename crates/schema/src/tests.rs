//! The table as a whole, and every boundary of the crate that is not a patch.

use serde_json::{Value, json};

use super::*;

mod depth;
mod wide;

const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";

#[test]
fn the_table_is_sorted_and_whole() {
    assert!(TYPES.windows(2).all(|it| it[0].name < it[1].name));
    for of in TYPES {
        assert!(of.fields.windows(2).all(|it| it[0].name < it[1].name), "{}", of.name);
        for field in of.fields {
            let (Patch::ByKey(key), Shape::List(Shape::Object(element))) = (field.merge.patch, field.shape) else {
                continue;
            };
            assert!(element.field(key).is_some(), "{}.{} merges by {key}", of.name, field.name);
        }
    }
    let spec = find("io.k8s.api.core.v1.PodSpec").expect("a type");
    let merge = |name: &str| *spec.field(name).expect("a field").merge;
    let by_name = Merge { apply: Apply::ByKeys(&["name"]), patch: Patch::ByKey("name"), retain_keys: false };
    assert_eq!(merge("containers"), by_name);
    assert_eq!(merge("volumes"), Merge { retain_keys: true, ..by_name });
    assert_eq!(merge("tolerations"), Merge { apply: Apply::Atomic, patch: Patch::Replace, retain_keys: false });
    assert!(find("io.k8s.api.core.v1.Nothing").is_none());
}

#[test]
fn wrong_types_are_named_as_go_names_them() {
    for (object, path, message) in [
        (
            json!({"spec": {"replicas": "3"}}),
            "spec.replicas",
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"spec": {"template": {"spec": {"containers": "x"}}}}),
            "spec.template.spec.containers",
            "json: cannot unmarshal string into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
        (
            json!({"spec": {"template": {"spec": {"containers": [{}, {"env": [{"value": 3}]}]}}}}),
            "spec.template.spec.containers[1].env[0].value",
            "json: cannot unmarshal number into Go struct field EnvVar.spec.template.spec.containers.env.value of type string",
        ),
        (
            json!({"spec": {"replicas": 3_000_000_000_u64}}),
            "spec.replicas",
            "json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"spec": {"replicas": 1.5}}),
            "spec.replicas",
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            json!({"metadata": {"labels": {"a": true}}}),
            "metadata.labels.a",
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
        ),
        (
            json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": []}}}}),
            "spec.strategy.rollingUpdate.maxSurge",
            "json: cannot unmarshal array into Go value of type int32",
        ),
        (
            json!({"metadata": {"creationTimestamp": "yesterday"}}),
            "metadata.creationTimestamp",
            "parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"yesterday\" as \"2006\"",
        ),
        (
            json!({"status": {"conditions": [{"lastUpdateTime": ""}]}}),
            "status.conditions[0].lastUpdateTime",
            "parsing time \"\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"\" as \"2006\"",
        ),
        (
            json!({"spec": {"template": {"spec": {"containers": [{"resources": {"limits": {"cpu": "x"}}}]}}}}),
            "spec.template.spec.containers[0].resources.limits.cpu",
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
        (json!([]), "", "json: cannot unmarshal array into Go value of type v1.Deployment"),
    ] {
        let findings = check(DEPLOYMENT, &object);
        let expected = WrongType { path: path.into(), message: message.into() };
        assert_eq!(findings, Findings { wrong_types: vec![expected], unknown_fields: vec![] });
    }
    let lease =
        check("io.k8s.api.coordination.v1.Lease", &json!({"spec": {"renewTime": "", "acquireTime": "2026-11-20"}}));
    let messages: Vec<&str> = lease.wrong_types.iter().map(|it| &*it.message).collect();
    let parsing = "as \"2006-01-02T15:04:05.000000Z07:00\": cannot parse \"\" as";
    assert_eq!(
        messages,
        [format!("parsing time \"\" {parsing} \"2006\""), format!("parsing time \"2026-11-20\" {parsing} \"T\"")]
    );
    let secret = check("io.k8s.api.core.v1.Secret", &json!({"data": {"a": "aGVsbG8=", "b": "aGVsbG8", "c": "a*"}}));
    let messages: Vec<&str> = secret.wrong_types.iter().map(|it| &*it.message).collect();
    assert_eq!(messages, ["illegal base64 data at input byte 4", "illegal base64 data at input byte 1"]);
}

#[test]
fn unknown_fields_are_found_and_pruned() {
    let mut object = json!({
        "kind": "Deployment",
        "Metadata": {},
        "metadata": {"name": "web", "labels": {"a": null}, "annotations": {}, "ownerReferences": [],
            "creationTimestamp": "2026-11-20T12:57:29.5+02:00", "deletionTimestamp": "0001-01-01T00:00:00Z"},
        "spec": {"replicas": 0, "paused": null, "template": {"spec": {
            "containers": [{"name": "a", "foo": 1, "args": ["x", null],
                "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}}],
            "volumes": [{"name": "v", "emptyDir": {}}, null]}}}});
    let findings = check(DEPLOYMENT, &object);
    assert_eq!(
        findings.unknown_fields,
        [r#"unknown field "Metadata""#, r#"unknown field "spec.template.spec.containers[0].foo""#]
    );
    assert!(findings.wrong_types.is_empty(), "{findings:?}");
    prune(DEPLOYMENT, &mut object);
    let expected = json!({
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"a": ""}, "creationTimestamp": "2026-11-20T10:57:29Z"},
        "spec": {"replicas": 0, "template": {"spec": {
            "containers": [{"name": "a", "args": ["x", ""],
                "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}}],
            "volumes": [{"name": "v", "emptyDir": {}}, {}]}}}});
    assert_eq!(object, expected);
}

#[test]
fn duplicate_fields_are_found_in_the_text() {
    let text = br#"{"spec":{"replicas":1,"a":[{"b":1,"b":2,"b":3}],"replicas":2},"c":{"x":1},"d":{"x":1},"c":null}"#;
    assert_eq!(
        duplicates(text),
        [r#"duplicate field "spec.a[0].b""#, r#"duplicate field "spec.replicas""#, r#"duplicate field "c""#]
    );
    assert_eq!(duplicates(b"{\"a\":1,\"a\":"), [r#"duplicate field "a""#]);
    let deep = "[".repeat(100_000);
    assert!(duplicates(deep.as_bytes()).is_empty());

    // As they stand, whatever is wrong with them; of what is unknown nothing more is said.
    let unknown = [r#"unknown field "spec.a""#.to_owned(), r#"unknown field "d""#.to_owned()];
    assert_eq!(
        in_document_order(text, &unknown),
        [
            r#"unknown field "spec.a""#,
            r#"duplicate field "spec.replicas""#,
            r#"unknown field "d""#,
            r#"duplicate field "c""#
        ]
    );

    let (value, sentences) = read(text).expect("it is JSON");
    assert_eq!(value, serde_json::from_slice::<serde_json::Value>(text).expect("it is JSON"));
    assert_eq!(sentences, duplicates(text));
    for text in
        [&br#"[1,-2,3.5e3,18446744073709551615,true,null,"\u00e9\n",{"$serde_json::private::Number":"1"}]"#[..], b"{}"]
    {
        let (value, sentences) = read(text).expect("it is JSON");
        assert_eq!(value, serde_json::from_slice::<serde_json::Value>(text).expect("it is JSON"));
        assert!(sentences.is_empty());
    }
    for broken in [&b"{\"a\":1"[..], b"{} {}", b"", deep.as_bytes()] {
        let message = serde_json::from_slice::<serde_json::Value>(broken).expect_err("it is no JSON").to_string();
        assert_eq!(read(broken).expect_err("it is no JSON").to_string(), message);
    }
}

#[test]
fn cursors_report_with_paths() {
    let object = json!({"spec": {"replicas": -1, "containers": [{"name": "a"}, {"name": ""}]}, "data": {"x y": "v"}});
    let found = violations(&object, |object| {
        let spec = object.at("spec");
        spec.at("replicas").non_negative_int();
        for container in spec.list("containers") {
            container.at("name").required();
            container.at("image").required();
        }
        for (_, value) in object.at("data").entries() {
            value.one_of(&["b", "a"]);
        }
    });
    let sentences: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(
        sentences,
        [
            "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
            "spec.containers[0].image: Required value",
            "spec.containers[1].name: Required value",
            "spec.containers[1].image: Required value",
            r#"data[x y]: Unsupported value: "v": supported values: "b", "a""#,
        ]
    );
}

#[test]
fn reports_are_bounded_however_many_violations_there_are() {
    let list = |many: usize| json!({"items": vec![json!({}); many]});
    for (many, told) in [(99, 99), (100, 100), (101, 101), (1_000_000, 101)] {
        let mut visited = 0;
        let found = violations(&list(many), |object| {
            for item in object.list("items") {
                visited += 1;
                item.at("name").required();
            }
        });
        assert_eq!((found.len(), visited), (told, many.min(101)), "{many} violations");
        assert_eq!(found.last().is_some_and(|it| it.path.is_empty()), many > 100, "{many} violations");
    }
}

/// As evanphx/json-patch: an index may count from the end of its list.
#[test]
fn json_patches_count_from_the_end_of_lists() {
    let object = json!({"l": ["a", "b", "c"], "m": {"-1": "x"}, "n": [{"p": [1, 2]}]});
    for (operation, changed) in [
        (r#"{"op":"add","path":"/l/-1","value":"d"}"#, json!({"l": ["a", "b", "c", "d"]})),
        (r#"{"op":"add","path":"/l/-4","value":"d"}"#, json!({"l": ["d", "a", "b", "c"]})),
        (r#"{"op":"add","path":"/l/-","value":"d"}"#, json!({"l": ["a", "b", "c", "d"]})),
        (r#"{"op":"remove","path":"/l/-1"}"#, json!({"l": ["a", "b"]})),
        (r#"{"op":"replace","path":"/l/-3","value":"d"}"#, json!({"l": ["d", "b", "c"]})),
        (r#"{"op":"test","path":"/l/-2","value":"b"}"#, json!({})),
        (r#"{"op":"replace","path":"/m/-1","value":"y"}"#, json!({"m": {"-1": "y"}})),
        (r#"{"op":"add","path":"/n/-1/p/-2","value":3}"#, json!({"n": [{"p": [1, 3, 2]}]})),
        (r#"{"op":"copy","from":"/l/-1","path":"/l/-1"}"#, json!({"l": ["a", "b", "c", "c"]})),
        (r#"{"op":"move","from":"/l/-3","path":"/l/-1"}"#, json!({"l": ["b", "c", "a"]})),
        (r#"{"op":"move","from":"/l/-1","path":"/l/0"}"#, json!({"l": ["c", "a", "b"]})),
    ] {
        let mut expected = object.clone();
        for (field, value) in changed.as_object().expect("an object") {
            expected[field] = value.clone();
        }
        let patched = patch::json(object.clone(), format!("[{operation}]").as_bytes());
        assert_eq!(patched, Ok(expected), "{operation}");
    }
    for operation in [
        r#"{"op":"remove","path":"/l/-4"}"#,
        r#"{"op":"add","path":"/l/-5","value":1}"#,
        r#"{"op":"replace","path":"/l/-x","value":1}"#,
        r#"{"op":"move","from":"/l/-4","path":"/l/-1"}"#,
    ] {
        let refused = patch::json(object.clone(), format!("[{operation}]").as_bytes());
        assert_eq!(refused.map_err(|it| it.status().code), Err(422), "{operation}");
    }
}

#[test]
fn json_patches_are_bounded() {
    let object = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"replicas": 1}});
    let apply = |patch: &str| patch::json(object.clone(), patch.as_bytes());
    let patched = apply(
        r#"[{"op":"test","path":"/spec/replicas","value":1},{"op":"replace","path":"/spec/replicas","value":2},
        {"op":"add","path":"/metadata/labels/x~1y","value":"z"},{"op":"remove","path":"/metadata/labels/a"}]"#,
    );
    assert_eq!(patched, Ok(json!({"metadata": {"labels": {"x/y": "z"}}, "spec": {"replicas": 2}})));
    let code = |patch: &str| apply(patch).map_err(|it| it.status().code);
    assert_eq!(code(r#"[{"op":"test","path":"/spec/replicas","value":5}]"#), Err(422));
    assert_eq!(code(r#"[{"op":"remove","path":"/nothing"}]"#), Err(422));
    // What is not there is null, but what is in it is an error.
    assert_eq!(code(r#"[{"op":"test","path":"/metadata/finalizers","value":null}]"#), Ok(object.clone()));
    assert_eq!(code(r#"[{"op":"test","path":"/metadata/labels","value":null}]"#), Err(422));
    assert_eq!(code(r#"[{"op":"test","path":"/status/phase","value":null}]"#), Err(422));
    for (operation, wanted) in [
        (r#"{"op":"test","path":"/spec/replicas","value":5}"#, "testing value /spec/replicas failed: test failed"),
        (
            r#"{"op":"remove","path":"/spec/none"}"#,
            r#"remove operation does not apply: doc is missing path: "/spec/none": missing value"#,
        ),
        (
            r#"{"op":"copy","from":"/none","path":"/spec"}"#,
            r#"copy operation does not apply: doc is missing from path: "/none": missing value"#,
        ),
    ] {
        let found = apply(&format!(r#"[{{"op":"test","path":"/spec/replicas","value":1}},{operation}]"#));
        assert_eq!(found, Err(patch::PatchError::Unprocessable(wanted.into())));
    }
    assert_eq!(code(r#"[{"op":"jump","path":"/a"}]"#), Err(422));
    assert_eq!(code("{"), Err(400));
    let many = format!("[{}]", vec![r#"{"op":"remove","path":"/spec"}"#; 10_001].join(","));
    assert_eq!(code(&many), Err(413));
    // Each copy doubles the object: thirty of them would make gigabytes.
    let bomb = format!(
        "[{}]",
        (0..30).map(|at| format!(r#"{{"op":"copy","from":"","path":"/c{at}"}}"#)).collect::<Vec<_>>().join(",")
    );
    assert_eq!(code(&bomb), Err(422));
}

#[test]
fn operations_of_json_patches_are_counted_before_they_are_read() {
    let apply = |patch: &str| patch::json(json!({}), patch.as_bytes());
    // They are counted before any is read: else the last one would be too deep.
    let deep = format!("[{}{}{}]", "0,".repeat(10_000), "[".repeat(200), "]".repeat(200));
    let code = |patch: &str| apply(patch).map_err(|it| it.status().code);
    assert_eq!(code(&deep), Err(413));
    assert_eq!(code(&deep.replacen("0,", "", 1)), Err(400));
    for (text, kind) in
        [("{\"a\":[0]}", "object"), ("null", "null"), ("1.5", "number"), ("\"a\"", "string"), ("true", "bool")]
    {
        let message =
            format!("error decoding patch: json: cannot unmarshal {kind} into Go value of type jsonpatch.Patch");
        assert_eq!(apply(text), Err(patch::PatchError::Malformed(message)));
    }
    for (text, n) in [("[]", 0), (" [ ] ", 0), ("[0,{},[[]]]", 3)] {
        assert_eq!(patch::n_operations(text.as_bytes()), Ok(n));
    }
}

#[test]
fn what_is_told_of_a_json_patch_is_short() {
    let apply = |patch: &str| {
        patch::json(json!({"metadata": {"labels": {"a": "1"}}, "spec": {"replicas": 1}}), patch.as_bytes())
    };
    let long = "p".repeat(1 << 20);
    for operation in [
        format!(r#"{{"op":"remove","path":"/{long}"}}"#),
        format!(r#"{{"op":"test","path":"/{long}","value":1}}"#),
        format!(r#"{{"op":"move","from":"/{long}","path":"/spec"}}"#),
        format!(r#"{{"op":"replace","path":"/{long}","value":1}}"#),
        format!(r#"{{"op":"add","path":"/{long}/{long}","value":1}}"#),
        format!(r#"{{"op":"move","from":"/spec","path":"/spec/{long}"}}"#),
        format!(r#"{{"op":"test","path":"/metadata/labels{}","value":1}}"#, "/a".repeat(100_000)),
        format!(r#"{{"op":"{long}","path":"/spec"}}"#),
    ] {
        let refused = apply(&format!("[{operation}]")).expect_err("no such place").to_string();
        assert!(refused.len() < 5_000, "{} bytes: {}", refused.len(), &refused[..100]);
    }
    for operation in [
        r#"{"op":"add","path":"/spec"}"#,
        r#"{"op":"test","path":"/spec"}"#,
        r#"{"op":"copy","path":"/spec"}"#,
        r#"{"op":"remove","path":"spec"}"#,
        r#"{"op":"remove","path":5}"#,
    ] {
        let refused = apply(&format!("[{operation}]")).expect_err("a part is missing").to_string();
        assert!(
            refused.ends_with("operation does not apply: a path or a value is missing, or is no path"),
            "{refused}"
        );
    }
}

#[test]
fn merge_patches_follow_the_rfc() {
    for (original, patch, expected) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
    ] {
        assert_eq!(patch::merge(original, &patch), expected);
    }
}

/// One object of each kind with every field set, where the data is at hand.
#[test]
fn every_golden_object_fits_its_type() {
    let Some(objects) = golden::objects() else { return };
    let mut checked = 0;
    for (name, text) in &objects {
        let Some(of) = name.strip_suffix(".json").and_then(golden_type) else { continue };
        let object: Value = serde_json::from_slice(text).expect("JSON");
        assert_eq!(check(of.name, &object), Findings::default(), "{name}");
        let mut pruned = object.clone();
        prune(of.name, &mut pruned);
        assert_eq!(pruned, object, "{name}");
        checked += 1;
    }
    assert!(checked >= 100, "only {checked} golden objects were checked");
}

/// `HEAD/apps.v1.Deployment` is `io.k8s.api.apps.v1.Deployment`.
pub(crate) fn golden_type(name: &str) -> Option<&'static Type> {
    let name = name.rsplit('/').next()?;
    let (rest, kind) = name.rsplit_once('.')?;
    let (group, version) = rest.rsplit_once('.')?;
    find(&format!("io.k8s.api.{}.{version}.{kind}", group.split('.').next()?))
}
