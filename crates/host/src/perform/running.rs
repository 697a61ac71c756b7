//! Which Pods run here, as the runtime has it: for whoever asks which of them has which devices.

use std::{collections::BTreeMap, pin::Pin};

use corten_devices::{PodsProvider, RunningPods};
use corten_kubelet::{Config, PodRef, Shares};

use super::{NodeHands, pleg::pod_of};
use crate::{cri, written_manager_states};

const CONTAINER_NAME: &str = "io.kubernetes.container.name";

/// The Pods of this node, with what its settings hand out to them.
pub struct RunningHere {
    pub hands: NodeHands,
    pub config: Config,
}

impl PodsProvider for RunningHere {
    fn pods(&self) -> Pin<Box<dyn Future<Output = Result<RunningPods, String>> + Send + '_>> {
        Box::pin(async {
            let sandboxes = self.hands.cri().list_pod_sandboxes(None).await.map_err(|it| it.to_string())?;
            let containers = self.hands.cri().list_containers(None).await.map_err(|it| it.to_string())?;
            let ready = |it: &&cri::PodSandbox| it.state == i32::from(cri::PodSandboxState::Ready);
            let pods = sandboxes.iter().filter(ready).map(|it| (it.id.as_str(), (pod_of(&it.labels), Vec::new())));
            let mut pods: BTreeMap<&str, (PodRef, Vec<String>)> = pods.collect();
            for container in containers.iter().filter(|it| it.state == i32::from(cri::ContainerState::Running)) {
                let name = container.labels.get(CONTAINER_NAME);
                if let (Some((_, names)), Some(name)) = (pods.get_mut(container.pod_sandbox_id.as_str()), name) {
                    names.push(name.clone());
                }
            }
            Ok(pods.into_values().collect())
        })
    }

    fn shares(&self) -> Pin<Box<dyn Future<Output = Result<Shares, String>> + Send + '_>> {
        Box::pin(async {
            let (layout, config) = (self.hands.layout().clone(), self.config.clone());
            let read = tokio::task::spawn_blocking(move || {
                let states = written_manager_states(&layout).map_err(|it| it.to_string())?;
                corten_kubelet::shares(&config, states)
            });
            read.await.map_err(|it| it.to_string())?
        })
    }
}
