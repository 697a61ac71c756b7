//! What the kubelet can be told: what the API wants, what the machine shows, and how its effects ended.

use std::{collections::BTreeMap, sync::Arc};

use corten_api::core::v1::{Node, Pod};
use corten_meta::Key;

use crate::{
    EnvFile,
    words::{
        certificate::{CertificateAsked, CertificateNews, CertificatePlace},
        container::{Hook, ProbeKind},
        device::AllocatedDevices,
        device_claim::{PreparedClaim, ReservedClaim},
        effect::{PodRef, Source},
        measure::NodeNews,
        observed::{
            HookAnswer, Image, NodeFacts, Observed, ObservedContainer, ObservedSandbox, ProbeVerdict, Snapshot,
        },
        persistent::VolumeRead,
        service::ServiceLink,
        token::{Token, TokenWish},
        trust_bundle::TrustBundle,
    },
};

#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "few are alive at a time, and most are the large ones")]
pub enum Event {
    // ---- from the API ----
    /// A pod of this node appeared or changed. Versions older than one already seen are ignored.
    Pod(Box<Pod>),
    /// A pod of this node is no longer in the API.
    PodGone(PodRef),
    /// Every pod of this node has been told once: from now on what is not known is not wanted.
    PodsSynced,
    /// This node's Node as the API has it, or `None` where there is none.
    Node(Option<Box<Node>>),
    /// A followed ConfigMap or Secret; `None`: there is none of that name. What a key holds is shared by all who read it.
    Source {
        source: Source,
        data: Option<BTreeMap<String, Arc<[u8]>>>,
    },
    /// A Service appeared or changed; `None`: it is gone.
    Service {
        key: Key,
        service: Option<ServiceLink>,
    },
    /// A ClusterTrustBundle appeared or changed; `None`: it is gone.
    TrustBundle {
        name: String,
        bundle: Option<TrustBundle>,
    },
    /// Every ClusterTrustBundle has been told once.
    TrustBundlesSynced,
    /// A RuntimeClass appeared or changed; `None`: it is gone.
    RuntimeClass {
        name: String,
        handler: Option<String>,
    },
    RuntimeClassesSynced,
    /// Every Service has been told once.
    ServicesSynced,
    /// How [`crate::ApiEffect::RequestToken`] ended.
    Token {
        pod: PodRef,
        wish: TokenWish,
        result: Result<Token, ApiFailure>,
    },
    /// How [`crate::ApiEffect::RequestCertificate`] ended.
    CertificateAsked {
        pod: PodRef,
        place: CertificatePlace,
        result: Result<CertificateAsked, ApiFailure>,
    },
    /// A PodCertificateRequest of this node's appeared or changed; `None`: it is gone.
    CertificateRequest {
        key: Key,
        news: Option<CertificateNews>,
    },
    /// What [`crate::ApiEffect::ReadVolume`] found, or why the API did not say, in upstream's words.
    VolumeRead {
        pod: PodRef,
        volume: String,
        result: Result<Box<VolumeRead>, String>,
    },
    /// What [`crate::ApiEffect::ReadDeviceClaims`] found, or why the pod cannot have their devices.
    DeviceClaimsRead {
        pod: PodRef,
        result: Result<Vec<ReservedClaim>, String>,
    },
    /// How [`crate::ApiEffect::PatchPodStatus`] ended: the pod as it now is.
    StatusPatched {
        pod: PodRef,
        result: Result<Box<Pod>, ApiFailure>,
    },
    /// How [`crate::ApiEffect::DeletePod`] ended.
    PodDeleted {
        pod: PodRef,
        result: Result<(), ApiFailure>,
    },
    /// How a write of the Node ended: the Node as it now is.
    NodeWritten(Result<Box<Node>, ApiFailure>),
    /// What [`crate::ApiEffect::ReadNode`] found, asked for this pod's sake.
    NodeRead {
        pod: PodRef,
        result: Result<Box<Node>, ApiFailure>,
    },
    LeaseRenewed(Result<(), ApiFailure>),

    /// How [`crate::ApiEffect::CreateMirror`] ended.
    MirrorCreated {
        key: Key,
        result: Result<Box<Pod>, ApiFailure>,
    },

    // ---- from the machine ----
    /// Everything the folder of manifests holds; at start and whenever that changed.
    Manifests(Vec<Manifest>),
    /// What the runtime shows; hands send one at start and whenever something differs from the last one.
    Snapshot(Snapshot),
    /// What the machine is and how it does; at start and every ten seconds or when something changed.
    Facts(Box<NodeFacts>),
    /// What the machine measured or found.
    OfNode(NodeNews),
    /// How a [`crate::HostEffect`] ended.
    Done {
        pod: PodRef,
        outcome: Outcome,
    },

    /// The time of the last [`crate::Effect::WakeAt`] has come.
    Tick,
}

