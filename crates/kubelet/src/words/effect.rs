//! What the kubelet can want done: on its machine ([`HostEffect`]), at the API server ([`ApiEffect`]), or in its books.
//!
//! Every host effect is answered by exactly one [`crate::Outcome`]. The mind never has two effects in flight that
//! need an order between them, so hands may run all of them at once.

use std::{fmt, time::Duration};

use corten_api::core::v1::Pod;
use corten_meta::{Key, ObjectReference, Time};
use corten_reconcile::{Decision, EventType};
use serde_json::Value;

use crate::words::{
    certificate::{CertificatePlace, CertificateWish},
    container::{Action, ContainerSpec, Credential, Hook, MemoryCheck, ProbeKind, Qos, ResizeStep, SandboxSpec},
    device::DeviceWish,
    device_claim::{ClaimName, ReservedClaim},
    event::{Event, Failure, Outcome, StartFailure, StartStage},
    measure::NodeEffect,
    observed::ProbeVerdict,
    persistent::VolumeName,
    token::TokenWish,
    volume::{Volume, VolumeGroup},
};

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// For the host; the answer comes back as [`Event::Done`].
    Host(HostEffect),
    /// For the host, about the node as a whole; the answer comes back as [`Event::OfNode`].
    Node(NodeEffect),
    /// For the API server.
    Api(ApiEffect),
    /// What is now known of one pod, for `corten why`.
    Record { pod: Key, decision: Box<Decision> },
    /// Forget what was recorded: the pod is gone.
    Forget { pod: Key },
    /// Step again with [`Event::Tick`] at this time; replaces any earlier wish.
    WakeAt(Time),
}

/// Names one pod for good: a pod of the same name made later has another uid.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRef {
    pub key: Key,
    pub uid: String,
}

/// One thing done to the machine. A hand does it as said and chooses nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum HostEffect {
    /// Makes the pod's folder hold exactly these volumes' content; also refreshes content that changed (atomically,
    /// for [`VolumeSource::Files`]). Idempotent. → [`Outcome::Volumes`]
    PrepareVolumes { pod: PodRef, volumes: Vec<Volume>, group: Option<VolumeGroup> },
    /// CRI RunPodSandbox, then PodSandboxStatus for the addresses. → [`Outcome::Sandbox`]
    RunSandbox(Box<SandboxSpec>),
    /// CRI StopPodSandbox: its network goes, the dead containers and their logs stay. Already gone is success.
    /// → [`Outcome::SandboxStopped`]
    StopSandbox { pod: PodRef, id: String },
    /// CRI StopPodSandbox, then RemovePodSandbox. Already gone is success. → [`Outcome::SandboxRemoved`]
    RemoveSandbox { pod: PodRef, id: String },
    /// CRI ImageStatus. → [`Outcome::Image`]
    InspectImage { pod: PodRef, container: String, image: String },
    /// CRI PullImage with each of `credentials` in turn (none: anonymously), then ImageStatus. → [`Outcome::Pulled`]
    PullImage { pod: PodRef, container: String, image: String, credentials: Vec<Credential> },
    /// Asks the plugin of a resource for devices, of which it may choose others where it has preferences, and writes down what
    /// it gives. → [`Outcome::Devices`]
    AllocateDevices { pod: PodRef, wish: DeviceWish },
    /// Has the drivers of these claims prepare their devices for the pod; done before, it is done again.
    /// → [`Outcome::Prepared`]
    PrepareDevices { pod: PodRef, claims: Vec<ReservedClaim> },
    /// What an earlier run of the kubelet had prepared for a pod that runs: its drivers are not asked.
    /// → [`Outcome::Recalled`]
    RecallDevices { pod: PodRef },
    /// CRI CreateContainer, StartContainer, ContainerStatus. → [`Outcome::Container`]
    StartContainer(Box<ContainerSpec>),
    /// CRI StopContainer: `signal`, or the image's stop signal, then after the time SIGKILL. Already gone is success. →
    /// [`Outcome::Stopped`]
    StopContainer { pod: PodRef, container: String, id: String, timeout_seconds: i64, signal: Option<String> },
    /// CRI RemoveContainer, and its log files. Already gone is success. → [`Outcome::Removed`]
    RemoveContainer { pod: PodRef, container: String, id: String, attempt: u32 },
    /// One attempt of one probe. → [`Outcome::Probed`]
    Probe { pod: PodRef, container: String, id: String, probe: ProbeKind, action: Action, timeout_seconds: u32 },
    /// A lifecycle hook. → [`Outcome::Hooked`]
    RunHook { pod: PodRef, container: String, id: String, hook: Hook, action: Action, timeout_seconds: u32 },
    /// Refused where the memory in use is not below what a check says; else the steps, one after the other: CRI
    /// UpdateContainerResources, or the pod's cgroup. → [`Outcome::Resized`]
    Resize { pod: PodRef, qos: Qos, steps: Vec<ResizeStep>, checks: Vec<MemoryCheck> },
    /// CRI UpdateContainerResources of nothing but the CPUs it may run on, as the kernel lists them. → [`Outcome::Pinned`]
    PinContainer { pod: PodRef, container: String, id: String, cpus: String },
    /// What these files of the pod's emptyDirs hold, volume and path beneath it. → [`Outcome::FilesRead`]
    ReadFiles { pod: PodRef, container: String, files: Vec<EnvFile> },
    /// The last lines a container wrote, for the journal of a crash loop. → [`Outcome::LogTail`]
    TailLog { pod: PodRef, container: String, attempt: u32, lines: u32 },
    /// Unmounts what outlives the pod, and gives back what its claims have prepared; all else stays. Nothing to do is success. → [`Outcome::VolumesReleased`]
    ReleaseVolumes { pod: PodRef },
    /// Unmounts and deletes everything kept for the pod: volumes, files, logs. → [`Outcome::PodRemoved`]
    RemovePod { pod: PodRef },
}

