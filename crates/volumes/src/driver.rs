//! What a driver of volumes can do, whether it is built in or a program of somebody else's. Words and codes are those of the
//! Container Storage Interface; each call may be made again, and then has the same end.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
};

use futures_util::future::BoxFuture;
use serde::{Deserialize, Deserializer, Serialize};

/// gRPC's words for what went wrong, those that a storage driver uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Code {
    InvalidArgument,
    DeadlineExceeded,
    NotFound,
    AlreadyExists,
    PermissionDenied,
    ResourceExhausted,
    FailedPrecondition,
    Aborted,
    OutOfRange,
    Unimplemented,
    Internal,
    Unavailable,
    Canceled,
    Unknown,
}

/// Of what a driver says.
pub(crate) const MESSAGE_CHARS_MAX: usize = 2048;

fn bounded<'de, D: Deserializer<'de>>(message: D) -> Result<String, D::Error> {
    Ok(String::deserialize(message)?.chars().take(MESSAGE_CHARS_MAX).collect())
}

/// Why a driver did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("rpc error: code = {code:?} desc = {message}")]
pub struct Fault {
    pub code: Code,
    #[serde(deserialize_with = "bounded")]
    pub message: String,
}

impl Fault {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub fn internal(message: impl fmt::Display) -> Self {
        Self::new(Code::Internal, message.to_string())
    }

    /// Was nothing done, and is nothing under way? As `IsFinalError` of upstream's sidecars.
    pub fn is_final(&self) -> bool {
        let open = [Code::Canceled, Code::DeadlineExceeded, Code::Unavailable, Code::ResourceExhausted, Code::Aborted];
        !open.contains(&self.code)
    }

    /// Will the same growth never succeed, as far as it says? As the resizer's `IsResizeInfeasibleError`.
    pub fn is_infeasible(&self) -> bool {
        matches!(self.code, Code::InvalidArgument | Code::OutOfRange | Code::NotFound)
    }
}

/// Adds what was being done, where the system refused.
pub fn with_faults_named<T, E: fmt::Display>(result: Result<T, E>, doing: impl fmt::Display) -> Result<T, Fault> {
    result.map_err(|it| Fault::internal(format!("{doing}: {it}")))
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateVolume {
    /// The same name gives the same volume.
    pub name: String,
    /// At least so many bytes.
    pub required_bytes: u64,
    pub fs_type: String,
    pub is_block: bool,
    /// `ReadWriteOnce` and so on.
    pub access_modes: Vec<String>,
    pub mount_options: Vec<String>,
    /// The class's parameters, without those of the provisioner itself.
    pub parameters: BTreeMap<String, String>,
    pub secrets: BTreeMap<String, String>,
    /// Where it may be, the best first: labels of nodes of the driver's keys. Empty: anywhere.
    pub topologies: Vec<BTreeMap<String, String>>,
    /// What it holds at first; `None`: nothing.
    pub source: Option<VolumeSource>,
    /// Of its VolumeAttributesClass: what may be changed later ([`Driver::modify`]).
    pub mutable_parameters: BTreeMap<String, String>,
}

/// What a new volume begins with, by its handle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VolumeSource {
    Snapshot(String),
    Volume(String),
}

/// What a driver is asked to keep of a volume as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateSnapshot {
    /// The same name gives the same snapshot.
    pub name: String,
    /// Of this volume.
    pub source: String,
    /// The snapshot class's parameters, without those of the snapshotter itself.
    pub parameters: BTreeMap<String, String>,
    pub secrets: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub handle: String,
    /// The volume it was taken of.
    pub source: String,
    /// How large a volume made of it must be at least; 0: the driver does not say.
    pub bytes: u64,
    /// Nanoseconds since 1970.
    pub created_at: i64,
    /// A volume can be made of it; else it is asked again.
    pub is_ready: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreatedVolume {
    pub handle: String,
    /// 0: the driver does not say.
    pub bytes: u64,
    /// Told to the driver again at each use.
    pub context: BTreeMap<String, String>,
    /// The labels of nodes that reach it; empty: all do.
    pub topology: Vec<BTreeMap<String, String>>,
    pub fs_type: String,
    /// Why it is not what was asked for: who asked removes it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Fault>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expanded {
    pub bytes: u64,
    /// The node has its part still to do ([`Driver::node_expand`]).
    pub node_expansion_required: bool,
}

