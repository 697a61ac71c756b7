//! Gives what runs other resources: the Pod's cgroup, and containers by way of the runtime.

use corten_kubelet::{Failure, MemoryCheck, PodRef, Qos, ResizeStep, Resources};
use corten_meta::aggregate;

use super::{Inner, config, limits_of, rpc};
use crate::cri;

impl Inner {
    pub(super) async fn resize(
        &self,
        pod: &PodRef,
        qos: Qos,
        steps: Vec<ResizeStep>,
        checks: Vec<MemoryCheck>,
    ) -> Result<(), Failure> {
        self.check_memory(pod, qos, checks).await?;
        for step in steps {
            match step {
                ResizeStep::Pod(resources) => self.resize_pod(pod, qos, &resources).await?,
                ResizeStep::Container { id, resources } => {
                    let resources = config::resources(&resources);
                    self.cri.update_container_resources(&id, resources).await.map_err(|it| rpc(&it))?;
                }
            }
        }
        Ok(())
    }

    /// Nothing but the CPUs it runs on; all else stays as it is.
    pub(super) async fn pin(&self, id: &str, cpus: String) -> Result<(), Failure> {
        let resources = cri::LinuxContainerResources { cpuset_cpus: cpus, ..cri::LinuxContainerResources::default() };
        self.cri.update_container_resources(id, resources).await.map_err(|it| rpc(&it))
    }

    /// As KEP-1287 has it, all limits that are too low are told at once.
    async fn check_memory(&self, pod: &PodRef, qos: Qos, checks: Vec<MemoryCheck>) -> Result<(), Failure> {
        let (cgroups, uid) = (self.cgroups.clone(), pod.uid.clone());
        let work = tokio::task::spawn_blocking(move || {
            let mut problems = Vec::new();
            for MemoryCheck { container, limit_bytes } in checks {
                let id = container.as_ref().map(|it| it.1.as_str());
                let Some(used) = cgroups.memory_used(qos, &uid, id) else { continue };
                if used >= u64::try_from(limit_bytes).unwrap_or(0) {
                    let whose = container.map_or("pod".to_owned(), |it| format!("container {:?}", it.0));
                    problems.push(format!(
                        "attempting to set {whose} memory limit ({limit_bytes}) below current usage ({used})"
                    ));
                }
            }
            problems
        });
        let problems = work.await.map_err(|it| Failure::new(it.to_string()))?;
        let refused = |problems| Err(Failure::new(format!("cannot decrease memory limits: {problems}")));
        aggregate(problems).map_or(Ok(()), refused)
    }

    async fn resize_pod(&self, pod: &PodRef, qos: Qos, resources: &Resources) -> Result<(), Failure> {
        let (uid, limits) = (pod.uid.clone(), limits_of(resources));
        let updated = self.on_cgroups("update", move |cgroups| cgroups.update_pod(qos, &uid, &limits)).await;
        updated.map_err(|it| Failure::new(it.to_string()))
    }
}
