//! What the provisioner is told, and what it answers.

mod drivers;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    snapshots::{VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent},
    storage::v1::{StorageClass, VolumeAttachment, VolumeAttributesClass},
};
use corten_meta::{Key, ObjectReference, Quantity, Time};
use corten_reconcile::EventType;
use serde_json::Value;

use crate::secrets::VolumeSecrets;
pub use drivers::{AttachedTo, CsiDriverSettings, DriverFacts, DriverPod, PodContainer, Topology};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    pub node_name: String,
    /// Begins what volumes of others' drivers say of who made them: this process, and no other.
    pub identity: String,
}

/// Objects may be shared with the loops of other nodes.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    Claim(Arc<PersistentVolumeClaim>),
    ClaimGone(Key),
    Volume(Arc<PersistentVolume>),
    VolumeGone(String),
    Class(Arc<StorageClass>),
    ClassGone(String),
    AttributesClass(Arc<VolumeAttributesClass>),
    AttributesClassGone(String),
    Attachment(Arc<VolumeAttachment>),
    AttachmentGone(String),
    CsiDriver(String, CsiDriverSettings),
    CsiDriverGone(String),
    /// A node's labels, as far as they are known.
    Node(String, Topology),
    NodeGone(String),
    /// Every node has been told once. That and what follows comes where a driver of others has labels that say where a node is.
    NodesSynced,
    Pod(Key, DriverPod),
    PodGone(Key),
    /// Every Pod has been told once.
    PodsSynced,
    /// Every claim, volume, class (of volumes and of their attributes), attachment and CSIDriver has been told once.
    Synced,
    Snapshot(Arc<VolumeSnapshot>),
    SnapshotGone(Key),
    Content(Arc<VolumeSnapshotContent>),
    ContentGone(String),
    SnapshotClass(Arc<VolumeSnapshotClass>),
    SnapshotClassGone(String),
    /// Every snapshot, content and class of snapshots has been told once. Where there are no such kinds that never comes.
    SnapshotsSynced,
    /// The Leases that this node holds ([`crate::leases`]), whenever that has changed.
    Leads(BTreeSet<String>),
    /// All drivers of this node, at first and whenever one comes or goes.
    Drivers(Vec<DriverFacts>),
    Done(Outcome),
    /// A driver's answer to [`Effect::AskConditions`], where it gave one: why a volume is not well, by handle; `None`: it is.
    Conditions(String, Option<BTreeMap<String, Option<String>>>),
    /// A driver's answer to [`Effect::AskAttached`], where it gave one: those that are so.
    Attached(String, Option<AttachedTo>),
    /// [`Effect::PublishCapacity`] is carried out, whatever the driver said: the object's name.
    CapacityTold(String),
    /// What there is of this node from before it began: the names of the objects that say what is left, each with its driver.
    Capacities(BTreeMap<String, String>),
    /// The time of the last [`Effect::WakeAt`] has come.
    Tick,
}