/// The node's part of growing a volume.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct NodeExpand {
    pub volume: StageVolume,
    /// Where it is staged or published.
    pub path: PathBuf,
    pub staging: Option<PathBuf>,
    pub bytes: u64,
}

/// How much a driver could still give.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capacity {
    pub available_bytes: u64,
    /// The largest volume.
    pub maximum_bytes: Option<u64>,
}

/// What a driver is told of a volume that it stages, publishes, attaches or grows.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageVolume {
    pub handle: String,
    pub fs_type: String,
    pub is_block: bool,
    pub access_mode: String,
    pub mount_options: Vec<String>,
    pub context: BTreeMap<String, String>,
    pub publish_context: BTreeMap<String, String>,
    pub secrets: BTreeMap<String, String>,
    /// The driver is to give the files to this group, where it can ([`Facts::takes_group`]).
    pub mount_group: Option<u32>,
}

impl StageVolume {
    /// For a driver that need not be told more.
    pub fn of(handle: impl Into<String>) -> Self {
        Self { handle: handle.into(), ..Self::default() }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeStats {
    pub capacity_bytes: u64,
    pub used_bytes: u64,
    pub available_bytes: u64,
    pub inodes: u64,
    pub inodes_used: u64,
    pub inodes_free: u64,
    /// Why it is not well; `None`: it is, or the driver does not say.
    pub abnormal: Option<String>,
}

/// What a driver is and can do on this node, as it says: what of that a sidecar does for it is not known here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Makes and removes volumes.
    pub provisions: bool,
    /// Grows volumes.
    pub expands: bool,
    /// The node has a part in growing a volume.
    pub node_expands: bool,
    pub tells_capacity: bool,
    /// Makes volumes known to nodes before they are staged.
    pub attaches: bool,
    /// Attaches volumes that are read only as such.
    pub attaches_read_only: bool,
    /// Says where its volumes are attached ([`Driver::attached`]).
    pub tells_attached: bool,
    /// Keeps snapshots.
    pub snapshots: bool,
    /// Makes volumes with what others hold.
    pub clones: bool,
    /// Changes parameters of volumes that are there.
    pub modifies: bool,
    /// Gives the files of a volume to a group itself.
    pub takes_group: bool,
    /// Says of volumes that Pods have here whether they are well.
    pub tells_health: bool,
    /// Says of all volumes whether they are well ([`Driver::conditions`]).
    pub tells_conditions: bool,
    /// Not every node reaches each of its volumes.
    pub has_topology: bool,
    /// Where a program of somebody else's listens, as its Pods name that; `None`: it is built in.
    pub socket: Option<PathBuf>,
    /// This node's name for the driver.
    pub node_id: String,
    /// This node's labels of the driver's own keys.
    pub topology: BTreeMap<String, String>,
    /// How many of its volumes this node takes.
    pub limit: Option<i32>,
}

impl Facts {
    /// Is it Corten's own? Others are programs of somebody else's.
    #[must_use]
    pub fn is_built_in(&self) -> bool {
        self.socket.is_none()
    }
}

/// Handles of volumes, each with the driver's name for a node.
pub type AttachedTo = BTreeSet<(String, String)>;

type Done<'a, T> = BoxFuture<'a, Result<T, Fault>>;

/// One driver on this node.
pub trait Driver: Send + Sync + 'static {
    fn name(&self) -> &str;
    fn facts(&self) -> Facts;

