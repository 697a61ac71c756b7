//! Gives minds their hands: feeds views from informers, carries out plans through the client, keeps the journal.
//!
//! All time goes through a [`Clock`] and tokio's timers, so a simulator with a paused clock drives it all.

use std::sync::Arc;

mod barrier;
mod controller;
mod declared;
mod dns;
mod effects;
mod events;
#[cfg(test)]
mod fake;
mod feed;
mod journal;
mod loops;
mod node;
mod node_certificate;
mod node_devices;
mod node_inquiries;
mod node_lease;
mod node_problems;
mod node_volumes;
mod observations;
mod pod_certificates;
mod provisioner;
mod proxy;
mod queue;
mod rewind;
mod scheduler;
mod shared_informers;
mod signing;
mod sources;
mod thinking;
mod volume_health;

pub use controller::{ControllerLoop, run_controller};
pub use dns::run_dns;
pub use events::EventRecorder;
pub use journal::JournalBook;
pub use loops::{GivenUp, Loop, Loops, whole};
pub use node::{Hands, run_node};
pub use node_certificate::{ServingCertificate, ServingKeys, ServingNames, run_node_certificate};
pub use node_inquiries::{NodeCaller, NodeInquiries, NodeQuestion};
pub use node_problems::{NodeProblemHands, run_node_problems};
pub use observations::{ObservationHands, Reading, run_observations};
pub use provisioner::{
    BuiltIn, NodeDriver, ProvisionerSettings, Refusal, SnapshotRefusal, Unchanged, VolumeHands, run_provisioner,
};
pub use proxy::{PacketHands, ProxySettings, run_proxy};
pub use queue::QueueCounts;
pub use scheduler::run_scheduler;
pub use shared_informers::SharedInformers;
pub use signing::{Signer, SigningRequest, run_signing};
pub use volume_health::{SickVolume, VolumeHealthHands, VolumeHealthSettings, run_volume_health};

/// What time it is. The one clock of a process, or a simulation's.
pub type Clock = Arc<dyn Fn() -> corten_meta::Time + Send + Sync>;
