//! The definitions of snapshots that Corten brings, and the class it brings with them. Fields, columns and rules are those of
//! external-snapshotter's definitions.

use corten_api::snapshots::{APP_MANAGED_BY, GROUP, IS_DEFAULT_CLASS, MANAGER};
use serde_json::{Value, json};

/// The default class for snapshots of the built-in driver's volumes. Made once, as [`crate::default_class`].
pub fn default_snapshot_class(driver: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"),
        "kind": "VolumeSnapshotClass",
        "metadata": { "name": "local", "annotations": { IS_DEFAULT_CLASS: "true" } },
        "driver": driver,
        "deletionPolicy": "Delete",
    })
}

/// VolumeSnapshot, VolumeSnapshotContent and VolumeSnapshotClass, as definitions.
pub fn snapshot_definitions() -> [Value; 3] {
    [
        definition(
            &Names { kind: "VolumeSnapshot", plural: "volumesnapshots", short: &["vs"], is_namespaced: true },
            snapshot_schema(),
            SNAPSHOT_COLUMNS,
            "https://github.com/kubernetes-csi/external-snapshotter/pull/814",
        ),
        definition(
            &Names {
                kind: "VolumeSnapshotContent",
                plural: "volumesnapshotcontents",
                short: &["vsc", "vscs"],
                is_namespaced: false,
            },
            content_schema(),
            CONTENT_COLUMNS,
            "https://github.com/kubernetes-csi/external-snapshotter/pull/955",
        ),
        definition(
            &Names {
                kind: "VolumeSnapshotClass",
                plural: "volumesnapshotclasses",
                short: &["vsclass", "vsclasses"],
                is_namespaced: false,
            },
            class_schema(),
            CLASS_COLUMNS,
            "https://github.com/kubernetes-csi/external-snapshotter/pull/814",
        ),
    ]
}

struct Names {
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    is_namespaced: bool,
}

