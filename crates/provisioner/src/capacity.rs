//! How much is left of each class on this node, as CSIStorageCapacity: by it the scheduler knows where a claim finds room.

use corten_api::storage::v1::StorageClass;
use corten_meta::{Quantity, stable_hash};
use serde_json::{Value, json};

use crate::{
    provision::driver_parameters,
    words::{Config, DriverFacts, Published},
};

/// Where they are kept.
pub const NAMESPACE: &str = "kube-system";

/// Labels: of which driver, and who tells it.
pub const DRIVER_NAME: &str = "csi.storage.k8s.io/drivername";
pub const MANAGED_BY: &str = "csi.storage.k8s.io/managed-by";
const MANAGER: &str = "corten-";

pub fn manager(node: &str) -> String {
    format!("{MANAGER}{node}")
}

/// The node of which an object tells with this label; `None`: it is somebody else's.
pub fn managed_node(manager: &str) -> Option<&str> {
    manager.strip_prefix(MANAGER)
}

pub(crate) fn of(class: &StorageClass, driver: &DriverFacts) -> Published {
    Published {
        driver: driver.name.clone(),
        class: class.metadata.name.clone().unwrap_or_default(),
        parameters: driver_parameters(class.parameters.clone().unwrap_or_default()),
        topology: driver.topology.clone(),
    }
}

/// The same for the same driver, class and node.
pub fn object_name(driver: &str, class: &str, config: &Config) -> String {
    let text = format!("{driver}\0{class}\0{}", config.node_name);
    format!("csisc-{:016x}", stable_hash(text.as_bytes()))
}

/// The object that says it.
pub fn object(published: &Published, config: &Config, available_bytes: u64, maximum_bytes: Option<u64>) -> Value {
    let quantity = |bytes: u64| Quantity::bytes(i64::try_from(bytes).unwrap_or(i64::MAX)).to_string();
    let mut object = json!({
        "kind": "CSIStorageCapacity",
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {
            "name": object_name(&published.driver, &published.class, config),
            "namespace": NAMESPACE,
            "labels": {
                DRIVER_NAME: published.driver,
                MANAGED_BY: manager(&config.node_name),
            },
        },
        "storageClassName": published.class,
        "nodeTopology": { "matchLabels": published.topology },
        "capacity": quantity(available_bytes),
    });
    if let Some(bytes) = maximum_bytes {
        object["maximumVolumeSize"] = quantity(bytes).into();
    }
    object
}
