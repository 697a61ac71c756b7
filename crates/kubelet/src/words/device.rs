//! Devices that plugins offer: what each plugin has, what a container asks for, and what it is given.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One device, by its plugin's words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginDevice {
    pub is_healthy: bool,
    pub numa_nodes: Vec<i64>,
}

/// A resource that a device plugin of this node offers, or has offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceResource {
    pub devices: BTreeMap<String, PluginDevice>,
    /// The plugin answers; while it does not, nothing of what it had can be given.
    pub is_connected: bool,
}

/// What containers of pods were given, by the pods' uids.
pub type PodsDevices = BTreeMap<String, Vec<AllocatedDevices>>;

/// All there is to say of device plugins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceNews {
    /// By the resources' names.
    pub resources: BTreeMap<String, DeviceResource>,
    /// What was given so far, in earlier runs too.
    pub allocated: PodsDevices,
}

/// What a plugin is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceWish {
    pub container: String,
    pub resource: String,
    /// What is to be given where the plugin has no preference.
    pub ids: Vec<String>,
    /// Among these a plugin that has preferences may choose.
    pub available: Vec<String>,
    /// Those that it must choose.
    pub must_include: Vec<String>,
}

/// What one container was given of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AllocatedDevices {
    pub container: String,
    pub resource: String,
    pub ids: Vec<String>,
    pub granted: Granted,
}

/// What a container has of devices, in the plugin's words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Granted {
    pub env: Vec<(String, String)>,
    pub mounts: Vec<GrantedMount>,
    pub devices: Vec<GrantedDevice>,
    pub annotations: Vec<(String, String)>,
    /// Names of the Container Device Interface, `vendor.com/class=name`.
    pub cdi_devices: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GrantedMount {
    pub container_path: String,
    pub host_path: String,
    pub read_only: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GrantedDevice {
    pub container_path: String,
    pub host_path: String,
    /// Of `rwm`.
    pub permissions: String,
}

/// What the host does about devices when it starts a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerDevices {
    /// Resources and ids: a plugin that wants it is told before the container starts.
    pub allocated: Vec<(String, Vec<String>)>,
    pub granted: Granted,
}

impl Granted {
    /// Adds what another resource brings; of what both say, the first word stands (`deviceRunContainerOptions`).
    pub fn add(&mut self, other: &Self) {
        fn extend<T: Clone>(all: &mut Vec<T>, more: &[T], same: impl Fn(&T, &T) -> bool) {
            for it in more {
                if !all.iter().any(|known| same(known, it)) {
                    all.push(it.clone());
                }
            }
        }
        extend(&mut self.env, &other.env, |a, b| a.0 == b.0);
        extend(&mut self.mounts, &other.mounts, |a, b| a.container_path == b.container_path);
        extend(&mut self.devices, &other.devices, |a, b| a.container_path == b.container_path);
        extend(&mut self.annotations, &other.annotations, |a, b| a.0 == b.0);
        extend(&mut self.cdi_devices, &other.cdi_devices, |a, b| a == b);
    }
}