impl Event {
    /// Is it told for the sake of drivers of others alone?
    pub fn is_of_pods_or_nodes(&self) -> bool {
        matches!(
            self,
            Self::Pod(..)
                | Self::PodGone(_)
                | Self::PodsSynced
                | Self::Node(..)
                | Self::NodeGone(_)
                | Self::NodesSynced
        )
    }
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
    /// Has the API tell how much is left of this class, as far as its driver says it. → [`Event::CapacityTold`], once.
    PublishCapacity(Published),
    /// What was told of a class goes: it, or its driver, is no more. No answer.
    WithdrawCapacity {
        name: String,
    },
    /// Has a driver say which of these volumes are attached to these nodes. → [`Event::Attached`], once.
    AskAttached {
        driver: String,
        places: AttachedTo,
    },
    /// Has a driver say of these volumes, by handle, whether they are well. → [`Event::Conditions`], once.
    AskConditions {
        driver: String,
        handles: BTreeSet<String>,
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
    /// The claim it begins with is held before.
    Provision {
        claim: Box<PersistentVolumeClaim>,
        class: Box<StorageClass>,
        request: Box<Request>,
        others: Handles,
        source: Option<ClaimFinalizers>,
    },
    /// Says that this node makes the claim's volume, where no other one was first.
    Select { claim: Key, version: String, node: String },
    /// Has the scheduler look for another node: takes the annotation of the selected one away, and names the one that has the source.
    Reschedule { claim: Key, version: String, source_node: Option<String> },
    /// Removes a volume, then the PersistentVolume and the finalizers that held it.
    Remove { volume: String, driver: String, handle: String, secret: Option<Key>, finalizers: Vec<String> },
    /// Takes a finalizer of a volume away that is to be kept, whatever becomes of its object, or that is no longer attached.
    LetGo { volume: String, finalizer: String },
    /// Marks the attachment and holds the volume, has the driver attach it, and says so.
    Attach(Box<Attaching>),
    /// Has the driver detach the volume, says so, and lets the attachment go.
    Detach(Box<Attaching>),
    /// Writes the first status, grows the volume, writes what [`Growth`] gives for how it ended.
    Expand(Box<Growth>),
    /// The node's part alone, of the built-in driver.
    ExpandOnNode(Box<NodeGrowth>),
    /// Says that it is begun, has the driver change the volume, and writes what [`Modification`] gives for how it ended.
    Modify(Box<Modification>),
    /// Says in the content that it is begun, takes the snapshot, and writes what came of it ([`crate::snapshot_status`],
    /// [`crate::snapshot_failed`]).
    TakeSnapshot(Taking),
    /// Removes a snapshot, where there is one, then the finalizer that held its content.
    RemoveSnapshot { content: String, driver: String, handle: Option<String>, secret: Option<Key> },
    /// Asks how a snapshot is that was there before its content, and writes what came of it ([`crate::snapshot_found`],
    /// [`crate::snapshot_not_found`]).
    FindSnapshot(Finding),
    /// Writes this to the claim's status: a growth that was called off.
    WriteStatus { claim: Key, status: Value },
    /// Looks whether anybody holds the Lease ([`crate::leases::is_held`]).
    LookAtLease { claim: Key, lease: String, now: Time },
    /// Lets a claim go that clones were made of.
    WriteFinalizers(ClaimFinalizers),
}

impl Job {
    /// The driver that is asked; `None`: none is.
    pub fn driver(&self) -> Option<&str> {
        match self {
            Self::Provision { request, .. } => Some(&request.driver),
            Self::Remove { driver, .. } | Self::RemoveSnapshot { driver, .. } => Some(driver),
            Self::Attach(it) | Self::Detach(it) => Some(&it.driver),
            Self::Expand(it) => Some(&it.driver),
            Self::ExpandOnNode(it) => Some(&it.driver),
            Self::Modify(it) => Some(&it.driver),
            Self::TakeSnapshot(it) => Some(&it.driver),
            Self::FindSnapshot(it) => Some(&it.driver),
            Self::Select { .. }
            | Self::Reschedule { .. }
            | Self::LetGo { .. }
            | Self::WriteStatus { .. }
            | Self::LookAtLease { .. }
            | Self::WriteFinalizers(_) => None,
        }
    }
}

/// The finalizers that a claim is to have, where it is still as it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimFinalizers {
    pub claim: Key,
    pub version: String,
    pub finalizers: Vec<String>,
}

/// The volumes of one driver that are there already: a handle, and whose it is.
pub type Handles = BTreeMap<String, String>;

