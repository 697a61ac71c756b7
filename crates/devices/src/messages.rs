//! Messages of the device plugin API, `v1beta1`; prost skips what it does not know.

use std::collections::BTreeMap;

pub(crate) const VERSION: &str = "v1beta1";

pub(crate) const REGISTER: &str = "/v1beta1.Registration/Register";
pub(crate) const OPTIONS: &str = "/v1beta1.DevicePlugin/GetDevicePluginOptions";
pub(crate) const LIST_AND_WATCH: &str = "/v1beta1.DevicePlugin/ListAndWatch";
pub(crate) const PREFER: &str = "/v1beta1.DevicePlugin/GetPreferredAllocation";
pub(crate) const ALLOCATE: &str = "/v1beta1.DevicePlugin/Allocate";
pub(crate) const PRE_START: &str = "/v1beta1.DevicePlugin/PreStartContainer";

/// How a device does that is well.
pub(crate) const HEALTHY: &str = "Healthy";

/// Says no more than its type.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Empty {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PluginOptions {
    #[prost(bool, tag = "1")]
    pub(crate) pre_start_required: bool,
    #[prost(bool, tag = "2")]
    pub(crate) get_preferred_allocation_available: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RegisterRequest {
    #[prost(string, tag = "1")]
    pub(crate) version: String,
    /// The name of the plugin's socket, in the folder of the one it registers at.
    #[prost(string, tag = "2")]
    pub(crate) endpoint: String,
    #[prost(string, tag = "3")]
    pub(crate) resource_name: String,
    #[prost(message, optional, tag = "4")]
    pub(crate) options: Option<PluginOptions>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Devices {
    #[prost(message, repeated, tag = "1")]
    pub(crate) devices: Vec<Device>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Device {
    #[prost(string, tag = "1")]
    pub(crate) id: String,
    #[prost(string, tag = "2")]
    pub(crate) health: String,
    #[prost(message, optional, tag = "3")]
    pub(crate) topology: Option<TopologyInfo>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TopologyInfo {
    #[prost(message, repeated, tag = "1")]
    pub(crate) nodes: Vec<NumaNode>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct NumaNode {
    #[prost(int64, tag = "1")]
    pub(crate) id: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PreferredRequests {
    #[prost(message, repeated, tag = "1")]
    pub(crate) containers: Vec<PreferredRequest>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PreferredRequest {
    #[prost(string, repeated, tag = "1")]
    pub(crate) available: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub(crate) must_include: Vec<String>,
    #[prost(int32, tag = "3")]
    pub(crate) size: i32,
}

/// Devices of containers: what is preferred, and what is asked for.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContainersIds {
    #[prost(message, repeated, tag = "1")]
    pub(crate) containers: Vec<Ids>,
}

/// What one container is to have, or has before it starts.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Ids {
    #[prost(string, repeated, tag = "1")]
    pub(crate) ids: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Allocated {
    #[prost(message, repeated, tag = "1")]
    pub(crate) containers: Vec<ContainerAllocated>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContainerAllocated {
    #[prost(btree_map = "string, string", tag = "1")]
    pub(crate) envs: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) mounts: Vec<Mount>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) devices: Vec<DeviceSpec>,
    #[prost(btree_map = "string, string", tag = "4")]
    pub(crate) annotations: BTreeMap<String, String>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) cdi_devices: Vec<CdiDevice>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Mount {
    #[prost(string, tag = "1")]
    pub(crate) container_path: String,
    #[prost(string, tag = "2")]
    pub(crate) host_path: String,
    #[prost(bool, tag = "3")]
    pub(crate) read_only: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DeviceSpec {
    #[prost(string, tag = "1")]
    pub(crate) container_path: String,
    #[prost(string, tag = "2")]
    pub(crate) host_path: String,
    #[prost(string, tag = "3")]
    pub(crate) permissions: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CdiDevice {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
}

/// Of the PodResources API.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodResourcesList {
    #[prost(message, repeated, tag = "1")]
    pub(crate) pod_resources: Vec<PodResources>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetPodResources {
    #[prost(string, tag = "1")]
    pub(crate) pod_name: String,
    #[prost(string, tag = "2")]
    pub(crate) pod_namespace: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct OnePodResources {
    #[prost(message, optional, tag = "1")]
    pub(crate) pod_resources: Option<PodResources>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AllocatableResources {
    #[prost(message, repeated, tag = "1")]
    pub(crate) devices: Vec<ContainerDevices>,
    #[prost(int64, repeated, tag = "2")]
    pub(crate) cpu_ids: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) memory: Vec<ContainerMemory>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContainerMemory {
    #[prost(string, tag = "1")]
    pub(crate) memory_type: String,
    #[prost(uint64, tag = "2")]
    pub(crate) size: u64,
    #[prost(message, optional, tag = "3")]
    pub(crate) topology: Option<TopologyInfo>,
}

/// A claim of a container, and what it has of it.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DynamicResource {
    #[prost(string, tag = "2")]
    pub(crate) claim_name: String,
    #[prost(string, tag = "3")]
    pub(crate) claim_namespace: String,
    #[prost(message, repeated, tag = "4")]
    pub(crate) claim_resources: Vec<ClaimResource>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ClaimResource {
    #[prost(message, repeated, tag = "1")]
    pub(crate) cdi_devices: Vec<CdiDevice>,
    #[prost(string, tag = "2")]
    pub(crate) driver_name: String,
    #[prost(string, tag = "3")]
    pub(crate) pool_name: String,
    #[prost(string, tag = "4")]
    pub(crate) device_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PodResources {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) namespace: String,
    #[prost(message, repeated, tag = "3")]
    pub(crate) containers: Vec<ContainerResources>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContainerResources {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) devices: Vec<ContainerDevices>,
    #[prost(int64, repeated, tag = "3")]
    pub(crate) cpu_ids: Vec<i64>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) memory: Vec<ContainerMemory>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) dynamic_resources: Vec<DynamicResource>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ContainerDevices {
    #[prost(string, tag = "1")]
    pub(crate) resource_name: String,
    #[prost(string, repeated, tag = "2")]
    pub(crate) device_ids: Vec<String>,
    #[prost(message, optional, tag = "3")]
    pub(crate) topology: Option<TopologyInfo>,
}
