//! What the machine is told to measure, and what it answers.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{DeviceNews, Event, Failure, ManagerCounts, ManagerStates, PodRef, Signal, TerminationNote};

/// Something done to the node as a whole. Each is answered by the event it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeEffect {
    /// → [`NodeNews::Signals`], at once
    ReadSignals,
    /// What each pod uses; `disks`: of the disks, too. → [`NodeNews::PodsMeasured`]
    MeasurePods { disks: bool },
    /// → [`NodeNews::Images`]
    ListImages,
    /// Images by their ids. → [`NodeNews::ImagesRemoved`]
    RemoveImages { ids: Vec<String> },
    /// A pod was evicted; for the metrics. No answer.
    CountEviction { signal: &'static str },
    /// A pod left for a critical one, which lacked this first; for the metrics. No answer.
    CountPreemption { resource: &'static str },
    /// A pod runs, so long after this node first saw it; for the metrics. No answer.
    CountPodStart { took: Duration },
    /// Containers, by their ids, that are about to be stopped for the machine's end: the next boot must know of them.
    /// → [`NodeNews::StopsNoted`]
    NoteStops { containers: Vec<String> },
    /// What the managers have given: the next run of the kubelet must know of it. → [`NodeNews::ManagerStatesNoted`]
    NoteManagerStates(ManagerStates),
    /// What the managers have been asked and have given; for the metrics. No answer.
    CountManagers(ManagerCounts),
    /// How far the termination of a deleted pod is: the next run of the kubelet goes on there. No answer.
    NoteTermination { uid: String, note: TerminationNote },
    /// The runtime does not end a pod: all that runs in its cgroup is killed, and the shims of its sandboxes. No answer; the
    /// runtime tells what became of it.
    EndByForce { pod: PodRef, sandboxes: Vec<String> },
    /// What this pod was given by device plugins is given back. No answer.
    ReleaseDevices { uid: String },
    /// A CSI driver is to say again how many of its volumes the node takes: one found no place. No answer.
    AskVolumeLimit { driver: String },
    /// All pods have ended that were to end before the machine. No answer.
    ReadyToShutDown,
}

/// What is left of something, and how much there is of it at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    pub available: i64,
    pub capacity: i64,
}

/// What is left of everything that can run out. What could not be read is not there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    pub amounts: BTreeMap<Signal, Amount>,
    /// Images and containers' layers lie on another file system than pods' folders.
    pub has_image_fs: bool,
}

/// What something takes of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUse {
    pub bytes: i64,
    pub inodes: i64,
}

impl DiskUse {
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { bytes: self.bytes.saturating_add(other.bytes), inodes: self.inodes.saturating_add(other.inodes) }
    }
}

/// What one pod uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodUse {
    pub uid: String,
    /// Its working set.
    pub memory_bytes: i64,
    pub processes: i64,
    pub containers: Vec<ContainerUse>,
    pub volumes: Vec<VolumeUse>,
    /// What belongs to neither.
    pub other: DiskUse,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainerUse {
    pub name: String,
    pub memory_bytes: i64,
    /// `None` where the runtime has not measured it yet.
    pub rootfs: Option<DiskUse>,
    pub logs: DiskUse,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeUse {
    pub name: String,
    pub taken: DiskUse,
    /// It lies on the disk, and goes with the pod.
    pub is_ephemeral: bool,
}

/// An image on the machine, as far as letting go of it is concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalImage {
    pub id: String,
    pub size_bytes: i64,
    /// The node itself needs it.
    pub is_pinned: bool,
    /// Some container is made of it, dead ones too.
    pub is_used: bool,
}

/// What the machine tells of itself, asked or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeNews {
    /// What is left: every ten seconds, and when it was asked for.
    Signals(Signals),
    PodsMeasured(Result<Vec<PodUse>, Failure>),
    Images(Result<Vec<LocalImage>, Failure>),
    /// How [`NodeEffect::RemoveImages`] ended.
    ImagesRemoved {
        removed: Vec<String>,
        failures: Vec<String>,
    },
    /// Pods of which there are folders or cgroups: now and then. One that only its uid is known of has no name.
    Remains(Vec<PodRef>),
    /// The machine will end; or will not, after all.
    Shutdown {
        is_imminent: bool,
    },
    /// What device plugins have, and what was given: first of all, and when it changes.
    Devices(Box<DeviceNews>),
    /// Volumes that no Pod has and that are still staged, as `status.volumesInUse` names them: whenever that has changed.
    VolumesLeft(BTreeSet<String>),
    /// [`NodeEffect::NoteManagerStates`] is done, as far as it can be.
    ManagerStatesNoted,
    /// [`NodeEffect::NoteStops`] is done, as far as it can be.
    StopsNoted,
}

impl NodeEffect {
    /// What is told where it could not be carried out at all.
    pub fn failed(&self, message: &str) -> Option<Event> {
        let news = match self {
            Self::ReadSignals
            | Self::CountEviction { .. }
            | Self::CountPreemption { .. }
            | Self::CountPodStart { .. }
            | Self::CountManagers(_)
            | Self::ReadyToShutDown
            | Self::NoteTermination { .. }
            | Self::AskVolumeLimit { .. }
            | Self::ReleaseDevices { .. }
            | Self::EndByForce { .. } => return None,
            Self::NoteStops { .. } => NodeNews::StopsNoted,
            Self::NoteManagerStates(_) => NodeNews::ManagerStatesNoted,
            Self::MeasurePods { .. } => NodeNews::PodsMeasured(Err(Failure::new(message))),
            Self::ListImages => NodeNews::Images(Err(Failure::new(message))),
            Self::RemoveImages { .. } => {
                NodeNews::ImagesRemoved { removed: Vec::new(), failures: vec![message.into()] }
            }
        };
        Some(Event::OfNode(news))
    }

    /// After this time the driver gives up and tells what [`NodeEffect::failed`] says.
    pub fn deadline(&self) -> Duration {
        match self {
            Self::RemoveImages { .. } => Duration::from_secs(600),
            _ => Duration::from_secs(60),
        }
    }
}
