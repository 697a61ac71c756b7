//! Every built-in kind as a plain typed value: `k8s-openapi` re-exported, and where each kind lives in the API.
//!
//! Minds read small projections of objects instead of these whole types; the kubelet, which has few, reads them whole.

pub mod api_servers;
pub mod availability;
pub mod capacity_range;
pub mod cluster_network;
pub mod declared_features;
pub mod host_ports;
pub mod lease_times;
pub mod load_balancer;
pub mod quota;
pub mod resources;
pub mod scheduling;
pub mod secret_names;
pub mod snapshots;
pub mod version;
pub mod volumes;

pub use k8s_openapi::{self, api::*, apimachinery};
