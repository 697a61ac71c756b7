//! What the loop asks the drivers of a node.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use corten_client::BoxFuture;
use corten_kubelet::Secrets;
use corten_provisioner::{
    AttachedTo, AttachedVolume, Created, DriverFacts, Failure, FailureKind, Grown, Published, Request, Snapshotted,
    Taking,
};
use serde::{Deserialize, Serialize};

/// A driver with many volumes may take long to say of all whether they are well, or how much they leave.
pub(super) const LOOK_PATIENCE: Duration = Duration::from_secs(60);

/// What a driver said of a snapshot that it did not take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotRefusal {
    pub message: String,
    /// Nothing was made, and nothing is being made any more.
    pub is_final: bool,
}

/// Why a driver refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub message: String,
    /// There is no room for it.
    pub is_exhausted: bool,
    pub kind: FailureKind,
}

/// Why a driver did not change a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unchanged {
    pub message: String,
    pub kind: FailureKind,
}

/// A driver of the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeDriver {
    pub facts: DriverFacts,
    /// The node's name for the driver.
    pub node_id: String,
    /// How many of its volumes the node takes.
    pub limit: Option<i32>,
}

/// Asks the drivers of one node.
pub trait VolumeHands: Send + Sync + 'static {
    /// All drivers there are; the first call answers at once, later ones when one came or went.
    fn drivers(&self) -> BoxFuture<'_, Vec<NodeDriver>>;
    fn create(&self, request: Request, secrets: Secrets) -> BoxFuture<'_, Result<Created, Refusal>>;
    fn delete(&self, driver: String, handle: String, secrets: Secrets) -> BoxFuture<'_, Result<(), Refusal>>;
    fn expand(
        &self,
        driver: String,
        volume: AttachedVolume,
        bytes: u64,
        secrets: Secrets,
    ) -> BoxFuture<'_, Result<Grown, Refusal>>;
    /// What the node is to be told at staging and publishing.
    fn attach(
        &self,
        driver: String,
        volume: AttachedVolume,
        node_id: String,
        secrets: Secrets,
    ) -> BoxFuture<'_, Result<BTreeMap<String, String>, Refusal>>;
    fn detach(
        &self,
        driver: String,
        handle: String,
        node_id: String,
        secrets: Secrets,
    ) -> BoxFuture<'_, Result<(), Refusal>>;
    /// Of the built-in driver: those of others are asked where their volumes are ([`crate::VolumeGrowthHands`]).
    fn expand_on_node(&self, volume: AttachedVolume, bytes: u64) -> BoxFuture<'_, Result<(), Failure>>;
    fn create_snapshot(&self, taking: Taking, secrets: Secrets) -> BoxFuture<'_, Result<Snapshotted, SnapshotRefusal>>;
    fn delete_snapshot(&self, driver: String, handle: String, secrets: Secrets) -> BoxFuture<'_, Result<(), Refusal>>;
    /// How a snapshot is that was there before; `None`: the driver does not say of any.
    fn find_snapshot(
        &self,
        driver: String,
        handle: String,
        secrets: Secrets,
    ) -> BoxFuture<'_, Result<Option<Snapshotted>, Refusal>>;
    /// Of those of these volumes that the driver knows: why one is not well; `None`: it is.
    fn conditions(
        &self,
        driver: String,
        handles: BTreeSet<String>,
    ) -> BoxFuture<'_, Result<BTreeMap<String, Option<String>>, Refusal>>;
    /// Of these those that the driver says are so.
    fn attached(&self, driver: String, places: AttachedTo) -> BoxFuture<'_, Result<AttachedTo, Refusal>>;
    /// Has a volume be as its VolumeAttributesClass says.
    fn modify(
        &self,
        driver: String,
        handle: String,
        parameters: BTreeMap<String, String>,
        secrets: Secrets,
    ) -> BoxFuture<'_, Result<(), Unchanged>>;
    /// What is left, and the largest volume; `None`: the driver does not say.
    fn capacity(&self, of: Published) -> BoxFuture<'_, Option<(u64, Option<u64>)>>;
    /// The name of the driver that is built in, where the cluster was not given its class yet.
    fn built_in(&self) -> BoxFuture<'_, BuiltIn>;
    /// The cluster has the class: from now on it is its users'.
    fn class_is_made(&self) -> BoxFuture<'_, ()>;
    /// The cluster has the kinds of snapshots and their class, too.
    fn snapshots_are_made(&self) -> BoxFuture<'_, ()>;
}

/// The driver that is built in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    pub driver: String,
    pub has_class: bool,
    /// The cluster was given the kinds of snapshots.
    pub has_snapshots: bool,
}
