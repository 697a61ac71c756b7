//! Which volumes Pods of this node are to have, and which they have: as the kubelet's metrics tell it.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use corten_kubelet::{Backend, Plugin, Volume, VolumeSource};
use corten_volumes::csi_plugin;

use super::exposition::{Sample, Text, number};

/// Of one Pod, by the volumes' names.
#[derive(Default)]
struct OfPod {
    wanted: BTreeMap<String, Counted>,
    mounted: BTreeMap<String, Counted>,
}

#[derive(Clone)]
struct Counted {
    plugin: Cow<'static, str>,
    /// It stays when the Pod goes.
    is_lasting: bool,
}

/// By the Pods' uids.
#[derive(Default)]
pub(crate) struct PodVolumes(Mutex<BTreeMap<String, OfPod>>);

impl PodVolumes {
    fn of_pods(&self) -> MutexGuard<'_, BTreeMap<String, OfPod>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The Pod is to have these, and no others.
    pub(crate) fn want(&self, uid: &str, volumes: &[Volume]) {
        let wanted = volumes.iter().map(|it| {
            let is_lasting = matches!(it.source, VolumeSource::Persistent(_));
            (it.name.clone(), Counted { plugin: plugin(&it.source), is_lasting })
        });
        self.of_pods().entry(uid.to_owned()).or_default().wanted = wanted.collect();
    }

    /// It is where the Pod's containers find it.
    pub(crate) fn mounted(&self, uid: &str, name: &str) {
        let mut pods = self.of_pods();
        let Some(pod) = pods.get_mut(uid) else { return };
        if let Some(counted) = pod.wanted.get(name).filter(|_| !pod.mounted.contains_key(name)) {
            pod.mounted.insert(name.to_owned(), counted.clone());
        }
    }

    /// The Pod is done, and is to have none any more that outlives it.
    pub(crate) fn release(&self, uid: &str) {
        if let Some(pod) = self.of_pods().get_mut(uid) {
            pod.wanted.retain(|_, it| !it.is_lasting);
        }
    }

    /// And it has none.
    pub(crate) fn released(&self, uid: &str) {
        if let Some(pod) = self.of_pods().get_mut(uid) {
            pod.mounted.retain(|_, it| !it.is_lasting);
        }
    }

    /// The Pod is gone with all it had.
    pub(crate) fn removed(&self, uid: &str) {
        self.of_pods().remove(uid);
    }

    pub(crate) fn write(&self, text: &mut Text) {
        let pods = self.of_pods();
        let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for pod in pods.values() {
            for (state, of) in [("actual_state_of_world", &pod.mounted), ("desired_state_of_world", &pod.wanted)] {
                of.values().for_each(|it| *counts.entry((&*it.plugin, state)).or_default() += 1);
            }
        }
        let samples = counts
            .iter()
            .map(|((plugin, state), n)| Sample::new(&[("plugin_name", *plugin), ("state", *state)], number(*n)));
        let help = "[ALPHA] Number of volumes in Volume Manager";
        text.metric("volume_manager_total_volumes", "gauge", help, samples.collect::<Vec<_>>());
    }
}

/// Upstream's name of what makes such a volume.
pub(crate) fn plugin(source: &VolumeSource) -> Cow<'static, str> {
    let of = |backend: &Backend| match backend {
        Backend::HostPath { .. } => "kubernetes.io/host-path".into(),
        Backend::Local { .. } => "kubernetes.io/local-volume".into(),
        Backend::Nfs { .. } => "kubernetes.io/nfs".into(),
        Backend::Csi(volume) => Cow::Owned(csi_plugin(&volume.driver)),
    };
    match source {
        VolumeSource::EmptyDir { .. } => "kubernetes.io/empty-dir".into(),
        VolumeSource::HostPath { .. } => "kubernetes.io/host-path".into(),
        VolumeSource::Files { plugin: Plugin::ConfigMap, .. } => "kubernetes.io/configmap".into(),
        VolumeSource::Files { plugin: Plugin::Secret, .. } => "kubernetes.io/secret".into(),
        VolumeSource::Files { plugin: Plugin::DownwardApi, .. } => "kubernetes.io/downward-api".into(),
        VolumeSource::Files { plugin: Plugin::Projected, .. } => "kubernetes.io/projected".into(),
        VolumeSource::Files { plugin, .. } => Cow::Owned(format!("kubernetes.io/{}", plugin.as_str())),
        VolumeSource::Persistent(mount) => of(&mount.backend),
    }
}

#[cfg(test)]
mod tests {
    use corten_kubelet::{HostPathType, Medium, PersistentMount};

    use super::*;

    fn told(volumes: &PodVolumes) -> Vec<String> {
        let mut text = Text::default();
        volumes.write(&mut text);
        let text = text.into_string();
        let lines = text.lines().filter(|it| !it.starts_with('#'));
        lines.map(|it| it.trim_start_matches("volume_manager_total_volumes").to_owned()).collect()
    }

    #[test]
    fn what_is_wanted_and_what_is_there_are_told_apart() {
        let volumes = PodVolumes::default();
        let volume = |name: &str, source| Volume { name: name.into(), source };
        let scratch = || VolumeSource::EmptyDir { medium: Medium::Disk, size_limit_bytes: None, mode: 0o777 };
        let claim = PersistentMount {
            name: "pv1".into(),
            backend: Backend::HostPath { path: "/srv".into(), kind: HostPathType::Unset },
            is_block: false,
            read_only: false,
            mount_options: Vec::new(),
            is_single_pod: false,
            takes_group: false,
            group: None,
            owner: corten_kubelet::VolumeOwner::default(),
        };
        let of_claim = VolumeSource::Persistent(Box::new(claim));
        volumes.want("u1", &[volume("a", scratch()), volume("b", scratch()), volume("c", of_claim)]);
        volumes.want("u2", &[volume("a", scratch())]);
        ["a", "a", "c"].iter().for_each(|it| volumes.mounted("u1", it));
        volumes.mounted("u3", "a");
        let empty = r#"{plugin_name="kubernetes.io/empty-dir",state="#;
        let path = r#"{plugin_name="kubernetes.io/host-path",state="#;
        let (actual, desired) = (r#""actual_state_of_world"}"#, r#""desired_state_of_world"}"#);
        let of_path = [format!("{path}{actual} 1"), format!("{path}{desired} 1")];
        let of_empty = [format!("{empty}{actual} 1"), format!("{empty}{desired} 3")];
        assert_eq!(told(&volumes), [&of_empty[..], &of_path[..]].concat());

        volumes.release("u1");
        assert_eq!(told(&volumes), [&of_empty[..], &of_path[..1]].concat(), "nobody wants it, and it is there");
        volumes.released("u1");
        assert_eq!(told(&volumes), of_empty);
        volumes.removed("u1");
        assert_eq!(told(&volumes), [format!("{empty}{desired} 1")]);
    }
}
