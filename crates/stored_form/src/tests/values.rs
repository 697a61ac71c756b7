//! Values that kube-apiserver has stored are read as what it answered, and are written as it wrote them.

use std::collections::BTreeMap;

use bytes::Bytes;
use corten_cacher::watch_cache::versions;
use corten_kinds::by_kind;
use serde_json::Value;

use super::golden;
use crate::{from_stored, to_stored};

/// What is read otherwise than kube-apiserver 1.36 shows it, and why.
const READ_OTHERWISE: &[(&str, &str)] = &[
    ("cronjobs.batch", "of a list that is not there Go writes null where it always writes the field"),
    ("csinodes.storage.k8s.io", "1.37 has a status, which is always shown"),
    ("events.events.k8s.io", "of times that are not set Go writes null"),
    ("podcertificaterequests.certificates.k8s.io", "of bytes that are not there Go writes null"),
    ("podgroups.scheduling.k8s.io", "1.37 does not have v1alpha2, whose fields are others"),
    ("workloads.scheduling.k8s.io", "1.37 does not have v1alpha2, whose fields are others"),
];

/// What is written otherwise than kube-apiserver 1.36 did, and why.
const WRITTEN_OTHERWISE: &[(&str, &str)] = &[
    ("controllerrevisions.apps", "the spaces of a RawExtension are not kept"),
    ("csinodes.storage.k8s.io", "1.37 has a status, which is always written"),
    ("deviceclasses.resource.k8s.io", "the spaces of a RawExtension are not kept"),
    (
        "horizontalpodautoscalers.autoscaling",
        "the conditions of 1.37 have an observedGeneration, which is always written",
    ),
    ("resourceclaims.resource.k8s.io", "the spaces of a RawExtension are not kept"),
    ("resourceclaimtemplates.resource.k8s.io", "the spaces of a RawExtension are not kept"),
];

#[test]
fn stored_values_are_read_as_their_json_and_written_as_they_were() {
    let Some(files) = golden::archive("etcd-stored.tar.gz") else { return };
    let files: BTreeMap<&str, &[u8]> =
        files.iter().map(|(name, bytes)| (name.trim_start_matches("./"), &**bytes)).collect();
    let keys = std::str::from_utf8(files["KEYS.tsv"]).expect("text");
    let (mut seen, mut read_otherwise, mut written_otherwise) = (0, BTreeMap::new(), BTreeMap::new());
    for (name, key) in keys.lines().filter_map(|it| it.split_once('\t')).filter(|it| !it.0.starts_with('_')) {
        let stored = Bytes::copy_from_slice(files[&*format!("{name}.bin")]);
        let json = ["", "@v1"].iter().find_map(|it| files.get(&*format!("{name}{it}.json"))).expect("its JSON");
        seen += 1;
        match from_stored(key.as_bytes(), &stored) {
            Ok(read) => {
                read_otherwise.extend(reading(&read, json).err().map(|it| (name, it)));
                written_otherwise.extend(writing(key.as_bytes(), &read, &stored).err().map(|it| (name, it)));
            }
            Err(reason) => drop(read_otherwise.insert(name, reason)),
        }
    }
    assert!(seen >= 70, "only {seen} values were found");
    let names = |it: &[(&'static str, &str)]| it.iter().map(|it| it.0).collect::<Vec<_>>();
    let found = |it: &BTreeMap<&str, String>| it.keys().map(|it| (*it).to_owned()).collect::<Vec<_>>();
    assert_eq!(found(&read_otherwise), names(READ_OTHERWISE), "{read_otherwise:#?}");
    assert_eq!(found(&written_otherwise), names(WRITTEN_OTHERWISE), "{written_otherwise:#?}");
}

/// Does it say what kube-apiserver said?
fn reading(read: &[u8], json: &[u8]) -> Result<(), String> {
    let mut expected: Value = serde_json::from_slice(json).expect("JSON");
    if let Some(metadata) = expected["metadata"].as_object_mut() {
        metadata.shift_remove("resourceVersion");
    }
    let mut shown: Value = serde_json::from_slice(read).expect("JSON");
    let text = |name: &str| expected[name].as_str().unwrap_or_default();
    if let Some(asked) = by_kind(text("apiVersion"), text("kind")) {
        versions::from_stored(asked, &mut shown);
    }
    if shown == expected { Ok(()) } else { Err(differing("", &shown, &expected)) }
}

/// Are the bytes kube-apiserver's?
fn writing(key: &[u8], read: &Bytes, stored: &[u8]) -> Result<(), String> {
    let written = to_stored(key, read);
    if written == stored {
        return Ok(());
    }
    // Lengths at the beginning differ by what differs behind them.
    let at = written.iter().rev().zip(stored.iter().rev()).take_while(|(a, b)| a == b).count();
    let around = |it: &[u8]| {
        let end = it.len() - at;
        let part = &it[end.saturating_sub(60)..(end + 20).min(it.len())];
        String::from_utf8_lossy(part).escape_debug().to_string()
    };
    Err(format!("{} for {}", around(&written), around(stored)))
}

/// The first place where two values differ.
fn differing(path: &str, a: &Value, b: &Value) -> String {
    if let (Value::Object(a), Value::Object(b)) = (a, b) {
        for key in a.keys().chain(b.keys()) {
            let (a, b) = (a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null));
            if a != b {
                return differing(&format!("{path}.{key}"), a, b);
            }
        }
    }
    if let (Value::Array(a), Value::Array(b)) = (a, b)
        && let Some(at) = a.iter().zip(b).position(|(a, b)| a != b)
    {
        return differing(&format!("{path}[{at}]"), &a[at], &b[at]);
    }
    format!("{path}: {a} for {b}")
}

/// Custom resources as kube-apiserver stores them with its gate CBORServingAndStorage.
#[test]
fn cbor_is_read() {
    let Some(files) = golden::archive("etcd-stored.tar.gz") else { return };
    let file = |name: &str| &files.iter().find(|it| it.0.ends_with(name)).expect(name).1;
    let stored = Bytes::from(file("variants/gadgets.cbor.bin").clone());
    let read = from_stored(b"/registry/ek.example.org/gadgets/g", &stored).expect("it is CBOR");
    reading(&read, file("variants/gadgets.cbor.json")).expect("it says what its JSON says");
}
