//! What the runtime needs by itself for the same: a sandbox in the node's network, a container, its start. Three calls.

use std::time::{Duration, Instant};

use anyhow::Result;
use corten_host::cri::{
    ContainerConfig, ContainerMetadata, Cri, ImageSpec, LinuxPodSandboxConfig, PodSandboxConfig, PodSandboxMetadata,
};
use tokio::task::JoinSet;

use super::pods::{COMMAND, IMAGE};
use crate::real::RealNode;

pub(super) struct Floor {
    cri: Cri,
    n_made: usize,
}

impl Floor {
    pub(super) fn new(node: &RealNode) -> Result<Self> {
        Ok(Self { cri: Cri::connect(&node.runtime_socket())?, n_made: 0 })
    }

    /// Starts `n` side by side and takes them away again. From the begin until each ran, in the order in which they did.
    pub(super) async fn start(&mut self, n: usize) -> Result<Vec<Duration>> {
        let mut starts = JoinSet::new();
        let begin = Instant::now();
        for idx in 0..n {
            let (cri, name) = (self.cri.clone(), format!("floor-{}", self.n_made + idx));
            starts.spawn(async move {
                let sandbox = start(&cri, &name).await?;
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

async fn start(cri: &Cri, name: &str) -> Result<String> {
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
    let id = cri.run_pod_sandbox(sandbox.clone(), "").await?;
    let container = cri.create_container(&id, container, sandbox).await?;
    cri.start_container(&container).await?;
    Ok(id)
}