/// One request to the API server.
#[derive(Clone, Debug, PartialEq)]
pub enum ApiEffect {
    /// A merge patch of `pods/NAME/status`; `patch` carries uid and resourceVersion, so it is refused where the pod
    /// changed meanwhile. → [`Event::StatusPatched`]
    PatchPodStatus {
        pod: PodRef,
        patch: Value,
    },
    /// Deletes with grace 0 and the uid as precondition. Already gone is success. → [`Event::PodDeleted`]
    DeletePod {
        pod: PodRef,
    },
    /// Creates the pod that shows a static pod at the API. → [`Event::MirrorCreated`]
    CreateMirror {
        key: Key,
        pod: Box<Pod>,
    },
    /// Tells users; repetitions are counted into one Event. No answer.
    Event {
        about: ObjectReference,
        event_type: EventType,
        reason: &'static str,
        message: String,
    },
    /// Keeps one ConfigMap or Secret in sight until [`ApiEffect::Unfollow`]. → [`Event::Source`], at first and at each change.
    Follow(Source),
    Unfollow(Source),
    /// A token for the service account, bound to the pod. → [`Event::Token`]
    RequestToken {
        pod: PodRef,
        account: String,
        wish: TokenWish,
    },
    /// A new key, and a PodCertificateRequest for it. → [`Event::CertificateAsked`], and from then on
    /// [`Event::CertificateRequest`] of every request this node has made.
    RequestCertificate {
        pod: PodRef,
        account: String,
        place: CertificatePlace,
        wish: CertificateWish,
    },
    /// What the API has of one volume of the pod: its claim and that claim's volume, or a CSI driver.
    /// → [`Event::VolumeRead`]
    ReadVolume {
        pod: PodRef,
        volume: String,
        name: VolumeName,
    },
    /// What the API has of the pod's claims for devices. → [`Event::DeviceClaimsRead`]
    ReadDeviceClaims {
        pod: PodRef,
        claims: Vec<ClaimName>,
    },
    /// Creates the Node. → [`Event::NodeWritten`]
    CreateNode {
        node: Value,
    },
    /// A merge patch of the Node, or of its status. → [`Event::NodeWritten`]
    PatchNode {
        name: String,
        status: bool,
        patch: Value,
    },
    /// Reads the Node past what the watch has told. → [`Event::NodeRead`]
    ReadNode {
        name: String,
        pod: PodRef,
    },
    /// A merge patch of the node's Lease in `kube-node-lease`; `create` is the whole Lease for when there is none.
    /// → [`Event::LeaseRenewed`]
    RenewLease {
        patch: Value,
        create: Value,
    },
}

/// A ConfigMap or Secret that some pod here reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    pub kind: SourceKind,
    pub key: Key,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SourceKind {
    ConfigMap,
    Secret,
}

