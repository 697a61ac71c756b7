//! Which claims the drivers of a node give a volume, which volumes they remove, which they grow, and which snapshots they take:
//! what upstream's sidecars external-provisioner and csi-snapshotter (with `--node-deployment`), external-resizer and
//! external-attacher do, where none of them runs for a driver. A mind: no I/O, no clock.
//!
//! [`Provisioner::step`] is told what happened and answers what to do. Each claim and each volume has at most one thing under
//! way; what failed is tried again after a pause that doubles.

mod acting;
mod attaching;
mod capacity;
mod claim_status;
mod cloning;
mod expansion;
mod known;
pub mod leases;
mod modification;
pub mod moves;
mod names;
mod node_expansion;
mod objects;
mod places;
mod provision;
mod provisioner;
mod removal;
mod secrets;
mod sidecars;
mod snapshot_objects;
mod snapshots;
mod sources;
mod words;

#[cfg(test)]
mod tests;

pub use attaching::{ASKED, NODE_ID};
pub use capacity::{
    DRIVER_NAME, MANAGED_BY, NAMESPACE as CAPACITY_NAMESPACE, managed_node, manager, object as capacity_object,
    object_name as capacity_name,
};
pub use claim_status::{MESSAGE, is_own_condition};
pub use known::{AffectedNodes, Known};
pub use node_expansion::NodeExpansion;
pub use objects::{csi_driver, csi_node, default_class, topology_labels};
pub use provision::{FINALIZER, volume as volume_object};
pub use provisioner::Provisioner;
pub use secrets::{VolumeSecrets, controller_secrets_have, provisioner_secret_is};
pub use sidecars::PROVISIONER as PROVISIONER_SIDECAR;
pub use snapshot_objects::{default_snapshot_class, snapshot_definitions};
pub use snapshots::{snapshot_failed, snapshot_found, snapshot_not_found, snapshot_status};
pub use sources::{RING, RING_OF_ONE};
pub use words::{
    AttachedTo, AttachedVolume, Attaching, ClaimFinalizers, Config, Created, CsiDriverSettings, DriverFacts, DriverPod,
    Effect, Event, Failure, FailureKind, Finding, Grown, Growth, Handles, Job, Modification, NodeGrowth, Outcome,
    PodContainer, Published, Request, Snapshotted, Source, Taking, Topology,
};
