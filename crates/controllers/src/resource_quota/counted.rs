//! An object as far as its cost goes: a small part of it, kept as text and read again where it is counted.

use corten_meta::{Named, ObjectMeta, Time};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

const OF_METADATA: &[&str] = &["annotations", "deletionGracePeriodSeconds", "deletionTimestamp"];
const OF_SPEC: &[&str] = &[
    "activeDeadlineSeconds",
    "affinity",
    "allocateLoadBalancerNodePorts",
    "containers",
    "devices",
    "initContainers",
    "overhead",
    "ports",
    "priorityClassName",
    "resources",
    "storageClassName",
    "type",
    "volumeAttributesClassName",
];
const OF_STATUS: &[&str] = &[
    "allocatedResources",
    "conditions",
    "containerStatuses",
    "currentVolumeAttributesClassName",
    "initContainerStatuses",
    "modifyVolumeStatus",
    "phase",
    "qosClass",
];
const OF_CONTAINER: &[&str] = &["name", "resources", "restartPolicy"];
const OF_CONTAINER_STATUS: &[&str] = &["name", "resources", "allocatedResources"];
const OF_CONDITION: &[&str] = &["type", "reason"];
const STORAGE_CLASS: &[&str] = &["volume.beta.kubernetes.io/storage-class"];

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
        serde_json::from_str(&self.text).expect("it was written here")
    }

    /// A pod that has ended costs no more than its place. What a claim or a service costs may change at any time.
    pub(super) fn may_have_become_cheaper(&self) -> bool {
        self.has_ended
    }
}

impl<'de> Deserialize<'de> for Counted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Whole {
            metadata: Value,
            #[serde(default)]
            spec: Value,
            #[serde(default)]
            status: Value,
        }
        let Whole { metadata, mut spec, mut status } = Whole::deserialize(deserializer)?;
        let text = |name: &str| metadata[name].as_str().unwrap_or_default().to_owned();
        let kept = ObjectMeta {
            name: text("name"),
            namespace: text("namespace"),
            uid: text("uid"),
            resource_version: text("resourceVersion"),
            deletion_timestamp: metadata["deletionTimestamp"].as_str().and_then(|it| it.parse::<Time>().ok()),
            ..ObjectMeta::default()
        };
        let is_pod = spec["containers"].is_array();
        let is_over = matches!(status["phase"].as_str(), Some("Succeeded" | "Failed"));
        let mut metadata = only(&metadata, OF_METADATA);
        each(&mut metadata, "annotations", STORAGE_CLASS);
        (spec, status) = (only(&spec, OF_SPEC), only(&status, OF_STATUS));
        for list in ["containers", "initContainers"] {
            each(&mut spec, list, OF_CONTAINER);
        }
        for list in ["containerStatuses", "initContainerStatuses"] {
            each(&mut status, list, OF_CONTAINER_STATUS);
        }
        each(&mut status, "conditions", OF_CONDITION);
        let parts = [("metadata", metadata), ("spec", spec), ("status", status)];
        let whole: Map<String, Value> = parts.into_iter().map(|(name, part)| (name.to_owned(), part)).collect();
        let text = Value::Object(whole).to_string().into();
        Ok(Self { has_ended: !is_pod || is_over || kept.is_deleting(), metadata: kept, text })
    }
}

/// The named members of an object.
fn only(value: &Value, names: &[&str]) -> Value {
    let members = value.as_object().into_iter().flatten().filter(|it| names.contains(&it.0.as_str()));
    Value::Object(members.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Makes a member, or each of a list, no more than what is named.
fn each(value: &mut Value, member: &str, names: &[&str]) {
    match value.get_mut(member) {
        Some(Value::Array(list)) => list.iter_mut().for_each(|it| *it = only(it, names)),
        Some(object @ Value::Object(_)) => *object = only(object, names),
        _ => {}
    }
}
