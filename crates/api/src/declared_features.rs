//! Features that a node declares in `status.declaredFeatures` (KEP-5328), by upstream's names: the kubelet says which its node has, the
//! scheduler and admission ask for them.
//!
//! Absent are those that no Pod can ask for here, because validation refuses what needs them: `InPlacePodVerticalScalingInitContainers`,
//! `InPlacePodVerticalScalingMemoryBackedVolumes`, `UserNamespacesHostNetworkSupport`.

/// The kubelet itself speaks the newest WebSocket protocols.
pub const WEB_SOCKETS: &str = "ExtendWebSocketsToKubelet";

/// Containers of Guaranteed Pods can be given more or less CPU while they run.
pub const GUARANTEED_CPU_RESIZE: &str = "GuaranteedQoSPodCPUResize";

/// So can Pods that ask for resources as a whole.
pub const POD_LEVEL_RESIZE: &str = "InPlacePodLevelResourcesVerticalScaling";

/// The end of a container can restart all containers of its Pod.
pub const RESTART_ALL: &str = "RestartAllContainersOnContainerExits";

/// The action of a restart rule that needs [`RESTART_ALL`].
pub const RESTART_ALL_ACTION: &str = "RestartAllContainers";
