//! Kinds of volumes that this node does not mount, by their names: what Kubernetes once mounted itself, and now leaves to CSI
//! drivers, and such as need programs of the machine.

use serde::Serialize;

const KINDS: [&str; 19] = [
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephfs",
    "cinder",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "glusterfs",
    "iscsi",
    "photonPersistentDisk",
    "portworxVolume",
    "quobyte",
    "rbd",
    "scaleIO",
    "storageos",
    "vsphereVolume",
];

/// Of which kind a volume, or what a PersistentVolume says, is.
pub(crate) fn kind_of(source: &impl Serialize) -> &'static str {
    let told = serde_json::to_value(source).unwrap_or_default();
    KINDS.into_iter().find(|it| told.get(it).is_some_and(|it| !it.is_null())).unwrap_or("unknown")
}
