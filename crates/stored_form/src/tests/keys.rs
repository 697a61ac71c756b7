//! Where kube-apiserver 1.36 keeps each resource, in which version and form, where a checkout has the facts beside it.

use std::path::Path;

use bytes::Bytes;
use corten_cacher::watch_cache::{built_in_of_key, prefix_of, resource_of_key};
use corten_kinds::by_qualified;
use corten_meta::Resource;
use serde_json::{Value, json};

use crate::to_stored;

/// Resources that are stored in another version than the facts name, and why.
const OTHER_VERSIONS: &[(&str, &str)] = &[
    ("podgroups.scheduling.k8s.io", "1.37 does not have v1alpha2"),
    ("workloads.scheduling.k8s.io", "1.37 does not have v1alpha2"),
];

#[test]
fn keys_versions_and_forms_are_those_of_kubernetes() {
    let facts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/facts/etcd-keys.tsv");
    let Ok(text) = std::fs::read_to_string(facts) else {
        eprintln!("skipped: there are no facts about keys");
        return;
    };
    let mut seen = 0;
    for row in text.lines().skip(1) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [resource, kind, scope, _, _, pattern, version, encoding, ..] = columns[..] else { panic!("{row}") };
        if resource.starts_with('(') || !pattern.starts_with("/registry/") {
            continue;
        }
        seen += 1;
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        let found = by_qualified(resource).map_or_else(|| custom(group, kind, plural), |it| it.resource.clone());
        let prefix = pattern.split_once('{').expect("a name").0;
        assert_eq!(prefix_of(&found), prefix, "{resource}");
        let key = pattern.replace("{namespace}", "d").replace("{name}", "x");
        let stored_as = built_in_of_key(key.as_bytes()).map(|it| it.resource.clone()).unwrap_or(found);
        if by_qualified(resource).is_some() {
            assert_eq!(stored_as.namespaced, scope == "ns", "{resource}");
        }
        let (stored_plural, _) = resource_of_key(key.as_bytes()).expect(resource);
        assert_eq!(stored_plural, plural, "{resource}");

        let object = json!({"kind": kind, "apiVersion": stored_as.api_version(), "metadata": {"name": "x"}});
        let written = to_stored(key.as_bytes(), &object.to_string().into());
        let (found_version, form) = version_and_form(&written);
        assert!(encoding.starts_with(form), "{resource}: {form} for {encoding}");
        let is_other = OTHER_VERSIONS.iter().any(|it| it.0 == resource);
        assert_eq!(found_version != version, is_other, "{resource}: {found_version} for {version}");
    }
    assert!(seen > 60, "only {seen} resources were found");
}

/// Of a definition, whose version is whatever the definition says.
fn custom(group: &str, kind: &str, plural: &str) -> Resource {
    let text = |it: &str| it.to_owned().into();
    Resource { group: text(group), version: "v1".into(), kind: text(kind), plural: text(plural), namespaced: true }
}

fn version_and_form(written: &Bytes) -> (String, &'static str) {
    if let Some(envelope) = written.strip_prefix(b"k8s\0") {
        // An envelope, a TypeMeta in it, and its first text.
        let length = usize::from(envelope[3]);
        return (String::from_utf8_lossy(&envelope[4..4 + length]).into_owned(), "protobuf");
    }
    let object: Value = serde_json::from_slice(written).expect("JSON");
    assert!(written.ends_with(b"\n"));
    (object["apiVersion"].as_str().unwrap_or_default().to_owned(), "JSON + LF")
}