/// How one host effect ended. Each names what it was about, so late answers can be told from current ones.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "few are alive at a time, and most are the large ones")]
pub enum Outcome {
    Volumes(Result<(), Failure>),
    Sandbox(Result<ObservedSandbox, Failure>),
    SandboxStopped {
        id: String,
        result: Result<(), Failure>,
    },
    SandboxRemoved {
        id: String,
        result: Result<(), Failure>,
    },
    /// `Ok(None)`: the image is not on this machine.
    Image {
        container: String,
        result: Result<Option<Image>, Failure>,
    },
    Pulled {
        container: String,
        result: Result<Image, Failure>,
    },
    Container {
        container: String,
        attempt: u32,
        result: Result<ObservedContainer, StartFailure>,
    },
    Stopped {
        container: String,
        id: String,
        result: Result<(), Failure>,
    },
    Removed {
        container: String,
        id: String,
        result: Result<(), Failure>,
    },
    Probed {
        container: String,
        id: String,
        probe: ProbeKind,
        verdict: ProbeVerdict,
    },
    Hooked {
        container: String,
        id: String,
        hook: Hook,
        result: Result<HookAnswer, Failure>,
    },
    LogTail {
        container: String,
        text: String,
    },
    Devices(Result<Box<AllocatedDevices>, Failure>),
    Prepared(Result<Vec<PreparedClaim>, Failure>),
    /// `None`: nothing is known of it.
    Recalled(Option<Vec<PreparedClaim>>),
    PodRemoved(Result<(), Failure>),
    VolumesReleased(Result<(), Failure>),
    Resized(Result<(), Failure>),
    Pinned {
        container: String,
        result: Result<(), Failure>,
    },
    /// `None`: there is no such file.
    FilesRead {
        container: String,
        result: Result<BTreeMap<EnvFile, Option<Vec<u8>>>, Failure>,
    },
}

impl Outcome {
    /// What runtime and machine said, where something failed.
    pub fn messages(&mut self) -> Vec<&mut String> {
        fn of<T>(result: &mut Result<T, Failure>) -> Vec<&mut String> {
            result.as_mut().err().map(|it| &mut it.message).into_iter().collect()
        }
        match self {
            Self::Volumes(result) | Self::PodRemoved(result) | Self::VolumesReleased(result) => of(result),
            Self::Stopped { result, .. }
            | Self::Removed { result, .. }
            | Self::SandboxStopped { result, .. }
            | Self::SandboxRemoved { result, .. } => of(result),
            Self::Sandbox(result) => of(result),
            Self::Image { result, .. } => of(result),
            Self::Pulled { result, .. } => of(result),
            Self::Hooked { result, .. } => of(result),
            Self::Devices(result) => of(result),
            Self::Resized(result) | Self::Pinned { result, .. } => of(result),
            Self::Prepared(result) => of(result),
            Self::FilesRead { result, .. } => of(result),
            Self::Container { result: Err(failure), .. } => {
                let exit = failure.container.as_mut().and_then(|it| match &mut it.state {
                    Observed::Exited(exit) => Some(&mut exit.message),
                    _ => None,
                });
                std::iter::once(&mut failure.message).chain(exit).collect()
            }
            Self::Probed { verdict, .. } => match verdict {
                ProbeVerdict::Success | ProbeVerdict::SilentFailure(_) => Vec::new(),
                ProbeVerdict::Warning(it) | ProbeVerdict::Failure(it) | ProbeVerdict::Unknown(it) => vec![it],
            },
            Self::Container { .. } | Self::LogTail { .. } | Self::Recalled(_) => Vec::new(),
        }
    }
}

/// Why an effect failed, as the runtime or the machine put it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
}

/// Why a container did not start.
#[derive(Clone, Debug, PartialEq)]
pub struct StartFailure {
    pub stage: StartStage,
    pub message: String,
    /// The dead container that a failed start leaves behind (exit code 128, reason StartError).
    pub container: Option<ObservedContainer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartStage {
    /// A mount's source or a file could not be made: CreateContainerConfigError.
    Config,
    /// CRI CreateContainer: CreateContainerError.
    Create,
    /// CRI StartContainer: RunContainerError.
    Start,
}

/// Why a request to the API server failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApiFailure {
    /// The object is not there, or is another one of that name.
    Gone,
    /// It was changed meanwhile; the newest version comes by the watch.
    Conflict,
    Other(String),
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// No answer came in time: the runtime says so, its client (`Timeout expired`), or whoever asked both.
    pub fn is_timeout(&self) -> bool {
        ["DeadlineExceeded", "deadline exceeded", "Timeout expired"].iter().any(|it| self.message.contains(it))
    }
}

impl PodRef {
    pub fn new(namespace: &str, name: &str, uid: &str) -> Self {
        Self { key: Key::new(namespace, name), uid: uid.into() }
    }

    pub fn of(pod: &Pod) -> Self {
        let text = |it: &Option<String>| it.clone().unwrap_or_default();
        Self { key: Key::new(text(&pod.metadata.namespace), text(&pod.metadata.name)), uid: text(&pod.metadata.uid) }
    }
}

/// One file of the folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    pub path: String,
    /// As the API server would have defaulted it; or why the file is no pod.
    pub pod: Result<Box<Pod>, String>,
}
