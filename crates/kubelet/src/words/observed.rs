//! What the machine shows: what runs on it and how that ended, its images, and what it is.

use std::collections::BTreeMap;

use corten_meta::Time;

use crate::words::{container::Dns, effect::PodRef};

/// The runtime's whole truth at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Read before the runtime was asked: what began later may be missing. `None` counts as the beginning of time.
    pub taken_at: Option<Time>,
    pub sandboxes: Vec<ObservedSandbox>,
    pub containers: Vec<ObservedContainer>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedSandbox {
    pub id: String,
    /// From the labels `io.kubernetes.pod.{namespace,name,uid}`.
    pub pod: PodRef,
    pub attempt: u32,
    pub ready: bool,
    pub created_at: Option<Time>,
    /// The pod's addresses, the first one is `podIP`; empty for the host's network.
    pub ips: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObservedContainer {
    /// As the runtime has it, without `containerd://`.
    pub id: String,
    pub sandbox_id: String,
    pub pod: PodRef,
    /// From the label `io.kubernetes.container.name`.
    pub name: String,
    /// CRI's attempt, which is the restart count.
    pub attempt: u32,
    /// As the user named it (annotation, or CRI's `image.image`).
    pub image: String,
    /// `status.containerStatuses[].imageID`.
    pub image_id: String,
    /// The annotation `io.kubernetes.container.hash`.
    pub hash: String,
    pub created_at: Option<Time>,
    /// Who its first process began as, where the runtime tells.
    pub user: Option<User>,
    pub state: Observed,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    pub uid: i64,
    pub gid: i64,
    pub groups: Vec<i64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Observed {
    /// Made, not started.
    #[default]
    Created,
    Running {
        started_at: Option<Time>,
    },
    Exited(Exit),
    Unknown,
}

/// How a container ended.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exit {
    pub code: i32,
    /// CRI's: `Completed`, `Error`, `OOMKilled`, `StartError`.
    pub reason: String,
    /// The termination message (file, or log tail with `FallbackToLogsOnError`), else CRI's message.
    pub message: String,
    pub started_at: Option<Time>,
    pub finished_at: Option<Time>,
}

/// An image on this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// What a container is made from: CRI's image id.
    pub image_ref: String,
    pub size_bytes: u64,
    /// The image's numeric user, if it has one.
    pub uid: Option<i64>,
    /// The image's named user, else empty.
    pub username: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeVerdict {
    Success,
    /// Good enough, and worth an event: the text stands after `Readiness probe warning: `.
    Warning(String),
    /// The answer was bad: the text stands after `Readiness probe failed: `.
    Failure(String),
    /// The command failed with this exit code, and wrote nothing.
    SilentFailure(i32),
    /// Nothing was learned; counts neither way.
    Unknown(String),
}

/// How a lifecycle hook went well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookAnswer {
    Ran,
    /// A server that was to be asked over TLS has none, and was asked without.
    WithoutTls {
        /// `HOST:PORT`
        server: String,
    },
}

/// What the machine is and how it does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeFacts {
    pub cpus: i64,
    pub memory_bytes: i64,
    pub swap_bytes: i64,
    /// The file system that holds the pods' folders.
    pub ephemeral_storage_bytes: i64,
    pub hugepages: BTreeMap<String, i64>,
    /// The kernel has AppArmor, and the runtime can load profiles.
    pub app_armor: bool,
    pub se_linux: bool,
    pub architecture: String,
    pub operating_system: String,
    pub os_image: String,
    pub kernel_version: String,
    pub machine_id: String,
    pub system_uuid: String,
    pub boot_id: String,
    /// `containerd://1.6.20`.
    pub container_runtime_version: String,
    /// Why the runtime does not work, as CRI Status says; `None`: it works.
    pub runtime_problem: Option<String>,
    /// Why the pod network does not work, as CRI Status says; `None`: it works.
    pub network_problem: Option<String>,
    /// What others encrypt by what they send to this node's Pods; `None`: they do not.
    pub wireguard_public_key: Option<String>,
    /// What the runtime offers: its handlers, and whether it keeps to a policy for supplemental groups.
    pub runtime_handlers: Vec<RuntimeHandler>,
    pub keeps_groups_policy: bool,
    /// What the machine cannot do, by the names that [`crate::LACKS`] lists.
    pub lacks: Vec<&'static str>,
    /// How the machine itself resolves names.
    pub resolv: Dns,
    /// The images on this machine, largest first.
    pub images: Vec<NodeImage>,
}

/// A way of the runtime to run pods; the usual one has no name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuntimeHandler {
    pub name: String,
    pub recursive_read_only_mounts: bool,
    pub user_namespaces: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeImage {
    pub names: Vec<String>,
    pub size_bytes: i64,
}
