//! What the runtime needs by itself for the same: a sandbox in the node's network, a container, its start. Three calls.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use corten_host::{
    MASKED_PATHS, READ_ONLY_PATHS,
    cri::{
        Capability, ContainerConfig, ContainerMetadata, Cri, DnsConfig, ImageSpec, KeyValue, LinuxContainerConfig,
        LinuxContainerResources, LinuxContainerSecurityContext, LinuxPodSandboxConfig, LinuxSandboxSecurityContext,
        Mount, NamespaceMode, NamespaceOption, PodSandboxConfig, PodSandboxMetadata, ProfileType, SecurityProfile,
    },
};
use corten_testbed::RealNode;
use tokio::task::JoinSet;

use super::pods::{COMMAND, IMAGE};

/// What the shortest Pod is given: `KUBERNETES_SERVICE_HOST` and its like.
const N_VARIABLES: usize = 7;

/// How much is asked of the runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuntimeDemand {
    /// The least that makes a container run.
    Least,
    /// What every kubelet asks for the shortest Pod: a seccomp filter for its sandbox, a log, `resolv.conf`, the token's
    /// volume, `/etc/hosts`, the termination log, hidden paths, variables.
    AsForAPod,
}

pub(super) struct Floor {
    cri: Cri,
    folder: PathBuf,
    n_made: usize,
}

impl Floor {
    pub(super) fn new(node: &RealNode) -> Result<Self> {
        let folder = node.data().join("floor");
        fs::create_dir_all(folder.join("token")).context("making what is mounted")?;
        for name in ["hosts", "termination-log", "token/token"] {
            fs::write(folder.join(name), "127.0.0.1 localhost\n").context("making what is mounted")?;
        }
        Ok(Self { cri: Cri::connect(&node.runtime_socket())?, folder, n_made: 0 })
    }

    /// Starts `n` side by side and takes them away again. From the begin until each ran, in the order in which they did.
    pub(super) async fn start(&mut self, n: usize, demand: RuntimeDemand) -> Result<Vec<Duration>> {
        let mut starts = JoinSet::new();
        let names = (0..n).map(|idx| format!("floor-{}", self.n_made + idx));
        let requests: Vec<_> = names.map(|it| request(&it, demand, &self.folder)).collect::<Result<_>>()?;
        let begin = Instant::now();
        for (sandbox, container) in requests {
            let cri = self.cri.clone();
            starts.spawn(async move {
                let sandbox = start(&cri, sandbox, container).await?;
                anyhow::Ok((sandbox, begin.elapsed()))
            });
        }
        self.n_made += n;
        let (mut sandboxes, mut times) = (Vec::new(), Vec::new());
        while let Some(started) = starts.join_next().await {
            let (sandbox, took) = started??;
            sandboxes.push(sandbox);
            times.push(took);
        }
        for sandbox in sandboxes {
            self.cri.stop_pod_sandbox(&sandbox).await?;
            self.cri.remove_pod_sandbox(&sandbox).await?;
        }
        times.sort();
        Ok(times)
    }
}

async fn start(cri: &Cri, sandbox: PodSandboxConfig, container: ContainerConfig) -> Result<String> {
    let id = cri.run_pod_sandbox(sandbox.clone(), "").await?;
    let container = cri.create_container(&id, container, sandbox).await?;
    cri.start_container(&container).await?;
    Ok(id)
}

fn request(name: &str, demand: RuntimeDemand, folder: &Path) -> Result<(PodSandboxConfig, ContainerConfig)> {
    let metadata = PodSandboxMetadata { name: name.into(), uid: name.into(), namespace: "floor".into(), attempt: 0 };
    let sandbox = PodSandboxConfig {
        metadata: Some(metadata),
        hostname: name.into(),
        // No Pod of the kubelet's: it must not care.
        linux: Some(LinuxPodSandboxConfig {
            cgroup_parent: format!("/floor/{name}"),
            ..LinuxPodSandboxConfig::default()
        }),
        ..PodSandboxConfig::default()
    };
    let container = ContainerConfig {
        metadata: Some(ContainerMetadata { name: "main".into(), attempt: 0 }),
        image: Some(ImageSpec { image: IMAGE.into(), ..ImageSpec::default() }),
        command: COMMAND.map(String::from).into(),
        ..ContainerConfig::default()
    };
    if demand == RuntimeDemand::Least {
        return Ok((sandbox, container));
    }
    let logs = folder.join("logs").join(name);
    fs::create_dir_all(logs.join("main")).context("making a folder for logs")?;
    Ok((whole_sandbox(sandbox, &logs), whole_container(container, folder)))
}

fn whole_sandbox(least: PodSandboxConfig, logs: &Path) -> PodSandboxConfig {
    let linux = least.linux.map(|it| LinuxPodSandboxConfig {
        security_context: Some(LinuxSandboxSecurityContext {
            namespace_options: Some(namespaces()),
            seccomp: Some(seccomp(ProfileType::RuntimeDefault)),
            ..LinuxSandboxSecurityContext::default()
        }),
        ..it
    });
    let domains = ["default.svc.cluster.local", "svc.cluster.local", "cluster.local"].map(String::from);
    PodSandboxConfig {
        log_directory: logs.display().to_string(),
        dns_config: Some(DnsConfig {
            servers: vec!["10.96.0.10".into()],
            searches: domains.into(),
            options: vec!["ndots:5".into()],
        }),
        linux,
        ..least
    }
}

fn whole_container(least: ContainerConfig, folder: &Path) -> ContainerConfig {
    let mount = |(name, path, readonly): (&str, &str, bool)| Mount {
        container_path: path.into(),
        host_path: folder.join(name).display().to_string(),
        readonly,
        ..Mount::default()
    };
    let mounts = [
        ("token", "/var/run/secrets/kubernetes.io/serviceaccount", true),
        ("hosts", "/etc/hosts", false),
        ("termination-log", "/dev/termination-log", false),
    ];
    let variable = |n| KeyValue { key: format!("KUBERNETES_{n}"), value: "tcp://10.96.0.1:443".into() };
    ContainerConfig {
        mounts: mounts.map(mount).into(),
        envs: (0..N_VARIABLES).map(variable).collect(),
        log_path: "main/0.log".into(),
        linux: Some(LinuxContainerConfig {
            resources: Some(LinuxContainerResources {
                cpu_shares: 2,
                oom_score_adj: 1000,
                ..LinuxContainerResources::default()
            }),
            security_context: Some(LinuxContainerSecurityContext {
                capabilities: Some(Capability::default()),
                namespace_options: Some(namespaces()),
                masked_paths: MASKED_PATHS.map(String::from).into(),
                readonly_paths: READ_ONLY_PATHS.map(String::from).into(),
                seccomp: Some(seccomp(ProfileType::Unconfined)),
                ..LinuxContainerSecurityContext::default()
            }),
        }),
        ..least
    }
}

fn namespaces() -> NamespaceOption {
    NamespaceOption {
        network: NamespaceMode::Pod.into(),
        pid: NamespaceMode::Container.into(),
        ipc: NamespaceMode::Pod.into(),
        ..NamespaceOption::default()
    }
}

fn seccomp(profile: ProfileType) -> SecurityProfile {
    SecurityProfile { profile_type: profile.into(), localhost_ref: String::new() }
}
