//! Which Pods run here, as the runtime has it: for whoever asks which of them has which devices.

use std::{collections::BTreeMap, pin::Pin};

use corten_devices::{Running, RunningPods};
use corten_kubelet::PodRef;

use super::{NodeHands, pleg::pod_of};
use crate::cri;

const CONTAINER_NAME: &str = "io.kubernetes.container.name";

impl Running for NodeHands {
    fn pods(&self) -> Pin<Box<dyn Future<Output = Result<RunningPods, String>> + Send + '_>> {
        Box::pin(async {
            let sandboxes = self.cri().list_pod_sandboxes(None).await.map_err(|it| it.to_string())?;
            let containers = self.cri().list_containers(None).await.map_err(|it| it.to_string())?;
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
}
