//! An object as far as its cost goes: a small part of it, kept as text and read again where it is counted.

#[cfg(test)]
mod tests;

use corten_api::quota::{COST_READS, DEVICE_CLAIM_READS, Path, SCOPES};
use corten_meta::{Named, ObjectMeta, Time};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

pub(super) struct Counted {
    pub(super) metadata: ObjectMeta,
    text: Box<str>,
    has_ended: bool,
}

impl Named for Counted {
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl Counted {
    pub(super) fn value(&self) -> Value {
        let mut value: Value = serde_json::from_str(&self.text).expect("it was written here");
        let meta = &self.metadata;
        for (name, text) in [("name", &meta.name), ("namespace", &meta.namespace), ("uid", &meta.uid)] {
            value["metadata"][name] = json!(text);
        }
        value["metadata"]["creationTimestamp"] = json!(meta.creation_timestamp);
        value
    }

    /// A pod that has ended costs no more than its place. What a claim or a service costs may change at any time.
    pub(super) fn may_have_become_cheaper(&self) -> bool {
        self.has_ended
    }
}

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let whole = Value::deserialize(deserializer)?;
        let metadata = &whole["metadata"];
        let text = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
        let time = |name: &str| metadata[name].as_str().and_then(|it| it.parse::<Time>().ok());
        let kept = ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            creation_timestamp: time("creationTimestamp"),
            deletion_timestamp: time("deletionTimestamp"),
            ..ObjectMeta::default()
        };
        let is_pod = whole["spec"]["containers"].is_array();
        let is_over = matches!(whole["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        let of_claim = if whole["spec"]["devices"].is_object() { DEVICE_CLAIM_READS } else { &[] };
        let paths = SCOPES.iter().flat_map(|it| it.reads).chain(COST_READS).chain(of_claim).copied();
        let text = only(&whole, &paths.collect::<Vec<_>>()).to_string().into();
        Ok(Self { has_ended: !is_pod || is_over || kept.is_deleting(), metadata: kept, text })
    }
}

/// What the paths lead to, and what it stands in.
fn only(value: &Value, paths: &[Path]) -> Value {
    if paths.iter().any(|it| it.is_empty()) {
        return value.clone();
    }
    match value {
        Value::Array(list) => list.iter().map(|it| only(it, paths)).collect(),
        Value::Object(members) => Value::Object(members.iter().filter_map(|it| member(it, paths)).collect()),
        _ => Value::Null,
    }
}

fn member((name, value): (&String, &Value), paths: &[Path]) -> Option<(String, Value)> {
    let below = paths.iter().filter_map(|it| it.split_first().filter(|it| it.0 == name).map(|it| it.1));
    let below: Vec<Path> = below.collect();
    (!below.is_empty()).then(|| (name.clone(), only(value, &below)))
}