/// An attachment that is to be made or taken away.
#[derive(Clone, Debug, PartialEq)]
pub struct Attaching {
    pub attachment: String,
    /// The attachment as it was seen.
    pub version: String,
    /// Those it is to have.
    pub finalizers: Vec<String>,
    pub driver: String,
    pub node: String,
    /// The driver's name for the node, as it was written down; `None`: its CSINode says it.
    pub node_id: Option<String>,
    /// The driver is to be asked; else it has nothing to do.
    pub is_asked: bool,
    /// Or why there is none to attach.
    pub volume: Result<AttachedVolume, String>,
    pub secret: Option<Key>,
    pub now: Time,
}

/// What a driver is told of a volume that it attaches or grows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttachedVolume {
    /// The PersistentVolume.
    pub volume: String,
    /// Its version and the finalizers it is to have, where it does not have them yet.
    pub hold: Option<(String, Vec<String>)>,
    pub handle: String,
    pub fs_type: String,
    pub is_block: bool,
    pub access_mode: String,
    pub mount_options: Vec<String>,
    pub context: BTreeMap<String, String>,
    pub read_only: bool,
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
    /// Nobody is to write to it, and the driver attaches it like that.
    pub read_only: bool,
    /// Who makes it, as its PersistentVolume says and the driver is told at each use; `None`: it does not say.
    pub identity: Option<String>,
    pub mount_options: Vec<String>,
    pub parameters: BTreeMap<String, String>,
    pub secrets: VolumeSecrets,
    /// Where it may be, the best first; empty: anywhere.
    pub topologies: Vec<Topology>,
    /// What it holds at first.
    pub source: Option<Source>,
    /// The claim's VolumeAttributesClass, and what it says of a volume.
    pub attributes_class: Option<String>,
    pub mutable_parameters: BTreeMap<String, String>,
}

/// What a volume begins with, by the driver's name for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Snapshot(String),
    Volume(String),
}

/// A snapshot that is to be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taking {
    pub content: String,
    pub driver: String,
    /// `snapshot-UID`: the same name gives the same snapshot.
    pub name: String,
    /// The volume's handle.
    pub volume: String,
    pub parameters: BTreeMap<String, String>,
    pub secret: Option<Key>,
    pub asked_at: Time,
}

/// A snapshot that was there before its content, and that its driver is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub content: String,
    pub driver: String,
    pub handle: String,
    pub secret: Option<Key>,
    pub asked_at: Time,
}

/// What a driver keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshotted {
    pub handle: String,
    /// How large a volume made of it must be at least; 0: the driver does not say.
    pub bytes: u64,
    /// Nanoseconds since 1970.
    pub created_at: i64,
    /// A volume can be made of it; else it is asked again.
    pub is_ready: bool,
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
    /// Why it is not what was asked for: it is removed again.
    pub refused: Option<String>,
}

/// A volume that is to be larger, and what is written to the API at each step.
#[derive(Clone, Debug, PartialEq)]
pub struct Growth {
    pub claim: Key,
    pub volume: String,
    pub driver: String,
    /// What the driver is told of it.
    pub told: AttachedVolume,
    pub bytes: u64,
    /// The same as it is written.
    pub size: String,
    /// How large its object says it is: that is never less afterwards.
    pub volume_bytes: u64,
    /// The driver is to be asked; else it has nothing to do.
    pub is_asked: bool,
    pub secret: Option<Key>,
    /// The claim's status, before the driver is asked.
    pub begun: Value,
    /// After it did its part, where the node has one to do.
    pub waits_for_node: Value,
    /// After all is done, but for how large it is ([`Growth::ended`]).
    pub done: Value,
    /// After it refused: `{message}` stands for why.
    pub failed: Value,
    /// Written after the driver refused for good (an infeasible request).
    pub infeasible: Value,
}

/// What a driver says of a volume that it has grown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Grown {
    /// How large it is; 0: the driver does not say.
    pub bytes: u64,
    /// The node's part is to be done yet.
    pub needs_node: bool,
}

