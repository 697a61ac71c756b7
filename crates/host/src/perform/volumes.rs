//! What pods' volumes hold, made and taken away.

use std::{path::PathBuf, time::Instant};

use corten_kubelet::{
    Backend, ContainerSpec, Device, DeviceSource, Failure, PersistentMount, PodRef, Volume, VolumeGroup, VolumeSource,
};
use corten_machine::tree;

use super::{Inner, config};
use crate::{VolumeError, cri, stats::pod_volumes::plugin, terminations};

/// Upstream's name of what is done to give a Pod such a volume.
fn set_up(source: &VolumeSource) -> &'static str {
    match source {
        VolumeSource::Persistent(mount) if mount.is_block => "map_volume",
        _ => "volume_mount",
    }
}

impl Inner {
    pub(super) async fn prepare_volumes(
        &self,
        pod: &PodRef,
        volumes: Vec<Volume>,
        group: Option<VolumeGroup>,
    ) -> Result<(), Failure> {
        self.counters.volumes().want(&pod.uid, &volumes);
        for Volume { name, source } in volumes {
            let (plugin, operation, begun) = (plugin(&source), set_up(&source), Instant::now());
            let prepared = self.prepare_volume(&pod.uid, &name, source, group).await;
            self.mounter.operations().note(&plugin, operation, begun.elapsed(), prepared.is_ok());
            prepared
                .map_err(|error| Failure::new(format!("MountVolume.SetUp failed for volume {name:?} : {error}")))?;
            self.counters.volumes().mounted(&pod.uid, &name);
        }
        Ok(())
    }

    async fn prepare_volume(
        &self,
        uid: &str,
        name: &str,
        source: VolumeSource,
        group: Option<VolumeGroup>,
    ) -> Result<(), VolumeError> {
        // What is made here, nobody else writes.
        let read_only = matches!(source, VolumeSource::Files { .. });
        let path = match source {
            VolumeSource::EmptyDir { medium, size_limit_bytes, mode } => {
                let size = size_limit_bytes.and_then(|it| u64::try_from(it).ok());
                self.volumes.empty_dir(uid, name, medium, size, mode).await?
            }
            VolumeSource::HostPath { path, kind } => {
                self.volumes.host_path(&PathBuf::from(path), kind).await?;
                return Ok(());
            }
            VolumeSource::Files { plugin, files } => {
                self.volumes.write_files(uid, plugin.as_str(), name, files).await?
            }
            VolumeSource::Persistent(mount) => return self.mount_persistent(uid, &mount, group).await,
        };
        if let Some(gid) = group.and_then(|it| u32::try_from(it.gid).ok()) {
            self.volumes.set_group(&path, gid, read_only).await?;
        }
        Ok(())
    }

    /// A volume that outlives the pod; its files are given to the pod's group before a container sees them, once.
    async fn mount_persistent(
        &self,
        uid: &str,
        mount: &PersistentMount,
        group: Option<VolumeGroup>,
    ) -> Result<(), VolumeError> {
        let placed = self.mounter.set_up(uid, mount).await.map_err(|it| VolumeError::Refused(it.to_string()))?;
        if let Backend::HostPath { path, kind } = &mount.backend {
            return self.volumes.host_path(&PathBuf::from(path), *kind).await.map(drop);
        }
        let takes_group = mount.takes_group && !mount.is_block && !mount.read_only;
        let Some(placed) = placed.filter(|it| takes_group && !it.driver_gives_group) else { return Ok(()) };
        let Some((gid, group)) = group.and_then(|it| Some((u32::try_from(it.gid).ok()?, it))) else { return Ok(()) };
        // Of one that was there before, all is done where its top folder is: that comes last.
        match group.only_on_root_mismatch || !placed.is_new {
            true => self.volumes.set_group_on_root_mismatch(&placed.path, gid, false).await,
            false => self.volumes.set_group(&placed.path, gid, false).await,
        }
    }

    /// What outlives the pod is unmounted, with what containers were given of it; drivers take back what they prepared.
    pub(super) async fn release_volumes(&self, pod: &PodRef) -> Result<(), Failure> {
        let failed = |it: String| Failure::new(it);
        self.counters.volumes().release(&pod.uid);
        self.volumes.remove_sub_paths(&pod.uid).await.map_err(|it| failed(it.to_string()))?;
        self.mounter.tear_down(&pod.uid).await.map_err(|it| failed(it.to_string()))?;
        self.counters.volumes().released(&pod.uid);
        self.claims.release(&pod.uid).await.map_err(|it| failed(format!("unprepare dynamic resources: {it}")))
    }

    pub(super) async fn remove_pod(&self, pod: &PodRef) -> Result<(), Failure> {
        self.release_volumes(pod).await?;
        let failed = |it: std::io::Error| Failure::new(it.to_string());
        self.volumes.remove_pod(&pod.uid).await.map_err(|it| Failure::new(it.to_string()))?;
        self.counters.volumes().removed(&pod.uid);
        let uid = pod.uid.clone();
        self.on_cgroups("destroy", move |cgroups| cgroups.remove_pod(&uid)).await.map_err(failed)?;
        let (uid, layout) = (pod.uid.clone(), self.layout.clone());
        let logs = self.layout.pod_logs(&pod.key.namespace, &pod.key.name, &pod.uid);
        let work = tokio::task::spawn_blocking(move || {
            tree::remove(&logs)?;
            terminations::forget(&layout, &uid)
        });
        work.await.map_err(|it| Failure::new(it.to_string()))?.map_err(failed)
    }

    /// As `makeBlockVolumes`.
    pub(super) fn devices(&self, spec: &ContainerSpec) -> Result<Vec<cri::Device>, VolumeError> {
        let device = |it: &Device| {
            let path = match &it.source {
                DeviceSource::Path(path) => PathBuf::from(path),
                DeviceSource::Csi { name } => {
                    let path = self.mounter.device(&spec.pod.uid, name);
                    path.map_err(|it| VolumeError::Refused(it.to_string()))?
                }
            };
            Ok(config::device(it, &path))
        };
        spec.devices.iter().map(device).collect()
    }
}
