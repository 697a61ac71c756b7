//! The life of pods on one node as state machines: start, probe, restart, stop. A mind: no I/O, no clock.
//!
//! [`Kubelet::step`] is told what happened and answers what to do. It is level-triggered inside: an event only changes
//! what is known of a pod, then that pod is looked at as a whole.
//!
//! Its floors, from the bottom: `words` (what is said to it and by it) · `spec` (what a Pod asks for) · `node` · `static_pods` ·
//! `pod` (one pod's state machine) · `kubelet` (all pods of the node).

mod backoff;
mod kubelet;
mod node;
mod pod;
mod spec;
mod static_pods;
mod words;

#[cfg(test)]
mod tests;

pub use kubelet::Kubelet;
pub use node::managers::{check_managers, shares};
pub use node::observations::{CpuReading, Observations, PodReading};
pub use node::status::LACKS;
pub use words::certificate::{
    CertificateAnswer, CertificateAsked, CertificateNews, CertificatePlace, CertificateWish, PrivateKey,
};
pub use words::config::{Config, ImageGcConfig, ShutdownConfig, SwapBehavior, TerminationNote};
pub use words::container::{
    Action, AppArmor, ContainerSpec, Credential, Dns, Hook, Hosts, MemoryCheck, Mount, MountSource, PortMapping,
    ProbeKind, Propagation, Qos, ResizeStep, Resources, SandboxSpec, Seccomp, Security,
};
pub use words::cpu_set::{CpuSet, NumaNodes};
pub use words::device::{
    AllocatedDevices, ContainerDevices, DeviceNews, DeviceResource, DeviceWish, Granted, GrantedDevice, GrantedMount,
    PluginDevice, PodsDevices,
};
pub use words::device_claim::{ClaimName, ClaimUser, GivenDevice, PreparedClaim, PreparedDevice, ReservedClaim};
pub use words::effect::{ApiEffect, Effect, EnvFile, HostEffect, PodRef, Source, SourceKind};
pub use words::event::{ApiFailure, Event, Failure, Manifest, Outcome, StartFailure, StartStage};
pub use words::managers::{
    Cpu, CpuConfig, MachineTopology, ManagerCounts, ManagerStates, ManagersConfig, MemoryBlock, MemoryConfig, NumaNode,
    Pins, RequestCounts, Share, Shares, TopologyConfig, TopologyPolicy, TopologyScope,
};
pub use words::measure::{Amount, ContainerUse, DiskUse, LocalImage, NodeEffect, NodeNews, PodUse, Signals, VolumeUse};
pub use words::node_problem::{self, NodeProblem};
pub use words::observed::{
    Exit, HookAnswer, Image, NodeFacts, NodeImage, Observed, ObservedContainer, ObservedSandbox, ProbeVerdict,
    RuntimeHandler, Snapshot, User,
};
pub use words::persistent::{
    Backend, CsiVolume, Device, DeviceSource, GrowableVolume, PersistentMount, Secrets, VolumeGrowth, VolumeName,
    VolumeOwner, VolumeRead,
};
pub use words::service::{ServiceLink, ServicePort};
pub use words::thresholds::{
    DEFAULT_HARD, EvictionConfig, Limit, Signal, Threshold, hard_thresholds, set_min_reclaims, soft_thresholds,
};
pub use words::token::{Token, TokenWish};
pub use words::trust_bundle::TrustBundle;
pub use words::volume::{HostPathType, Medium, Plugin, Volume, VolumeFile, VolumeGroup, VolumeSource};
