//! What the provisioner is told, and what it answers.

use std::collections::BTreeMap;

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    storage::v1::StorageClass,
};
use corten_meta::{Key, ObjectReference, Time};
use corten_reconcile::EventType;
use serde_json::Value;

/// Labels of nodes.
pub type Topology = BTreeMap<String, String>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub node_name: String,
}

/// What a driver of this node can do, of what concerns volumes as such.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverFacts {
    pub name: String,
    /// Makes and removes volumes, and nobody else does it for this driver.
    pub provisions: bool,
    /// Grows volumes, and nobody else does it for this driver.
    pub expands: bool,
    /// The file system on a volume is grown by the node after it.
    pub node_expands: bool,
    pub tells_capacity: bool,
    /// This node's labels of the driver's own keys.
    pub topology: Topology,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Claim(Box<PersistentVolumeClaim>),
    ClaimGone(Key),
    Volume(Box<PersistentVolume>),
    VolumeGone(String),
    Class(Box<StorageClass>),
    ClassGone(String),
    /// Every claim, volume and class has been told once.
    Synced,
    /// All drivers of this node, at first and whenever one comes or goes.
    Drivers(Vec<DriverFacts>),
    Done(Outcome),
    /// The time of the last [`Effect::WakeAt`] has come.
    Tick,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// → [`Event::Done`], once.
    Do(Box<Job>),
    /// Tells users. No answer.
    Event {
        driver: String,
        about: ObjectReference,
        event_type: EventType,
        reason: &'static str,
        message: String,
    },
    /// Has the API tell how much is left of this class. Best effort; no answer.
    PublishCapacity(Published),
    /// This class is no more: what was told of it goes.
    WithdrawCapacity {
        name: String,
    },
    WakeAt(Time),
}

/// How much of what is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Published {
    pub driver: String,
    pub class: String,
    pub parameters: BTreeMap<String, String>,
    pub topology: Topology,
}

/// One thing done with a driver and written to the API: the hand does it in this order and chooses nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Job {
    /// Makes a volume, then the PersistentVolume ([`crate::volume_object`]); one that is there already is taken.
    Provision { claim: Box<PersistentVolumeClaim>, class: Box<StorageClass>, request: Request },
    /// Has the scheduler look for another node: takes the annotation of the selected one away.
    Reschedule { claim: Key, version: String },
    /// Removes a volume, then the PersistentVolume and the finalizer that held it.
    Remove { volume: String, driver: String, handle: String },
    /// Takes the finalizer of a volume away that is to be kept, whatever becomes of its object.
    LetGo { volume: String },
    /// Writes the first status, grows the volume, writes what [`Growth`] gives for how it ended.
    Expand(Growth),
    /// The node's part alone.
    ExpandOnNode(Growth),
    /// Writes this to the claim's status: a growth that was called off.
    WriteStatus { claim: Key, status: Value },
}

/// What a driver is asked to make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    pub driver: String,
    /// `pvc-UID`, of volume and PersistentVolume.
    pub name: String,
    pub bytes: u64,
    pub fs_type: String,
    pub is_block: bool,
    pub access_modes: Vec<String>,
    pub mount_options: Vec<String>,
    pub parameters: BTreeMap<String, String>,
    pub topology: Topology,
}

/// What a driver made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Created {
    pub handle: String,
    /// 0: the driver does not say.
    pub bytes: u64,
    pub context: BTreeMap<String, String>,
    /// The labels of nodes that reach it; empty: all do.
    pub topology: Vec<Topology>,
    pub fs_type: String,
}

/// A volume that is to be larger, and what is written to the API at each step.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    pub claim: Key,
    pub volume: String,
    pub driver: String,
    pub handle: String,
    pub bytes: u64,
    /// The claim's status, before the driver is asked.
    pub begun: Value,
    /// After it did its part, where the node has one to do.
    pub waits_for_node: Value,
    /// After all is done.
    pub done: Value,
    /// After it refused: `{message}` stands for why.
    pub failed: Value,
    /// After it refused what it will always refuse.
    pub infeasible: Value,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Provisioned {
        claim: Key,
        volume: String,
        driver: String,
        result: Result<(), Failure>,
    },
    Rescheduled {
        claim: Key,
        result: Result<(), Failure>,
    },
    Removed {
        volume: String,
        driver: String,
        result: Result<(), Failure>,
    },
    LetGo {
        volume: String,
        result: Result<(), Failure>,
    },
    /// `Ok(true)`: the node's part is to be done yet.
    Expanded {
        claim: Key,
        volume: String,
        driver: String,
        result: Result<bool, Failure>,
    },
    ExpandedOnNode {
        claim: Key,
        volume: String,
        driver: String,
        result: Result<(), Failure>,
    },
    StatusWritten {
        claim: Key,
        result: Result<(), Failure>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    /// There is no room for it here.
    pub is_exhausted: bool,
}
