//! Objects and what is told of them, as text: `testdata/<plural>.txt` is objects in JSON, `----`, and their samples.
//!
//! `UPDATE=1 cargo test -p corten-state-metrics` rewrites the samples.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::Value;

use super::*;

fn samples(kind: &dyn StateMetrics, objects: &[Value]) -> String {
    let families = kind.families();
    let mut out = vec![Vec::new(); families.len()];
    for object in objects {
        kind.write(object.to_string().as_bytes(), 0..families.len(), &mut out);
    }
    out.into_iter().map(|it| String::from_utf8(it).expect("samples are text")).collect()
}

/// Each kind with the name of its fixture.
fn named() -> impl Iterator<Item = (String, &'static dyn StateMetrics)> {
    let of_kinds = KINDS.iter().map(|it| (it.resource().plural.to_string(), *it));
    of_kinds.chain(POD_RESOURCES.iter().map(|it| ("pod_resources".to_owned(), *it)))
}

#[test]
fn fixtures() {
    for (name, kind) in named() {
        let name = format!("testdata/{name}.txt");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(&name);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (given, _) = text.split_once("----\n").unwrap_or((&text, ""));
        let read: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(given).into_iter().collect();
        let told = samples(kind, &read.unwrap_or_else(|error| panic!("{name}: {error}")));
        let now = format!("{}\n----\n{told}", given.trim_end());
        if std::env::var_os("UPDATE").is_some() {
            fs::write(&path, &now).expect("written");
        } else {
            assert_eq!(text, now, "in {name}; UPDATE=1 rewrites it");
        }
    }
}

/// Each family has a sample in a fixture, so that none of them can be wrong unseen.
#[test]
fn every_family_has_a_sample_in_a_fixture() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    for (name, kind) in named() {
        let path = folder.join(format!("{name}.txt"));
        let text = fs::read_to_string(path).expect("there is a fixture of each kind");
        let told: BTreeSet<&str> = text.lines().filter_map(|it| it.split_once('{')).map(|it| it.0).collect();
        let missing: Vec<_> = kind.families().into_iter().filter(|it| !told.contains(it.name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}

#[test]
fn families_have_one_name_and_a_sentence_each() {
    let mut names = BTreeSet::new();
    for family in named().flat_map(|it| it.1.families()) {
        assert!(names.insert(family.name), "{} is there twice", family.name);
        assert!(!family.help.is_empty() && !family.help.contains('\n'), "{}", family.name);
        assert_eq!(family.name.ends_with("_total"), family.of == FamilyType::Counter, "{}", family.name);
    }
}

/// A few are gone through, and many are kept apart.
#[test]
fn a_series_is_written_once() {
    for n in [2, 15, 16, 17, 40] {
        let ips: Vec<String> = (0..n).chain(0..n).map(|it| format!("192.0.2.{it}")).collect();
        let service = serde_json::json!({ "metadata": { "name": "a", "uid": "u" }, "spec": { "externalIPs": ips } });
        let told = samples(&service::SERVICES, &[service.clone(), service]);
        let lines = told.lines().filter(|it| it.starts_with("kube_service_spec_external_ip{")).count();
        assert_eq!(lines, 2 * n, "{n} of each of two objects");
    }
}

/// What only some families are asked for is the same, and what cannot be read says nothing.
#[test]
fn families_are_written_apart() {
    let kind: &dyn StateMetrics = &namespace::NAMESPACES;
    let object = br#"{"metadata":{"name":"a\"\n\\b"},"status":{"phase":"Active"}}"#;
    let last = kind.families().len() - 1;
    let mut out = vec![Vec::new()];
    kind.write(object, last..last + 1, &mut out);
    kind.write(b"{", last..last + 1, &mut out);
    kind.write(br#"{"metadata":7}"#, last..last + 1, &mut out);
    assert_eq!(
        String::from_utf8_lossy(&out[0]),
        "kube_namespace_status_phase{namespace=\"a\\\"\\n\\\\b\",phase=\"Active\"} 1\n\
         kube_namespace_status_phase{namespace=\"a\\\"\\n\\\\b\",phase=\"Terminating\"} 0\n"
    );
}
