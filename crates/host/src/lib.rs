//! Does things to a Linux node: containers through CRI, mounts, cgroups, the Pod network, logs. It never chooses.
//!
//! Decisions are the kubelet's; every verb here does one thing to the machine and says what became of it.

mod containerd;
pub mod cri;
mod disks;
mod dns;
mod events;
mod journals;
mod lacks;
pub mod logs;
mod lost;
mod machine_topology;
mod manager_states;
mod manifests;
mod measures;
mod node_facts;
mod node_paths;
mod oci_runtime;
mod perform;
mod pod_files;
mod server;
mod shims;
mod stats;
mod stops;
mod teardown;
mod terminations;
mod user_namespaces;
pub mod volumes;

pub use containerd::{Containerd, Options, PAUSE_IMAGE};
pub use cri::{Cri, CriError};
pub use disks::takes_writes;
pub use dns::{DnsOptions, DnsServer, Ipv4Way, IsPeer, ListServers, WaysOut, ZoneSlot, servers_of_machine};
pub use events::{RuntimeEvent, events};
pub use journals::Journals;
pub use lacks::{ANNOTATION as LACKS_ANNOTATION, LACKS, Lack, lacks_of};
pub use machine_topology::machine_topology;
pub use manager_states::written_manager_states;
pub use manifests::Manifests;
pub use measures::{CertificateTimes, Measures};
pub use node_facts::{NodeFacts, gather};
pub use perform::{MASKED_PATHS, NodeHands, READ_ONLY_PATHS, RunningHere};
pub use server::{Caller, Cluster, KubeletServer, Lasting, NodeAccess, OwnList, ServerError, Serving, ServingKey};
pub use shims::n_sandboxes;
pub use stops::stopped_with_machine;
pub use teardown::{erase, may_be_erased, stop_all};
pub use terminations::begun_terminations;
pub use volumes::{VolumeError, Volumes};

#[cfg(test)]
mod node_tests;