impl HostEffect {
    pub fn pod(&self) -> &PodRef {
        match self {
            Self::RunSandbox(spec) => &spec.pod,
            Self::StartContainer(spec) => &spec.pod,
            Self::PrepareVolumes { pod, .. }
            | Self::StopSandbox { pod, .. }
            | Self::RemoveSandbox { pod, .. }
            | Self::InspectImage { pod, .. }
            | Self::PullImage { pod, .. }
            | Self::StopContainer { pod, .. }
            | Self::RemoveContainer { pod, .. }
            | Self::Probe { pod, .. }
            | Self::RunHook { pod, .. }
            | Self::Resize { pod, .. }
            | Self::ReadFiles { pod, .. }
            | Self::TailLog { pod, .. }
            | Self::AllocateDevices { pod, .. }
            | Self::PrepareDevices { pod, .. }
            | Self::RecallDevices { pod }
            | Self::ReleaseVolumes { pod }
            | Self::PinContainer { pod, .. }
            | Self::RemovePod { pod } => pod,
        }
    }

    /// After this time the driver gives up and answers with [`HostEffect::failed`].
    pub fn deadline(&self) -> Duration {
        let seconds = |it: i64| Duration::from_secs(u64::try_from(it).unwrap_or(0));
        match self {
            Self::PullImage { .. } => Duration::from_secs(3600),
            Self::RunSandbox(_) | Self::StopSandbox { .. } | Self::RemoveSandbox { .. } => Duration::from_secs(240),
            Self::StopContainer { timeout_seconds, .. } => {
                seconds(*timeout_seconds).saturating_add(Duration::from_secs(120))
            }
            Self::Probe { timeout_seconds, .. } => {
                seconds(i64::from(*timeout_seconds)).saturating_add(Duration::from_secs(2))
            }
            Self::RunHook { timeout_seconds, .. } => {
                seconds(i64::from(*timeout_seconds)).saturating_add(Duration::from_secs(2))
            }
            _ => Duration::from_secs(120),
        }
    }

    /// The outcome of an effect that could not be carried out at all: its deadline passed, or the hand broke.
    pub fn failed(&self, message: &str) -> Event {
        let failure = Failure::new(message);
        let outcome = match self {
            Self::PrepareVolumes { .. } => Outcome::Volumes(Err(failure)),
            Self::RunSandbox(_) => Outcome::Sandbox(Err(failure)),
            Self::StopSandbox { id, .. } => Outcome::SandboxStopped { id: id.clone(), result: Err(failure) },
            Self::RemoveSandbox { id, .. } => Outcome::SandboxRemoved { id: id.clone(), result: Err(failure) },
            Self::InspectImage { container, .. } => {
                Outcome::Image { container: container.clone(), result: Err(failure) }
            }
            Self::PullImage { container, .. } => Outcome::Pulled { container: container.clone(), result: Err(failure) },
            Self::StartContainer(spec) => Outcome::Container {
                container: spec.name.clone(),
                attempt: spec.attempt,
                result: Err(StartFailure { stage: StartStage::Create, message: message.into(), container: None }),
            },
            Self::StopContainer { container, id, .. } => {
                Outcome::Stopped { container: container.clone(), id: id.clone(), result: Err(failure) }
            }
            Self::RemoveContainer { container, id, .. } => {
                Outcome::Removed { container: container.clone(), id: id.clone(), result: Err(failure) }
            }
            Self::Probe { container, id, probe, .. } => Outcome::Probed {
                container: container.clone(),
                id: id.clone(),
                probe: *probe,
                verdict: ProbeVerdict::Failure(message.into()),
            },
            Self::RunHook { container, id, hook, .. } => {
                Outcome::Hooked { container: container.clone(), id: id.clone(), hook: *hook, result: Err(failure) }
            }
            Self::Resize { .. } => Outcome::Resized(Err(failure)),
            Self::PinContainer { container, .. } => {
                Outcome::Pinned { container: container.clone(), result: Err(failure) }
            }
            Self::ReadFiles { container, .. } => {
                Outcome::FilesRead { container: container.clone(), result: Err(failure) }
            }
            Self::TailLog { container, .. } => Outcome::LogTail { container: container.clone(), text: String::new() },
            Self::PrepareDevices { .. } => Outcome::Prepared(Err(failure)),
            Self::RecallDevices { .. } => Outcome::Recalled(None),
            Self::AllocateDevices { .. } => Outcome::Devices(Err(failure)),
            Self::ReleaseVolumes { .. } => Outcome::VolumesReleased(Err(failure)),
            Self::RemovePod { .. } => Outcome::PodRemoved(Err(failure)),
        };
        Event::Done { pod: self.pod().clone(), outcome }
    }
}

impl fmt::Display for PodRef {
    /// As the kubelet's messages name pods: `web_default(uid)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}_{}({})", self.key.name, self.key.namespace, self.uid)
    }
}

/// One file that a container's environment names: volume and path.
pub type EnvFile = (String, String);
