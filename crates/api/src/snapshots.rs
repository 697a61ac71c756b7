//! Snapshots of volumes (`snapshot.storage.k8s.io/v1`): custom resources that Corten brings, as far as it reads them. Names of
//! annotations, labels and finalizers are external-snapshotter's.

use std::collections::BTreeMap;

use corten_meta::{Key, Named, ObjectMeta, ObjectReference, Quantity, Resource, Time};
use serde::{Deserialize, Serialize};

use crate::{
    secret_names::{OWN_PARAMETERS, secret_of},
    volumes::{ClaimRef, DataSource},
};

pub const GROUP: &str = "snapshot.storage.k8s.io";
pub const VOLUME_SNAPSHOTS: Resource = Resource::namespaced(GROUP, "v1", "VolumeSnapshot", "volumesnapshots");
pub const VOLUME_SNAPSHOT_CONTENTS: Resource =
    Resource::cluster(GROUP, "v1", "VolumeSnapshotContent", "volumesnapshotcontents");
pub const VOLUME_SNAPSHOT_CLASSES: Resource =
    Resource::cluster(GROUP, "v1", "VolumeSnapshotClass", "volumesnapshotclasses");

/// A label of a definition, with [`MANAGER`]: Corten looks after its objects. Without it somebody else's controller does.
pub const APP_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
pub const MANAGER: &str = "corten";
/// On a class, `"true"`: snapshots without a class, of volumes of its driver, get this one.
pub const IS_DEFAULT_CLASS: &str = "snapshot.storage.kubernetes.io/is-default-class";
/// On a content: its snapshot is deleted, and what it holds may go.
pub const BEING_DELETED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted";
/// On a content: the driver was asked, and what came of it is not known yet.
pub const BEING_CREATED: &str = "snapshot.storage.kubernetes.io/volumesnapshot-being-created";
/// On a content: its snapshot may become a volume of another mode.
pub const ALLOW_MODE_CHANGE: &str = "snapshot.storage.kubernetes.io/allow-volume-mode-change";
/// A label of a content: the node whose driver it is for.
pub const CONTENT_MANAGED_BY: &str = "snapshot.storage.kubernetes.io/managed-by";
/// An annotation of a content, of Corten: the labels of the nodes that reach the volume it is taken of, as JSON. Snapshots outlive volumes.
pub const CONTENT_TOPOLOGY: &str = "csi.corten.dev/topology";
/// Finalizers: of a snapshot that is the source of volumes, of one that has a content, of a content, and of a claim that a
/// snapshot is taken of.
pub const SOURCE_FINALIZER: &str = "snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection";
pub const BOUND_FINALIZER: &str = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection";
pub const CONTENT_FINALIZER: &str = "snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection";
pub const CLAIM_FINALIZER: &str = "snapshot.storage.kubernetes.io/pvc-as-source-protection";
/// On a content: the Secret its driver is told when it takes and when it removes the snapshot.
pub const SECRET_NAME: &str = "snapshot.storage.kubernetes.io/deletion-secret-name";
pub const SECRET_NAMESPACE: &str = "snapshot.storage.kubernetes.io/deletion-secret-namespace";

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct VolumeSnapshot {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: SnapshotSpec,
    #[serde(default)]
    pub status: SnapshotStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SnapshotSpec {
    pub source: SnapshotSource,
    pub volume_snapshot_class_name: Option<String>,
}

/// One of both.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SnapshotSource {
    pub persistent_volume_claim_name: Option<String>,
    pub volume_snapshot_content_name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SnapshotStatus {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bound_volume_snapshot_content_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_time: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_to_use: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restore_size: Option<Quantity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<SnapshotError>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SnapshotError {
    pub message: String,
    pub time: Option<Time>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct VolumeSnapshotContent {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub spec: ContentSpec,
    #[serde(default)]
    pub status: ContentStatus,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContentSpec {
    /// `Delete` or `Retain`.
    pub deletion_policy: String,
    pub driver: String,
    pub source: ContentSource,
    pub source_volume_mode: Option<String>,
    pub volume_snapshot_class_name: Option<String>,
    pub volume_snapshot_ref: ClaimRef,
}

/// One of both: it is to be taken of a volume, or was there before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContentSource {
    pub volume_handle: Option<String>,
    pub snapshot_handle: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContentStatus {
    pub snapshot_handle: Option<String>,
    /// Nanoseconds since 1970.
    pub creation_time: Option<i64>,
    /// In bytes.
    pub restore_size: Option<i64>,
    pub ready_to_use: Option<bool>,
    pub error: Option<SnapshotError>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeSnapshotClass {
    pub metadata: ObjectMeta,
    #[serde(default)]
    pub driver: String,
    #[serde(default)]
    pub deletion_policy: String,
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
}

macro_rules! named {
    ($($type:ident)*) => {
        $(impl Named for $type {
            fn meta(&self) -> &ObjectMeta {
                &self.metadata
            }
        })*
    };
}
named! { VolumeSnapshot VolumeSnapshotContent VolumeSnapshotClass }

impl VolumeSnapshot {
    /// The name of the content that is, or will be, its own.
    pub fn content_name(&self) -> String {
        let given = self.spec.source.volume_snapshot_content_name.as_deref().filter(|it| !it.is_empty());
        given.map_or_else(|| format!("snapcontent-{}", self.metadata.uid), str::to_owned)
    }

    pub fn is_ready(&self) -> bool {
        self.status.ready_to_use == Some(true)
    }

    pub fn reference(&self) -> ObjectReference {
        reference(&VOLUME_SNAPSHOTS, &self.metadata)
    }
}

impl VolumeSnapshotContent {
    /// Is it for this snapshot, and for no other that had its name?
    pub fn is_of(&self, snapshot: &ObjectMeta) -> bool {
        let of = &self.spec.volume_snapshot_ref;
        of.namespace == snapshot.namespace && of.name == snapshot.name && of.uid == snapshot.uid
    }

    pub fn handle(&self) -> Option<&str> {
        self.status.snapshot_handle.as_deref().or(self.spec.source.snapshot_handle.as_deref())
    }

    /// The Secret its driver is told.
    pub fn secret(&self) -> Option<Key> {
        let annotations = &self.metadata.annotations;
        Some(Key::new(&**annotations.get(SECRET_NAMESPACE)?, &**annotations.get(SECRET_NAME)?))
    }

    pub fn is_kept(&self) -> bool {
        self.spec.deletion_policy == "Retain"
    }

    pub fn reference(&self) -> ObjectReference {
        reference(&VOLUME_SNAPSHOT_CONTENTS, &self.metadata)
    }
}

impl VolumeSnapshotClass {
    pub fn is_default(&self) -> bool {
        self.metadata.annotations.get(IS_DEFAULT_CLASS).is_some_and(|it| it == "true")
    }

    /// What the driver is told.
    pub fn driver_parameters(&self) -> BTreeMap<String, String> {
        let own = |it: &(&String, &String)| !it.0.starts_with(OWN_PARAMETERS);
        self.parameters.iter().filter(own).map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// The Secret that the class has the driver told when it is asked for the snapshot of a content that was there before.
    ///
    /// # Errors
    /// Half of a name, or a placeholder that is none, in upstream's words.
    pub fn list_secret(&self, content: &str) -> Result<Option<Key>, String> {
        secret_of(&self.parameters, "snapshotter-list-secret", |token, _| match token {
            "volumesnapshotcontent.name" => Some(content.to_owned()),
            _ => None,
        })
    }

    /// The Secret that the class has the driver told about a snapshot and its content.
    ///
    /// # Errors
    /// Half of a name, or a placeholder that is none, in upstream's words.
    pub fn snapshotter_secret(&self, snapshot: &VolumeSnapshot) -> Result<Option<Key>, String> {
        secret_of(&self.parameters, "snapshotter-secret", |token, is_name| match token {
            "volumesnapshotcontent.name" => Some(snapshot.content_name()),
            "volumesnapshot.namespace" => Some(snapshot.metadata.namespace.clone()),
            "volumesnapshot.name" if is_name => Some(snapshot.metadata.name.clone()),
            _ => None,
        })
    }
}

fn reference(resource: &Resource, meta: &ObjectMeta) -> ObjectReference {
    ObjectReference {
        kind: resource.kind.to_string(),
        api_version: resource.api_version(),
        namespace: meta.namespace.clone(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        ..ObjectReference::default()
    }
}

impl DataSource {
    /// `Kind.group` of what only a populator reads: a program of somebody else's that makes the volume (KEP-1495).
    pub fn of_populator(&self) -> Option<String> {
        let is_claim = self.kind == "PersistentVolumeClaim" && self.api_group.is_empty();
        let is_snapshot = self.kind == "VolumeSnapshot" && self.api_group == GROUP;
        (!is_claim && !is_snapshot).then(|| format!("{}.{}", self.kind, self.api_group))
    }
}
