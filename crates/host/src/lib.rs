//! Does things to a Linux node: containers through CRI, mounts, cgroups, the Pod network, logs. It never chooses.
//!
//! Decisions are the kubelet's; every verb here does one thing to the machine and says what became of it.

mod boot_id;
mod bridge;
mod cgroups;
mod cni;
mod command;
mod containerd;
pub mod cri;
mod disks;
mod dns;
mod doors;
mod durable;
mod end_of_machine;
mod error;
mod events;
mod folders;
mod lacks;
mod layout;
mod listening;
mod logind;
pub mod logs;
mod lost;
mod manifests;
mod mounts;
mod network;
mod nft;
mod node_facts;
mod node_paths;
mod oci_runtime;
mod oom;
mod perform;
mod pod_files;
mod process;
mod server;
mod service_health;
mod service_manager;
mod shims;
mod stats;
mod stops;
mod teardown;
mod terminations;
mod tree;
mod user_namespaces;
pub mod volumes;
mod wall_clock;

pub use boot_id::boot_id;
pub use cgroups::{Cgroups, PodLimits, Qos};
pub use containerd::{Containerd, Options, PAUSE_IMAGE};
pub use cri::{Cri, CriError};
pub use disks::takes_writes;
pub use dns::{DnsOptions, DnsServer, ListServers, ZoneSlot, servers_of_machine};
pub use durable::write_whole;
pub use end_of_machine::EndOfMachine;
pub use error::HostError;
pub use events::{RuntimeEvent, events};
pub use folders::folder_modes::{
    FOLDERS, Folder, close_data, close_for_logs, close_for_server, close_run, could_be_a_nodes,
};
pub use folders::own_folder::{Place, leave};
pub use folders::owners::others_write;
pub use lacks::{ANNOTATION as LACKS_ANNOTATION, LACKS, Lack, lacks_of};
pub use layout::{INSTALLED_IMAGES, Layout};
pub use listening::listening;
pub use logind::Logind;
pub use manifests::Manifests;
pub use mounts::NodeMounts;
pub use network::PodNetwork;
pub use nft::ServiceRules;
pub use node_facts::{NodeFacts, addresses, gather};
pub use oom::shield_from_oom;
pub use perform::{MASKED_PATHS, NodeHands, READ_ONLY_PATHS};
pub use pod_files::{DnsConfig, HostsFile};
pub use process::{Process, detach, open_log};
pub use server::{Caller, Cluster, KubeletServer, Lasting, NodeAccess, ServerError, Serving, ServingKey};
pub use service_health::ServiceHealth;
pub use service_manager::{notify_service_manager, systemd_is_in_charge};
pub use shims::n_sandboxes;
pub use stops::stopped_with_machine;
pub use teardown::{erase, may_be_erased, stop_all};
pub use terminations::begun_terminations;
pub use volumes::{HostPathType, Medium, VolumeError, VolumeFile, Volumes};
pub use wall_clock::WallClock;

#[cfg(test)]
mod node_tests;
