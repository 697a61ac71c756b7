//! What a cluster with the built-in driver has from the start.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::words::{DriverFacts, Topology};

/// Of the names that are Kubernetes' own, those that drivers tell where a node is by.
const PLACES: [&str; 3] = ["kubernetes.io/hostname", "topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

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
        let mut driver = json!({ "name": facts.name, "nodeID": node_id });
        if !keys.is_empty() {
            driver["topologyKeys"] = json!(keys);
        }
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

/// What the node's labels lack of what its drivers say of where it is (the kubelet's `updateTopologyLabels`), and what is said
/// and cannot be: a label has one value, and drivers say nothing of what is Kubernetes' own.
pub fn topology_labels<'d>(
    held: &BTreeMap<String, String>,
    drivers: impl Iterator<Item = &'d DriverFacts>,
) -> (Topology, Vec<String>) {
    let (mut missing, mut refused) = (Topology::new(), Vec::new());
    for driver in drivers {
        for (key, value) in &driver.topology {
            let domain = key.split_once('/').map_or("", |it| it.0);
            let is_own =
                ["kubernetes.io", "k8s.io"].iter().any(|it| domain == *it || domain.ends_with(&format!(".{it}")));
            match held.get(key).or_else(|| missing.get(key)) {
                Some(it) if it == value => {}
                Some(it) => refused.push(format!("{}: label {key} is {it:?} and not {value:?}", driver.name)),
                None if is_own && !PLACES.contains(&&**key) => {
                    refused.push(format!("{}: label {key} is not a driver's to set", driver.name));
                }
                None => {
                    missing.insert(key.clone(), value.clone());
                }
            }
        }
    }
    (missing, refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_labelled_with_where_its_drivers_say_it_is() {
        let map = |all: &[(&str, &str)]| all.iter().map(|it| (it.0.to_owned(), it.1.to_owned())).collect();
        let driver = |topology: &[(&str, &str)]| DriverFacts {
            name: "d".into(),
            topology: map(topology),
            ..DriverFacts::default()
        };
        let drivers = [
            driver(&[("topology.d/node", "7"), ("kubernetes.io/hostname", "n1"), ("topology.kubernetes.io/zone", "a")]),
            driver(&[("topology.d/node", "8"), ("node-role.kubernetes.io/control-plane", ""), ("held", "other")]),
        ];
        let held = map(&[("kubernetes.io/hostname", "n1"), ("held", "x")]);
        let (missing, refused) = topology_labels(&held, drivers.iter());
        assert_eq!(missing, map(&[("topology.d/node", "7"), ("topology.kubernetes.io/zone", "a")]));
        assert_eq!(refused.len(), 3, "{refused:?}");
    }
}
