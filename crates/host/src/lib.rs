//! Does things to a Linux node: containers through CRI, mounts, cgroups, the Pod network, logs. It never chooses.
//!
//! Decisions are the kubelet's; every verb here does one thing to the machine and says what became of it.

mod cgroups;
mod cni;
mod command;
mod containerd;
pub mod cri;
mod error;
mod events;
mod layout;
pub mod logs;
mod mounts;
mod node_facts;
mod perform;
mod pod_files;
mod process;
mod server;
mod shims;
mod teardown;
pub mod volumes;

pub use cgroups::{Cgroups, PodLimits, Qos};
pub use containerd::{Containerd, Options, PAUSE_IMAGE};
pub use cri::{Cri, CriError};
pub use error::HostError;
pub use events::{RuntimeEvent, events};
pub use layout::{INSTALLED_IMAGES, Layout};
pub use mounts::NodeMounts;
pub use node_facts::{NodeFacts, gather};
pub use perform::NodeHands;
pub use pod_files::{DnsConfig, HostsFile};
pub use process::{Process, detach, open_log};
pub use server::{KubeletServer, ServerError};
pub use teardown::{erase, stop_all};
pub use volumes::{HostPathType, Medium, VolumeError, VolumeFile, Volumes};

#[cfg(test)]
mod node_tests;
