//! What the runtime is asked for: sandboxes and containers, and what is done to them and in them.

use std::{collections::BTreeMap, fmt, net::IpAddr};

use crate::words::{device::ContainerDevices, effect::PodRef, managers::Pins, persistent::Device, volume::Plugin};

/// Everything CRI's PodSandboxConfig needs. Log folder and cgroup parent are the host's business.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SandboxSpec {
    pub pod: PodRef,
    pub attempt: u32,
    pub hostname: String,
    /// The pod's labels and the `io.kubernetes.pod.*` ones.
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub dns: Dns,
    pub ports: Vec<PortMapping>,
    pub host_network: bool,
    pub host_pid: bool,
    pub host_ipc: bool,
    pub share_process_namespace: bool,
    pub sysctls: BTreeMap<String, String>,
    pub qos: Qos,
    /// The sum of the containers' resources, for the pod's cgroup.
    pub resources: Resources,
    pub run_as_user: Option<i64>,
    pub run_as_group: Option<i64>,
    pub supplemental_groups: Vec<i64>,
    pub strict_groups: bool,
    /// Any container is privileged.
    pub privileged: bool,
    pub seccomp: Seccomp,
    pub runtime_handler: String,
    /// The pod has a user namespace of its own, with ids of the machine that no other pod has.
    pub own_users: bool,
    /// Those that it had before, and has again where nobody else has them by then: Services and policies lead to them until the API
    /// says otherwise.
    pub addresses: Vec<IpAddr>,
}

/// What goes into the pod's resolv.conf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dns {
    pub servers: Vec<String>,
    pub searches: Vec<String>,
    pub options: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortMapping {
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    pub container_port: i32,
    pub host_port: i32,
    pub host_ip: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Qos {
    Guaranteed,
    Burstable,
    #[default]
    BestEffort,
}

/// CRI's LinuxContainerResources; zero means unlimited or the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    pub cpu_shares: i64,
    pub cpu_quota: i64,
    pub cpu_period: i64,
    pub memory_limit_bytes: i64,
    pub oom_score_adj: i64,
}

impl Resources {
    /// As much of the CPUs as there is.
    #[must_use]
    pub(crate) fn without_quota(self) -> Self {
        Self { cpu_quota: 0, cpu_period: 0, ..self }
    }
}

/// One thing that is given other resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResizeStep {
    /// The pod's cgroup; what is zero has no limit.
    Pod(Resources),
    Container {
        id: String,
        resources: Resources,
    },
}

/// A limit that must not be below what is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryCheck {
    /// Name and id; `None`: the pod as a whole.
    pub container: Option<(String, String)>,
    pub limit_bytes: i64,
}

/// A user and password for a registry.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    pub username: String,
    pub password: String,
    pub registry: String,
}

/// Without the password.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("username", &self.username)
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}

/// Everything CRI's ContainerConfig needs, already expanded and resolved.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContainerSpec {
    pub pod: PodRef,
    pub sandbox_id: String,
    /// The sandbox's; becomes the variable `HOSTNAME`.
    pub hostname: String,
    pub name: String,
    /// CRI's `attempt` and the restart count.
    pub attempt: u32,
    /// As the user wrote it.
    pub image: String,
    /// What ImageStatus said it is; the container is made from this.
    pub image_ref: String,
    pub command: Vec<String>,
    pub args: Vec<String>,
    pub working_dir: String,
    pub env: Vec<(String, String)>,
    pub mounts: Vec<Mount>,
    /// Block devices it is given.
    pub devices: Vec<Device>,
    /// What device plugins give it.
    pub plugged: ContainerDevices,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub stdin: bool,
    pub stdin_once: bool,
    pub tty: bool,
    pub resources: Resources,
    pub security: Security,
    pub host_network: bool,
    pub host_pid: bool,
    pub host_ipc: bool,
    pub share_process_namespace: bool,
    /// As its sandbox: [`SandboxSpec::own_users`].
    pub own_users: bool,
    /// The container whose processes this one sees, where neither the pod nor the host shares them anyway.
    pub pid_target: Option<String>,
    /// Of each size of huge pages the machine has, in CRI's words, how many bytes of it.
    pub hugepages: Vec<(String, u64)>,
    /// Where it runs.
    pub pins: Pins,
    /// How much of the machine's swap it may use.
    pub swap_bytes: i64,
    /// Decides, with the pod's uid, which cgroup is the parent.
    pub qos: Qos,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Mount {
    pub container_path: String,
    pub source: MountSource,
    pub read_only: bool,
    /// So is what is mounted beneath it.
    pub recursive_read_only: bool,
    pub propagation: Propagation,
}

#[derive(Clone, Debug, PartialEq)]
pub enum MountSource {
    /// The prepared volume of this name, or a path beneath it (relative, no `..`; made as a folder where missing,
    /// resolved without following links out of the volume).
    Volume { plugin: Plugin, name: String, sub_path: String },
    /// A path of the machine, or one beneath it, as with `Volume`.
    HostPath { name: String, path: String, sub_path: String },
    /// What an image holds, or a path in it: its id, and how the pod names it.
    Image { image_ref: String, reference: String, sub_path: String },
    /// The pod's /etc/hosts.
    Hosts(Hosts),
    /// An empty file of this container and attempt, from which the termination message is read.
    TerminationLog,
}

/// What a pod's /etc/hosts says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// Without any the file is the machine's own: the pod has no network of its own.
    pub ips: Vec<String>,
    pub hostname: String,
    /// `subdomain.namespace.svc.cluster.local`.
    pub domain: Option<String>,
    /// An address and its names.
    pub aliases: Vec<(String, Vec<String>)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Propagation {
    #[default]
    Private,
    HostToContainer,
    Bidirectional,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Security {
    pub privileged: bool,
    pub run_as_user: Option<i64>,
    /// Only where `run_as_user` is not given and the image names its user.
    pub run_as_username: String,
    pub run_as_group: Option<i64>,
    pub supplemental_groups: Vec<i64>,
    /// `supplementalGroupsPolicy: Strict`: the groups that the image gives its user are left out.
    pub strict_groups: bool,
    pub read_only_rootfs: bool,
    pub no_new_privs: bool,
    pub add_capabilities: Vec<String>,
    pub drop_capabilities: Vec<String>,
    pub seccomp: Seccomp,
    pub app_armor: AppArmor,
    /// User, role, type, level; not looked at where the machine has no SELinux.
    pub se_linux: Option<[String; 4]>,
    /// `procMount: Unmasked`: nothing of /proc is hidden.
    pub unmasked_proc: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Seccomp {
    #[default]
    Unconfined,
    RuntimeDefault,
    /// A profile file beneath the node's seccomp folder.
    Localhost(String),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AppArmor {
    /// What the runtime does where nobody says anything.
    #[default]
    Unset,
    Unconfined,
    RuntimeDefault,
    /// A profile that is loaded on the machine.
    Localhost(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeKind {
    Startup,
    Liveness,
    Readiness,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    PostStart,
    PreStop,
}

/// What a probe or a hook does; addresses and ports are resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// In the container, by CRI ExecSync.
    Exec {
        command: Vec<String>,
    },
    /// A probe succeeds from 200 to 399. Certificates are not verified; redirects are followed on the same host only.
    Http {
        https: bool,
        host: String,
        port: u16,
        path: String,
        headers: Vec<(String, String)>,
    },
    Tcp {
        host: String,
        port: u16,
    },
    /// grpc.health.v1.Health/Check.
    Grpc {
        host: String,
        port: u16,
        service: String,
    },
    Sleep {
        seconds: i64,
    },
}
