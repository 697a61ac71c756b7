//! What a cluster with the built-in driver has from the start.

use serde_json::{Value, json};

use crate::words::DriverFacts;

/// The default class. Made once: who changes or deletes it has the last word.
pub fn default_class(driver: &str) -> Value {
    json!({
        "kind": "StorageClass",
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {
            "name": "local",
            "annotations": { "storageclass.kubernetes.io/is-default-class": "true" },
        },
        "provisioner": driver,
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
        "allowVolumeExpansion": true,
    })
}

/// What the built-in driver is.
pub fn csi_driver(driver: &str) -> Value {
    json!({
        "kind": "CSIDriver",
        "apiVersion": "storage.k8s.io/v1",
        "metadata": { "name": driver },
        "spec": {
            "attachRequired": false,
            "podInfoOnMount": false,
            "storageCapacity": true,
            "fsGroupPolicy": "File",
            "volumeLifecycleModes": ["Persistent"],
        },
    })
}

/// Which drivers a node has: each with its name for the node, and how many volumes it has at most.
pub fn csi_node(node: &str, node_uid: &str, drivers: &[(DriverFacts, String, Option<i32>)]) -> Value {
    let driver = |(facts, node_id, limit): &(DriverFacts, String, Option<i32>)| {
        let keys: Vec<&String> = facts.topology.keys().collect();
        let mut driver = json!({ "name": facts.name, "nodeID": node_id, "topologyKeys": keys });
        if let Some(count) = limit {
            driver["allocatable"] = json!({ "count": count });
        }
        driver
    };
    json!({
        "kind": "CSINode",
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {
            "name": node,
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Node", "name": node, "uid": node_uid }],
        },
        "spec": { "drivers": drivers.iter().map(driver).collect::<Vec<_>>() },
    })
}