impl Growth {
    /// How large the volume's object is to say it is, where that is more than before; and the claim's status.
    pub fn ended(&self, grown: Grown) -> (Option<String>, Value) {
        let bytes = grown.bytes.max(self.bytes).max(self.volume_bytes);
        let size = match bytes == self.bytes {
            true => self.size.clone(),
            false => Quantity::bytes(i64::try_from(bytes).unwrap_or(i64::MAX)).to_string(),
        };
        let mut status = if grown.needs_node { self.waits_for_node.clone() } else { self.done.clone() };
        if !grown.needs_node {
            status["capacity"]["storage"] = size.as_str().into();
        }
        ((bytes > self.volume_bytes).then_some(size), status)
    }
}

/// The node's part in growing a volume, and what is written to the claim's status at each step: `None`, nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeGrowth {
    pub claim: Key,
    pub volume: String,
    pub driver: String,
    pub told: AttachedVolume,
    pub bytes: u64,
    pub secret: Option<Key>,
    /// Written before the driver is asked.
    pub begun: Option<Value>,
    /// Written after the driver succeeded.
    pub done: Option<Value>,
    /// Written after the driver failed with nothing left under way; the driver's message replaces [`crate::MESSAGE`].
    pub failed: Option<Value>,
    /// Written after the driver refused for good (an infeasible request).
    pub infeasible: Option<Value>,
}

/// A volume that is to be as another VolumeAttributesClass says, and what is written to the claim's status at each step.
#[derive(Clone, Debug, PartialEq)]
pub struct Modification {
    pub claim: Key,
    pub volume: String,
    pub driver: String,
    pub handle: String,
    /// The VolumeAttributesClass.
    pub class: String,
    pub parameters: BTreeMap<String, String>,
    pub secret: Option<Key>,
    /// Written before the driver is asked.
    pub begun: Value,
    /// Written after the driver succeeded and the PersistentVolume says so.
    pub done: Value,
    /// Written after the driver failed; its message replaces [`crate::MESSAGE`].
    pub failed: Value,
    /// Written after the driver refused for good (an infeasible request).
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
    /// With the claim's version as it was seen then.
    Selected {
        claim: Key,
        version: String,
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
    /// Or detached.
    Attached {
        attachment: String,
        result: Result<(), Failure>,
    },
    /// `Ok(true)`: the node's part is to be done yet.
    Expanded {
        claim: Key,
        volume: String,
        driver: String,
        /// How many it was to have.
        bytes: u64,
        result: Result<bool, Failure>,
    },
    ExpandedOnNode {
        claim: Key,
        volume: String,
        driver: String,
        result: Result<(), Failure>,
    },
    Modified {
        claim: Key,
        class: String,
        driver: String,
        result: Result<(), Failure>,
    },
    /// `Ok(false)`: the driver has it, and it is not ready yet.
    SnapshotTaken {
        taking: Taking,
        result: Result<bool, Failure>,
    },
    SnapshotRemoved {
        content: String,
        driver: String,
        result: Result<(), Failure>,
    },
    /// `Ok(false)`: it is there, and not ready yet.
    SnapshotFound {
        finding: Finding,
        result: Result<bool, Failure>,
    },
    StatusWritten {
        claim: Key,
        result: Result<(), Failure>,
    },
    /// `Ok(true)`: somebody holds it.
    LeaseSeen {
        claim: Key,
        lease: String,
        result: Result<bool, Failure>,
    },
    FinalizersWritten {
        claim: Key,
        result: Result<(), Failure>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    /// There is no room for it here.
    pub is_exhausted: bool,
    /// Of the node's part in growing a volume: the driver does not do it while a Pod has the volume.
    pub is_in_use: bool,
    pub kind: FailureKind,
}

/// What a failure says of the operation: may it be done yet?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailureKind {
    /// It may be done yet, or be under way.
    #[default]
    Open,
    /// The driver was not asked: what was known before still holds.
    Unasked,
    /// It was not done.
    Refused,
    /// It was not done, and never will be.
    Infeasible,
}
