//! In which order pods must go, as `rankMemoryPressure` and its kin rank them: first who uses more than they asked for, of
//! those the least important, of those who is furthest above.

use std::cmp::Reverse;

use corten_api::core::v1::Pod;

use crate::{
    DiskUse, PodUse, Signal,
    spec::{pod::spec_of, requests::requests},
};

/// A pod, and what it uses.
pub(crate) struct Candidate<'a> {
    uid: &'a str,
    pod: &'a Pod,
    used: Option<&'a PodUse>,
}

/// What counts, in this order; the least goes first.
type EvictionOrder = (bool, bool, i32, Reverse<i64>);

impl<'a> Candidate<'a> {
    pub(crate) fn new(uid: &'a str, pod: &'a Pod, used: Option<&'a PodUse>) -> Self {
        Self { uid, pod, used }
    }

    fn place(&self, signal: Signal, has_image_fs: bool) -> EvictionOrder {
        let priority = spec_of(self.pod).priority.unwrap_or(0);
        // Who could not be measured goes before all others.
        let Some(used) = self.used else { return (false, false, priority, Reverse(0)) };
        let of_request = |name: &str| requests(self.pod).get(name).copied().unwrap_or(0);
        let (usage, request) = match signal {
            Signal::MemoryAvailable => (used.memory_bytes, of_request("memory")),
            Signal::NodeFsAvailable | Signal::ImageFsAvailable => {
                (disk(used, signal, has_image_fs).bytes, of_request("ephemeral-storage"))
            }
            Signal::NodeFsInodesFree | Signal::ImageFsInodesFree => (disk(used, signal, has_image_fs).inodes, 0),
            // As in `rankPIDPressure`: nobody asks for processes, so nobody has more than asked for.
            Signal::PidAvailable => return (true, true, priority, Reverse(used.processes)),
        };
        (true, usage <= request, priority, Reverse(usage.saturating_sub(request)))
    }
}

/// The uids, who must go first in front. Equals stay in the order of their uids.
pub(crate) fn ranked(signal: Signal, has_image_fs: bool, mut pods: Vec<Candidate<'_>>) -> Vec<String> {
    pods.sort_by(|a, b| (a.place(signal, has_image_fs), a.uid).cmp(&(b.place(signal, has_image_fs), b.uid)));
    pods.into_iter().map(|it| it.uid.to_owned()).collect()
}

/// What lies on the file system that is short: all, or with two of them layers on one and the rest on the other.
fn disk(used: &PodUse, signal: Signal, has_image_fs: bool) -> DiskUse {
    let is_image_fs = matches!(signal, Signal::ImageFsAvailable | Signal::ImageFsInodesFree);
    let layers = used.containers.iter().filter_map(|it| it.rootfs);
    let logs = used.containers.iter().map(|it| it.logs);
    let volumes = used.volumes.iter().filter(|it| it.is_ephemeral).map(|it| it.taken);
    let sum = |parts: &mut dyn Iterator<Item = DiskUse>| parts.fold(DiskUse::default(), DiskUse::plus);
    match (has_image_fs, is_image_fs) {
        (true, true) => sum(&mut layers.into_iter()),
        (true, false) => sum(&mut logs.chain(volumes)),
        (false, _) => sum(&mut layers.chain(logs).chain(volumes)),
    }
}

#[cfg(test)]
mod tests {
    use corten_api::core::v1::{Container, PodSpec};

    use super::*;
    use crate::{ContainerUse, VolumeUse};

    fn pod(priority: i32, request: &str) -> Pod {
        let requests = serde_json::json!({"requests": {"memory": request, "ephemeral-storage": request}});
        let container = Container {
            name: "c".into(),
            resources: Some(serde_json::from_value(requests).expect("resources")),
            ..Container::default()
        };
        let spec = PodSpec { priority: Some(priority), containers: vec![container], ..PodSpec::default() };
        Pod { spec: Some(spec), ..Pod::default() }
    }

    fn used(memory_bytes: i64, processes: i64, layer: i64, volume: i64) -> PodUse {
        let of = |bytes| DiskUse { bytes, inodes: bytes / 10 };
        PodUse {
            memory_bytes,
            processes,
            containers: vec![ContainerUse { rootfs: Some(of(layer)), ..ContainerUse::default() }],
            volumes: vec![VolumeUse { name: "v".into(), taken: of(volume), is_ephemeral: true }],
            ..PodUse::default()
        }
    }

    #[test]
    fn as_upstream() {
        let pods = [
            ("below", pod(0, "1000"), Some(used(900, 1, 100, 800))),
            ("above", pod(0, "100"), Some(used(200, 2, 200, 0))),
            ("far-above", pod(0, "100"), Some(used(900, 3, 0, 900))),
            ("important", pod(10, "0"), Some(used(5000, 9, 3000, 2000))),
            ("unknown", pod(100, "0"), None),
        ];
        for (signal, has_image_fs, expected) in [
            (Signal::MemoryAvailable, false, "unknown far-above above important below"),
            (Signal::NodeFsAvailable, false, "unknown far-above above important below"),
            (Signal::ImageFsAvailable, true, "unknown above important far-above below"),
            (Signal::NodeFsAvailable, true, "unknown far-above important above below"),
            (Signal::NodeFsInodesFree, false, "unknown below far-above above important"),
            (Signal::PidAvailable, false, "unknown far-above above below important"),
        ] {
            let candidates = pods.iter().map(|(uid, pod, used)| Candidate::new(uid, pod, used.as_ref())).collect();
            assert_eq!(ranked(signal, has_image_fs, candidates).join(" "), expected, "{signal:?} {has_image_fs}");
        }
    }
}
