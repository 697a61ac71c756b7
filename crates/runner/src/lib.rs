//! Gives minds their hands: feeds views from informers, carries out plans through the client, keeps the journal.
//!
//! All time goes through a [`Clock`] and tokio's timers, so a simulator with a paused clock drives it all.

use std::sync::Arc;

mod announcements;
mod barrier;
mod certificate_request;
mod controller;
mod counted;
mod declared;
mod dns;
mod durations;
mod effects;
mod events;
#[cfg(test)]
mod fake;
mod feed;
mod joined_nodes;
mod journal;
mod keeping;
mod kernel_table;
mod leader_election;
mod leading;
mod loops;
mod network_policy;
mod node;
mod node_certificate;
mod node_devices;
mod node_inquiries;
mod node_lease;
mod node_problems;
mod node_tokens;
mod node_volumes;
mod observations;
mod own_pods;
mod pod_certificates;
mod pod_routes;
mod provisioner;
mod proxy;
mod queue;
mod rewind;
mod scheduler;
mod scheduler_measures;
mod shared_informers;
mod shared_watch;
mod signing;
mod sources;
mod thinking;
mod token_secrets;
mod volume_growth;
mod volume_health;
mod volume_limits;
mod volume_moves;

pub use announcements::{AnnouncementHands, AnnouncementSettings, run_announcements};
pub use certificate_request::{CertificateWish, request_certificate, signed_certificate};
pub use controller::{ControllerLoop, run_controller};
pub use counted::{CountedMetric, LoopCounts};
pub use dns::{NameHands, NameSettings, run_dns};
pub use durations::{CountedDurations, Durations};
pub use events::EventRecorder;
pub use joined_nodes::{JoinedNodesSettings, follow_joined_nodes};
pub use journal::JournalBook;
pub use kernel_table::TableHands;
pub use leader_election::{Candidate, Term};
pub use leading::{Stopping, lead};
pub use loops::{GivenUp, Loop, Loops, whole};
pub use network_policy::{NetworkPolicySettings, PolicyHands, run_network_policy};
pub use node::{Hands, run_node};
pub use node_certificate::{ServingCertificate, ServingKeys, ServingNames, run_node_certificate};
pub use node_inquiries::{NodeCaller, NodeInquiries, NodeQuestion};
pub use node_problems::{NodeProblemHands, run_node_problems};
pub use observations::{ObservationHands, Reading, run_observations};
pub use own_pods::{OwnObjects, OwnPods};
pub use pod_routes::{PodRouteSettings, RouteHands, run_pod_routes};
pub use provisioner::{
    BuiltIn, NodeDriver, ProvisionerSettings, Refusal, SharedStorage, SnapshotRefusal, Unchanged, VolumeHands,
    run_node_drivers, run_provisioner,
};
pub use proxy::{PacketHands, ProxySettings, run_proxy};
pub use queue::QueueCounts;
pub use scheduler::{ReachExtender, check_extenders, run_scheduler, run_scheduler_beside};
pub use shared_informers::SharedInformers;
pub use shared_watch::NodeWatches;
pub use signing::{Signer, SigningRequest, run_signing};
pub use token_secrets::{TokenSecretSettings, run_token_secrets};
pub use volume_growth::{VolumeGrowthHands, VolumeGrowthSettings, run_volume_growth};
pub use volume_health::{SickVolume, VolumeHealthHands, VolumeHealthSettings, run_volume_health};
pub use volume_limits::{VolumeLimitHands, run_volume_limits};
pub use volume_moves::{Leaving, MoveHands, VolumeMoveSettings, run_volume_moves};

/// What time it is. The one clock of a process, or a simulation's.
pub type Clock = Arc<dyn Fn() -> corten_meta::Time + Send + Sync>;
