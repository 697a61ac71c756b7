//! Field sets, merges and scenarios of several managers, as data.

use std::{fmt::Write as _, path::Path};

use serde_json::Value;

use super::*;
use crate::{Type, find};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn of(name: &str) -> &'static Type {
    let full = match name {
        "Pod" | "ConfigMap" | "Service" | "Node" | "Secret" | "ServiceAccount" => format!("io.k8s.api.core.v1.{name}"),
        "Deployment" => "io.k8s.api.apps.v1.Deployment".into(),
        "ControllerRevision" => "io.k8s.api.apps.v1.ControllerRevision".into(),
        "NetworkPolicy" => "io.k8s.api.networking.v1.NetworkPolicy".into(),
        "PriorityClass" => "io.k8s.api.scheduling.v1.PriorityClass".into(),
        other => other.into(),
    };
    find(&full).unwrap_or_else(|| panic!("no type {full}"))
}

/// A configuration, and the fields it names.
const SETS: &[(&str, &str, &str)] = &[
    ("ConfigMap", r#"{"data":{"b":"1","a":"2"}}"#, r#"{"f:data":{"f:a":{},"f:b":{}}}"#),
    // A key with what JSON escapes.
    ("ConfigMap", r#"{"data":{"a\"b\\":"1"}}"#, r#"{"f:data":{"f:a\"b\\":{}}}"#),
    ("ConfigMap", r#"{"data":{}}"#, r#"{"f:data":{}}"#),
    ("ConfigMap", r#"{"data":null}"#, r#"{"f:data":{}}"#),
    ("ConfigMap", r#"{"immutable":true}"#, r#"{"f:immutable":{}}"#),
    // A selector is one value, and so is a list without a type.
    ("Deployment", r#"{"spec":{"selector":{"matchLabels":{"a":"b"}}}}"#, r#"{"f:spec":{"f:selector":{}}}"#),
    (
        "Pod",
        r#"{"spec":{"containers":[{"name":"a","command":["x","y"]}]}}"#,
        r#"{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:command":{},"f:name":{}}}}}"#,
    ),
    // The protocol of a port has a default, which its key has too.
    (
        "Service",
        r#"{"spec":{"ports":[{"port":80},{"port":80,"protocol":"UDP"}]}}"#,
        r#"{"f:spec":{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},"k:{\"port\":80,\"protocol\":\"UDP\"}":{".":{},"f:port":{},"f:protocol":{}}}}}"#,
    ),
    // Numbers in keys are ordered as numbers.
    (
        "Service",
        r#"{"spec":{"ports":[{"port":100},{"port":9}]}}"#,
        r#"{"f:spec":{"f:ports":{"k:{\"port\":9,\"protocol\":\"TCP\"}":{".":{},"f:port":{}},"k:{\"port\":100,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}"#,
    ),
    (
        "Pod",
        r#"{"metadata":{"finalizers":["b/x","a/x"]}}"#,
        r#"{"f:metadata":{"f:finalizers":{"v:\"a/x\"":{},"v:\"b/x\"":{}}}}"#,
    ),
    (
        "Pod",
        r#"{"metadata":{"ownerReferences":[{"uid":"u","name":"n","kind":"K","apiVersion":"v1"}]}}"#,
        r#"{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}}}}"#,
    ),
    (
        "Pod",
        r#"{"spec":{"nodeSelector":{"a":"b"},"tolerations":[{"key":"k"}],"containers":[]}}"#,
        r#"{"f:spec":{"f:nodeSelector":{},"f:tolerations":{}}}"#,
    ),
    ("ControllerRevision", r#"{"data":{"a":{"b":1}},"revision":1}"#, r#"{"f:data":{},"f:revision":{}}"#),
    (
        "Pod",
        r#"{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":1}}}]}}"#,
        r#"{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{".":{},"f:name":{},"f:resources":{"f:limits":{"f:cpu":{}}}}}}}"#,
    ),
    // What stands there twice is owned as one.
    (
        "Pod",
        r#"{"spec":{"containers":[{"name":"a","image":"x"},{"name":"a","image":"y"}]}}"#,
        r#"{"f:spec":{"f:containers":{"k:{\"name\":\"a\"}":{}}}}"#,
    ),
];

#[test]
fn configurations_name_fields() {
    for (name, configuration, expected) in SETS {
        let configuration = json(configuration);
        let set = fields(of(name), &configuration);
        assert_eq!(set.to_json(), *expected, "{configuration}");
        assert_eq!(Set::read(expected).expect("it is a set"), set, "{expected}");
    }
}

#[test]
fn sets_read_what_others_write() {
    for (text, expected) in [
        (r#"{"f:b":{},"f:a":{".":{}}}"#, r#"{"f:a":{},"f:b":{}}"#),
        (r#"{"k:{\"b\": 1, \"a\":true}":{"f:x":{}}}"#, r#"{"k:{\"a\":true,\"b\":1}":{"f:x":{}}}"#),
        (
            r#"{"v:1.5":{},"v:null":{},"v:true":{},"i:3":{},"v:2":{},"v:\"t\"":{}}"#,
            r#"{"v:1.5":{},"v:2":{},"v:\"t\"":{},"v:true":{},"v:null":{},"i:3":{}}"#,
        ),
        // A kind of element that is not known yet, and one that is there twice.
        (r#"{"z:new":{},"f:a":{"f:b":{}},"f:a":{"f:c":{}}}"#, r#"{"f:a":{"f:b":{},"f:c":{}}}"#),
    ] {
        assert_eq!(Set::read(text).expect("it is a set").to_json(), expected);
    }
    for broken in ["[]", "1", r#"{"f":{}}"#, r#"{"k:x":{}}"#, r#"{"i:x":{}}"#, r#"{"v:":{}}"#, r#"{"f:a":1}"#, "{"] {
        assert!(Set::read(broken).is_err(), "{broken}");
    }
}

/// Old, new, and what was added, modified and removed. No old one: a create.
const COMPARISONS: &[(&str, &str, &str, [&str; 3])] = &[
    ("ConfigMap", r#"{"data":{"a":"1","b":"2"}}"#, r#"{"data":{"b":"3","c":"4"}}"#, [".data.c", ".data.b", ".data.a"]),
    ("ConfigMap", "{}", r#"{"data":{"a":"1"}}"#, [".data .data.a", "", ""]),
    ("ConfigMap", r#"{"data":{"a":"1"}}"#, "{}", ["", "", ".data .data.a"]),
    // Spec, strategy and template are structs that are always there, the rolling update behind a pointer is not.
    (
        "Deployment",
        "",
        r#"{"spec":{"replicas":1,"strategy":{"type":"RollingUpdate","rollingUpdate":{"maxSurge":1}}}}"#,
        [
            ".spec.replicas .spec.strategy.rollingUpdate .spec.strategy.rollingUpdate.maxSurge .spec.strategy.type",
            "",
            "",
        ],
    ),
    (
        "Deployment",
        "",
        r#"{"spec":{"template":{"spec":{"containers":[{"name":"c","resources":{}}],"securityContext":{}}}}}"#,
        [
            r#".spec.template.spec.containers[name="c"] .spec.template.spec.containers[name="c"].name .spec.template.spec.containers[name="c"].resources .spec.template.spec.securityContext"#,
            "",
            "",
        ],
    ),
    // What Go's decoder cannot tell from absent is no change.
    (
        "Pod",
        r#"{"spec":{"containers":[{"name":"c"}]}}"#,
        r#"{"spec":{"containers":[{"name":"c","resources":{}}]},"status":{}}"#,
        ["", "", ""],
    ),
    ("PriorityClass", "", r#"{"value":0,"description":"x"}"#, [".description", "", ""]),
    (
        "Deployment",
        r#"{"spec":{"selector":{"matchLabels":{"a":"b"}}}}"#,
        r#"{"spec":{"selector":{"matchLabels":{"a":"c"}}}}"#,
        ["", ".spec.selector", ""],
    ),
    // Keyed lists are compared by key, sets by value, wherever they stand.
    (
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"},{"name":"b","image":"1"}]}}"#,
        r#"{"spec":{"containers":[{"name":"b","image":"2"},{"name":"a"}]}}"#,
        ["", r#".spec.containers[name="b"].image"#, ""],
    ),
    (
        "Pod",
        r#"{"metadata":{"finalizers":["a","b"]}}"#,
        r#"{"metadata":{"finalizers":["b","c"]}}"#,
        [r#".metadata.finalizers[="c"]"#, "", r#".metadata.finalizers[="a"]"#],
    ),
    // Elements that stand there twice are one value.
    (
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"}]}}"#,
        r#"{"spec":{"containers":[{"name":"a"},{"name":"a","image":"1"}]}}"#,
        [r#".spec.containers[name="a"]"#, "", r#".spec.containers[name="a"] .spec.containers[name="a"].name"#],
    ),
    (
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"},{"name":"a","image":"1"}]}}"#,
        r#"{"spec":{"containers":[{"name":"a"},{"name":"a","image":"2"}]}}"#,
        ["", r#".spec.containers[name="a"]"#, ""],
    ),
];

#[test]
fn objects_are_compared() {
    for (name, old, new, expected) in COMPARISONS {
        let (old, new) = ((!old.is_empty()).then(|| json(old)), json(new));
        let Comparison { added, modified, removed } = compare(of(name), old.as_ref(), &new);
        assert_eq!([added, modified, removed].map(|it| it.paths().join(" ")), *expected, "{old:?} {new}");
    }
}

/// How the elements of a list stand after a configuration was merged in: live, wanted, merged.
const ORDERS: &[[&str; 3]] = &[
    ["a b c", "b", "a b c"],
    ["a b c", "c a", "b c a"],
    ["a b c", "d", "a b c d"],
    ["a b c", "d a", "d a b c"],
    ["a b c", "a d c", "a b d c"],
    ["a b", "c d", "a b c d"],
    ["a b c d e", "e x b", "a c d e x b"],
    ["", "b a", "b a"],
    ["a b", "", "a b"],
    ["a b c d", "d c b a", "d c b a"],
    ["a x b y c", "c b a", "x y c b a"],
];

#[test]
fn lists_keep_their_order() {
    for [live, wanted, expected] in ORDERS {
        let keyed = |names: &str| {
            let items: Vec<Value> = names.split_whitespace().map(|it| serde_json::json!({ "name": it })).collect();
            serde_json::json!({ "spec": { "containers": items } })
        };
        let set = |names: &str| {
            let items: Vec<&str> = names.split_whitespace().collect();
            serde_json::json!({ "metadata": { "finalizers": items } })
        };
        assert_eq!(merged(of("Pod"), &keyed(live), &keyed(wanted)), keyed(expected), "{live} + {wanted}");
        assert_eq!(merged(of("Pod"), &set(live), &set(wanted)), set(expected), "{live} + {wanted}");
    }
}

const MERGES: &[(&str, &str, &str, &str)] = &[
    ("ConfigMap", r#"{"data":{"a":"1"}}"#, r#"{"data":{"b":"2"}}"#, r#"{"data":{"a":"1","b":"2"}}"#),
    // Null clears a scalar, and says nothing about what a map holds.
    ("Deployment", r#"{"spec":{"replicas":3}}"#, r#"{"spec":{"replicas":null}}"#, r#"{"spec":{"replicas":null}}"#),
    ("ConfigMap", r#"{"data":{"a":"1"}}"#, r#"{"data":null}"#, r#"{"data":{"a":"1"}}"#),
    // Wholes are replaced.
    (
        "Pod",
        r#"{"spec":{"nodeSelector":{"a":"1"}}}"#,
        r#"{"spec":{"nodeSelector":{"b":"2"}}}"#,
        r#"{"spec":{"nodeSelector":{"b":"2"}}}"#,
    ),
    (
        "Pod",
        r#"{"spec":{"tolerations":[{"key":"a"}]}}"#,
        r#"{"spec":{"tolerations":[]}}"#,
        r#"{"spec":{"tolerations":[]}}"#,
    ),
    (
        "Service",
        r#"{"spec":{"ports":[{"port":80,"protocol":"TCP","nodePort":30000}]}}"#,
        r#"{"spec":{"ports":[{"port":80,"name":"web"}]}}"#,
        r#"{"spec":{"ports":[{"port":80,"protocol":"TCP","nodePort":30000,"name":"web"}]}}"#,
    ),
];

#[test]
fn configurations_merge() {
    for (name, live, configuration, expected) in MERGES {
        assert_eq!(merged(of(name), &json(live), &json(configuration)), json(expected), "{live} + {configuration}");
    }
}

const MISFITS: &[(&str, &str, &[&str])] = &[
    ("ConfigMap", r#"{"foo":1}"#, &[".foo: field not declared in schema"]),
    ("ConfigMap", r#"{"data":{"a":1}}"#, &[".data.a: expected string, got &value.valueUnstructured{Value:1}"]),
    ("ConfigMap", r#"{"data":[]}"#, &[".data: expected map, got &{[]}"]),
    ("ConfigMap", r#"{"immutable":"yes"}"#, &[".immutable: expected boolean, got &{yes}"]),
    ("Deployment", r#"{"spec":{"replicas":"1"}}"#, &[".spec.replicas: expected numeric (int or float), got string"]),
    ("Pod", r#"{"spec":{"containers":{"a":"b"}}}"#, &[".spec.containers: expected list, got &{map[a:b]}"]),
    (
        "Pod",
        r#"{"spec":{"containers":[{"name":"a"},{"name":"a"}]}}"#,
        &[r#".spec.containers: duplicate entries for key [name="a"]"#],
    ),
    (
        "Pod",
        r#"{"spec":{"containers":[1]}}"#,
        &[".spec.containers: element 0: associative list with keys may not have non-map elements"],
    ),
    (
        "Pod",
        r#"{"spec":{"containers":[{"name":"a","env":[{"name":"x","valeu":"1"}]}]}}"#,
        &[r#".spec.containers[name="a"].env[name="x"].valeu: field not declared in schema"#],
    ),
    ("Pod", r#"{"spec":{"tolerations":[{"x":1}]}}"#, &[".spec.tolerations[0].x: field not declared in schema"]),
    (
        "ServiceAccount",
        r#"{"secrets":[{"namespace":"x"}]}"#,
        &[
            "element 0: associative list with keys has an element that omits all key fields [\"name\"] (and doesn't have default values for any key fields)",
        ],
    ),
    (
        "Pod",
        r#"{"metadata":{"finalizers":[null]}}"#,
        &[".metadata.finalizers: element 0: associative list without keys has an element that's an explicit null"],
    ),
    ("Pod", r#"{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":1,"memory":"1Gi"}}}]}}"#, &[]),
];

#[test]
fn misfits_are_named() {
    for (name, configuration, expected) in MISFITS {
        let found = misfits(of(name), &json(configuration));
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(*expected) {
            assert!(found.ends_with(expected), "{found}");
        }
    }
}

/// What several managers make of one object, a story each; `UPDATE=1` writes what came of it.
#[test]
fn scenarios() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/apply/scenarios.txt");
    let text = std::fs::read_to_string(&path).expect("the scenarios are there");
    let mut written = String::new();
    for story in text.split("====\n") {
        let (steps, _) = story.split_once("----\n").unwrap_or((story, ""));
        if !written.is_empty() {
            written.push_str("====\n");
        }
        let _ = write!(written, "{}\n----\n{}", steps.trim_end(), told(steps));
    }
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &written).expect("the scenarios can be written");
    }
    assert_eq!(text, written, "run with UPDATE=1 and read the difference");
}

/// `create|update|apply|force|status|plain MANAGER OBJECT`, after a line with the kind.
fn told(steps: &str) -> String {
    let mut lines = steps.lines().filter(|it| !it.starts_with('#') && !it.trim().is_empty());
    let kind = of(lines.next().expect("a kind"));
    let (mut object, mut owners, mut out) = (None::<Value>, String::new(), String::new());
    for (at, line) in lines.enumerate() {
        let mut words = line.splitn(3, ' ');
        let (verb, manager) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (manager, version) = manager.split_once('@').unwrap_or((manager, "v1"));
        let body = json(words.next().unwrap_or_default());
        let now = format!("2026-01-01T00:00:{at:02}Z");
        let reset = if verb == "status" { Set::of_fields(&[&["spec"]]) } else { Set::of_fields(&[&["status"]]) };
        let subresource = if verb == "status" { "status" } else { "" };
        let is_apply = matches!(verb, "apply" | "force");
        let operation = if is_apply { Operation::Apply } else { Operation::Update };
        let by = Owner::new(manager, operation, version, subresource);
        let write = Write { of: kind.into(), by, now: &now, reset: &reset, views: &OneView };
        let before = owners.clone();
        let read = Owners::read(&before).expect("the owners were written");
        if is_apply {
            match apply(&write, object.as_ref(), &body, read, verb == "force") {
                Ok(Applied { object: new, owned }) => {
                    let noop = if new.is_none() { " (nothing changes)" } else { "" };
                    let _ = writeln!(out, "{verb} {manager}: done{noop}");
                    owners = owned.owners.write();
                    object = new.or(object);
                }
                Err(ApplyError::Misfit(message)) => {
                    let _ = writeln!(out, "{verb} {manager}: {message}");
                }
                Err(ApplyError::Conflicts(conflicts)) => {
                    for Conflict { manager: with, path } in ApplyError::conflicts(&conflicts).0 {
                        let _ = writeln!(out, "{verb} {manager}: conflict with {with}: {path}");
                    }
                }
            }
        } else if verb == "plain" {
            object = Some(body);
        } else {
            let Owned { owners: now_own, .. } = update(&write, object.as_ref(), &body, read);
            owners = now_own.write();
            object = Some(body);
        }
    }
    let _ = writeln!(out, "{}", object.unwrap_or_default());
    for owner in Owners::read(&owners).expect("the owners were written").0 {
        let time = owner.time.as_deref().map_or("-", |it| &it[17..19]);
        let _ = writeln!(out, "{} {} {time}: {}", owner.described(), owner.operation.as_str(), owner.set().to_json());
    }
    out
}

#[test]
fn lists_of_owners_keep_their_text() {
    let text = r#"[{"manager":"b","operation":"Apply","apiVersion":"v1","time":"2026-01-01T00:00:01Z","fieldsType":"FieldsV1","fieldsV1":{"f:a" : {} }},{"operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{},"subresource":"status"}]"#;
    assert_eq!(Owners::read(text).expect("a list").write(), text);
    assert_eq!(Owners::read_whole(text).expect("a list").write(), text.replace(r#"{"f:a" : {} }"#, r#"{"f:a":{}}"#));
    for (broken, why) in [
        (
            r#"[{"operation":"Create","apiVersion":"v1","fieldsType":"FieldsV1"}]"#,
            "operation must be `Apply` or `Update`",
        ),
        (r#"[{"operation":"Apply","apiVersion":"v1"}]"#, "missing fieldsType in managed fields entry 0"),
        (
            r#"[{"operation":"Apply","apiVersion":"v1","fieldsType":"V2"}]"#,
            "invalid fieldsType \"V2\" in managed fields entry 0",
        ),
        (r#"[{"operation":"Apply","fieldsType":"FieldsV1"}]"#, "apiVersion must not be empty"),
    ] {
        assert_eq!(Owners::read(broken).expect_err("it is broken"), why);
    }
}