/// A column's name, type, and path.
type Column = (&'static str, &'static str, &'static str);

const SNAPSHOT_COLUMNS: &[Column] = &[
    ("ReadyToUse", "boolean", ".status.readyToUse"),
    ("SourcePVC", "string", ".spec.source.persistentVolumeClaimName"),
    ("SourceSnapshotContent", "string", ".spec.source.volumeSnapshotContentName"),
    ("RestoreSize", "string", ".status.restoreSize"),
    ("SnapshotClass", "string", ".spec.volumeSnapshotClassName"),
    ("SnapshotContent", "string", ".status.boundVolumeSnapshotContentName"),
    ("CreationTime", "date", ".status.creationTime"),
    ("Age", "date", ".metadata.creationTimestamp"),
];
const CONTENT_COLUMNS: &[Column] = &[
    ("ReadyToUse", "boolean", ".status.readyToUse"),
    ("RestoreSize", "integer", ".status.restoreSize"),
    ("DeletionPolicy", "string", ".spec.deletionPolicy"),
    ("Driver", "string", ".spec.driver"),
    ("VolumeSnapshotClass", "string", ".spec.volumeSnapshotClassName"),
    ("VolumeSnapshot", "string", ".spec.volumeSnapshotRef.name"),
    ("VolumeSnapshotNamespace", "string", ".spec.volumeSnapshotRef.namespace"),
    ("Age", "date", ".metadata.creationTimestamp"),
];
const CLASS_COLUMNS: &[Column] = &[
    ("Driver", "string", ".driver"),
    ("DeletionPolicy", "string", ".deletionPolicy"),
    ("Age", "date", ".metadata.creationTimestamp"),
];

fn definition(names: &Names, schema: Value, columns: &[Column], approved: &str) -> Value {
    let Names { kind, plural, short, is_namespaced } = names;
    let column = |(name, r#type, path): &Column| json!({ "name": name, "type": r#type, "jsonPath": path });
    let has_status = !schema["properties"]["status"].is_null();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{GROUP}"),
            "labels": { APP_MANAGED_BY: MANAGER },
            "annotations": { "api-approved.kubernetes.io": approved },
        },
        "spec": {
            "group": GROUP,
            "scope": if *is_namespaced { "Namespaced" } else { "Cluster" },
            "names": {
                "kind": kind,
                "listKind": format!("{kind}List"),
                "plural": plural,
                "singular": kind.to_lowercase(),
                "shortNames": short,
            },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "additionalPrinterColumns": columns.iter().map(column).collect::<Vec<_>>(),
                "subresources": if has_status { json!({ "status": {} }) } else { json!({}) },
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn rule(rule: &str, message: &str) -> Value {
    json!({ "rule": rule, "message": message })
}

/// A text that never changes.
fn fixed_text(description: &str, field: &str) -> Value {
    let mut text = text(description);
    text["x-kubernetes-validations"] = json!([rule("self == oldSelf", &format!("{field} is immutable"))]);
    text
}

fn error() -> Value {
    json!({
        "type": "object",
        "description": "What went wrong last.",
        "properties": {
            "message": text("Why."),
            "time": { "type": "string", "format": "date-time", "description": "When." },
        },
    })
}

/// An object with a spec that is required.
fn root(description: &str, spec: Value, status: Value) -> Value {
    json!({
        "type": "object",
        "description": description,
        "required": ["spec"],
        "properties": {
            "apiVersion": { "type": "string" },
            "kind": { "type": "string" },
            "metadata": { "type": "object" },
            "spec": spec,
            "status": status,
        },
    })
}

fn snapshot_schema() -> Value {
    let source = json!({
        "type": "object",
        "description": "What it is taken of, or which content it is. Never changes.",
        "properties": {
            "persistentVolumeClaimName":
                fixed_text("A claim of this namespace, whose volume is kept as it is now.", "persistentVolumeClaimName"),
            "volumeSnapshotContentName":
                fixed_text("A content that is there before, and names this snapshot.", "volumeSnapshotContentName"),
        },
        "x-kubernetes-validations": [
            rule(
                "!has(oldSelf.persistentVolumeClaimName) || has(self.persistentVolumeClaimName)",
                "persistentVolumeClaimName is required once set",
            ),
            rule(
                "!has(oldSelf.volumeSnapshotContentName) || has(self.volumeSnapshotContentName)",
                "volumeSnapshotContentName is required once set",
            ),
            rule(
                "(has(self.volumeSnapshotContentName) && !has(self.persistentVolumeClaimName)) || \
                 (!has(self.volumeSnapshotContentName) && has(self.persistentVolumeClaimName))",
                "exactly one of volumeSnapshotContentName and persistentVolumeClaimName must be set",
            ),
        ],
    });
    let spec = json!({
        "type": "object",
        "description": "What is to be kept.",
        "required": ["source"],
        "properties": {
            "source": source,
            "volumeSnapshotClassName": {
                "type": "string",
                "description": "The class; without one, the default class of the volume's driver.",
                "x-kubernetes-validations":
                    [rule("size(self) > 0", "volumeSnapshotClassName must not be the empty string when set")],
            },
        },
    });
    let quantity = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";
    let status = json!({
        "type": "object",
        "description": "How it is. Who uses it looks first whether its content names it, too.",
        "properties": {
            "boundVolumeSnapshotContentName": text("The content that is its own."),
            "creationTime": { "type": "string", "format": "date-time", "description": "Of which moment it is." },
            "error": error(),
            "readyToUse": { "type": "boolean", "description": "Can a volume be made of it?" },
            "restoreSize": {
                "anyOf": [{ "type": "integer" }, { "type": "string" }],
                "description": "How large a volume that is made of it must be at least.",
                "pattern": quantity,
                "x-kubernetes-int-or-string": true,
            },
            "volumeGroupSnapshotName": text("The group of snapshots that it is one of."),
        },
    });
    root("What a claim's volume held at one moment.", spec, status)
}

fn content_schema() -> Value {
    let source = json!({
        "type": "object",
        "description": "What it is taken of, or the driver's name for one that is there before. Never changes.",
        "properties": {
            "snapshotHandle": fixed_text("The driver's name for a snapshot that is there before.", "snapshotHandle"),
            "volumeHandle": fixed_text("The driver's name for the volume it is taken of.", "volumeHandle"),
        },
        "x-kubernetes-validations": [
            rule("!has(oldSelf.volumeHandle) || has(self.volumeHandle)", "volumeHandle is required once set"),
            rule("!has(oldSelf.snapshotHandle) || has(self.snapshotHandle)", "snapshotHandle is required once set"),
            rule(
                "(has(self.volumeHandle) && !has(self.snapshotHandle)) || (!has(self.volumeHandle) && has(self.snapshotHandle))",
                "exactly one of volumeHandle and snapshotHandle must be set",
            ),
        ],
    });
    let reference = json!({
        "type": "object",
        "description": "The snapshot it is for: name and namespace, and its uid once both are bound.",
        "properties": {
            "apiVersion": { "type": "string" },
            "fieldPath": { "type": "string" },
            "kind": { "type": "string" },
            "name": { "type": "string" },
            "namespace": { "type": "string" },
            "resourceVersion": { "type": "string" },
            "uid": { "type": "string" },
        },
        "x-kubernetes-map-type": "atomic",
        "x-kubernetes-validations": [rule(
            "has(self.name) && has(self.__namespace__)",
            "both spec.volumeSnapshotRef.name and spec.volumeSnapshotRef.namespace must be set",
        )],
    });
    let spec = json!({
        "type": "object",
        "description": "Which snapshot, of which driver, for whom.",
        "required": ["deletionPolicy", "driver", "source", "volumeSnapshotRef"],
        "properties": {
            "deletionPolicy": policy("Is what it holds removed with its VolumeSnapshot (Delete), or kept (Retain)?"),
            "driver": text("The driver that has it."),
            "source": source,
            "sourceVolumeMode": fixed_text("Whether the volume was a file system or a block device.", "sourceVolumeMode"),
            "volumeSnapshotClassName": text("The class it was taken by."),
            "volumeSnapshotRef": reference,
        },
        "x-kubernetes-validations": [rule(
            "!has(oldSelf.sourceVolumeMode) || has(self.sourceVolumeMode)",
            "sourceVolumeMode is required once set",
        )],
    });
    let status = json!({
        "type": "object",
        "description": "What the driver says of it.",
        "properties": {
            "creationTime":
                { "type": "integer", "format": "int64", "description": "Of which moment it is, in nanoseconds since 1970." },
            "error": error(),
            "readyToUse": { "type": "boolean", "description": "Can a volume be made of it?" },
            "restoreSize": {
                "type": "integer",
                "format": "int64",
                "minimum": 0,
                "description": "How large a volume that is made of it must be at least, in bytes.",
            },
            "snapshotHandle": text("The driver's name for it."),
            "volumeGroupSnapshotHandle": text("The driver's name for the group it is one of."),
        },
    });
    root("A snapshot as its driver has it.", spec, status)
}

fn policy(description: &str) -> Value {
    json!({ "type": "string", "enum": ["Delete", "Retain"], "description": description })
}

fn class_schema() -> Value {
    json!({
        "type": "object",
        "description": "How snapshots are taken: by which driver, with which parameters, and what becomes of them.",
        "required": ["deletionPolicy", "driver"],
        "properties": {
            "apiVersion": { "type": "string" },
            "kind": { "type": "string" },
            "metadata": { "type": "object" },
            "deletionPolicy": policy("Are its snapshots removed with their VolumeSnapshots (Delete), or kept (Retain)?"),
            "driver": text("The driver that takes them."),
            "parameters": {
                "type": "object",
                "additionalProperties": { "type": "string" },
                "description": "What the driver is told.",
            },
        },
    })
}
