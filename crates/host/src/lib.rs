//! Does things to a Linux node: containers through CRI, mounts, cgroups, the Pod network, logs. It never chooses.
//!
//! Decisions are the kubelet's; every verb here does one thing to the machine and says what became of it.

mod bridge;
mod cgroups;
mod cni;
mod command;
mod containerd;
pub mod cri;
mod dns;
mod doors;
mod end_of_machine;
mod error;
mod events;
mod layout;
mod listening;
mod logind;
pub mod logs;
mod manifests;
mod mounts;
mod nft;
mod node_facts;
mod oci_runtime;
mod oom;
mod perform;
mod pod_files;
mod private;
mod process;
mod server;
mod service_health;
mod service_manager;
mod shims;
mod stats;
mod teardown;
mod tree;
pub mod volumes;

pub use cgroups::{Cgroups, PodLimits, Qos};
pub use containerd::{Containerd, Options, PAUSE_IMAGE};
pub use cri::{Cri, CriError};
pub use dns::{DnsOptions, DnsServer, ListServers, ZoneSlot, servers_of_machine};
pub use end_of_machine::EndOfMachine;
pub use error::HostError;
pub use events::{RuntimeEvent, events};
pub use layout::{INSTALLED_IMAGES, Layout};
pub use listening::listening;
pub use logind::Logind;
pub use manifests::Manifests;
pub use mounts::NodeMounts;
pub use nft::ServiceRules;
pub use node_facts::{NodeFacts, addresses, gather};
pub use perform::{MASKED_PATHS, NodeHands, READ_ONLY_PATHS};
pub use pod_files::{DnsConfig, HostsFile};
pub use private::{close_data, close_run, close_within};
pub use process::{Process, detach, open_log};
pub use server::{Caller, Cluster, KubeletServer, Lasting, NodeAccess, ServerError, Serving, ServingKey};
pub use service_health::ServiceHealth;
pub use service_manager::notify_service_manager;
pub use teardown::{erase, stop_all};
pub use volumes::{HostPathType, Medium, VolumeError, VolumeFile, Volumes};

#[cfg(test)]
mod node_tests;