    /// Is a volume mounted once for the node before it is for its Pods?
    fn stages(&self) -> bool;

    fn create(&self, volume: CreateVolume) -> Done<'_, CreatedVolume>;
    /// Success where there is none.
    fn delete(&self, handle: String, secrets: BTreeMap<String, String>) -> Done<'_, ()>;
    fn expand(&self, volume: StageVolume, bytes: u64) -> Done<'_, Expanded>;
    /// `None`: the driver does not tell.
    fn capacity(&self, parameters: BTreeMap<String, String>) -> Done<'_, Option<Capacity>>;

    fn stage(&self, volume: StageVolume, staging: PathBuf) -> Done<'_, ()>;
    /// Success where nothing is staged.
    fn unstage(&self, handle: String, staging: PathBuf) -> Done<'_, ()>;
    /// `target` is made by the driver; the folder it lies in is there.
    fn publish(&self, volume: StageVolume, staging: Option<PathBuf>, target: PathBuf, read_only: bool) -> Done<'_, ()>;
    /// Success where nothing is published; `target` is gone afterwards.
    fn unpublish(&self, handle: String, target: PathBuf) -> Done<'_, ()>;
    /// The node's part of growing a volume that is staged or published at `path`.
    fn node_expand(&self, volume: NodeExpand) -> Done<'_, u64>;
    fn stats(&self, handle: String, path: PathBuf) -> Done<'_, VolumeStats>;

    /// Has it say again how many volumes of it this node takes. True: its facts have changed.
    fn ask_limit(&self) -> Done<'_, bool> {
        Box::pin(async { Ok(false) })
    }

    /// Makes a volume known to a node, by the driver's name for it; what is answered is told at each stage and publish.
    fn attach(&self, _volume: StageVolume, _node_id: String, _read_only: bool) -> Done<'_, BTreeMap<String, String>> {
        not_offered("attach volumes")
    }
    /// Success where it is not attached.
    fn detach(&self, _handle: String, _node_id: String, _secrets: BTreeMap<String, String>) -> Done<'_, ()> {
        not_offered("attach volumes")
    }
    /// Also asked again for how far it is.
    fn create_snapshot(&self, _snapshot: CreateSnapshot) -> Done<'_, Snapshot> {
        not_offered("keep snapshots")
    }
    /// Success where there is none.
    fn delete_snapshot(&self, _handle: String, _secrets: BTreeMap<String, String>) -> Done<'_, ()> {
        not_offered("keep snapshots")
    }
    /// A snapshot that was there before; `None`: the driver does not say which there are.
    fn find_snapshot(&self, _handle: String, _secrets: BTreeMap<String, String>) -> Done<'_, Option<Snapshot>> {
        not_offered("keep snapshots")
    }
    /// Of those of these volumes that it knows: why one is not well; `None`: it is.
    fn conditions(&self, _handles: BTreeSet<String>) -> Done<'_, BTreeMap<String, Option<String>>> {
        not_offered("say whether volumes are well")
    }
    /// Of these those that are so.
    fn attached(&self, _places: AttachedTo) -> Done<'_, AttachedTo> {
        not_offered("say where volumes are attached")
    }
    /// Changes what may be changed of a volume that is there.
    fn modify(
        &self,
        _handle: String,
        _parameters: BTreeMap<String, String>,
        _secrets: BTreeMap<String, String>,
    ) -> Done<'_, ()> {
        not_offered("change volumes")
    }
    /// Does what the control plane asks over the node's own API, in the words of [`crate::channel`].
    fn answer(&self, _message: Vec<u8>) -> Done<'_, Vec<u8>> {
        not_offered("answer other machines")
    }
}

fn not_offered<T: Send + 'static>(what: &str) -> Done<'static, T> {
    let fault = Fault::new(Code::Unimplemented, format!("the driver does not {what}"));
    Box::pin(async move { Err(fault) })
}
