//! May a pod have as much on the disk as it has? The limits of its containers, and those of its emptyDirs.

use corten_api::core::v1::{Container, Pod};
use corten_meta::Quantity;

use crate::{
    ContainerUse, DiskUse, PodUse,
    spec::{
        downward::quantity,
        pod::{is_sidecar, spec_of},
    },
};

const STORAGE: &str = "ephemeral-storage";

/// What a pod has too much of: upstream's message, and its name in the metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excess {
    pub(crate) signal: &'static str,
    pub(crate) message: String,
}

/// Is there anything to be measured for?
pub(crate) fn has_limits(pod: &Pod) -> bool {
    spec_of(pod).volumes.iter().flatten().any(|it| size_limit(it).is_some()) || pod_limit(pod).is_some()
}

/// As in `localStorageEviction`: of several the first is told, emptyDirs before the pod as a whole before single containers.
pub(crate) fn excess(pod: &Pod, used: &PodUse, has_image_fs: bool) -> Option<Excess> {
    of_volumes(pod, used).or_else(|| of_pod(pod, used)).or_else(|| of_containers(pod, used, has_image_fs))
}

fn size_limit(volume: &corten_api::core::v1::Volume) -> Option<Quantity> {
    let limit: Quantity = volume.empty_dir.as_ref()?.size_limit.as_ref()?.0.parse().ok()?;
    (!limit.is_zero() && !limit.is_negative()).then_some(limit)
}

fn of_volumes(pod: &Pod, used: &PodUse) -> Option<Excess> {
    spec_of(pod).volumes.iter().flatten().find_map(|volume| {
        let limit = size_limit(volume)?;
        let taken = used.volumes.iter().find(|it| it.name == volume.name)?.taken;
        let message = || format!("Usage of EmptyDir volume {:?} exceeds the limit \"{limit}\". ", volume.name);
        let is_over = Quantity::bytes(taken.bytes) > limit;
        is_over.then(|| Excess { signal: "emptydirfs.limit", message: message() })
    })
}

/// The containers' limits together; an init container counts where it alone may have more. `None` without any.
fn pod_limit(pod: &Pod) -> Option<Quantity> {
    let spec = spec_of(pod);
    let of = |it: &Container| quantity(it, true, STORAGE);
    let init = || spec.init_containers.iter().flatten();
    let all = || spec.containers.iter().chain(init()).filter_map(of);
    all().next()?;
    let sidecars = init().filter(|it| is_sidecar(it));
    let together = spec.containers.iter().chain(sidecars).filter_map(of).fold(Quantity::ZERO, Quantity::plus);
    Some(init().filter(|it| !is_sidecar(it)).filter_map(of).fold(together, Ord::max))
}

fn of_pod(pod: &Pod, used: &PodUse) -> Option<Excess> {
    let limit = pod_limit(pod)?;
    let volumes = used.volumes.iter().filter(|it| it.is_ephemeral).map(|it| it.taken);
    let containers = used.containers.iter().map(on_disk);
    let taken = containers.chain(volumes).fold(used.other, DiskUse::plus);
    let message = || format!("Pod ephemeral local storage usage exceeds the total limit of containers {limit}. ");
    let is_over = Quantity::bytes(taken.bytes) > limit;
    is_over.then(|| Excess { signal: "ephemeralpodfs.limit", message: message() })
}

fn on_disk(it: &ContainerUse) -> DiskUse {
    it.logs.plus(it.rootfs.unwrap_or_default())
}

fn of_containers(pod: &Pod, used: &PodUse, has_image_fs: bool) -> Option<Excess> {
    used.containers.iter().find_map(|it| {
        let container = spec_of(pod).containers.iter().find(|container| container.name == it.name)?;
        let limit = quantity(container, true, STORAGE).filter(|it| !it.is_zero())?;
        let taken = if has_image_fs { it.logs } else { on_disk(it) };
        let message =
            || format!("Container {} exceeded its local ephemeral storage limit \"{limit}\". ", container.name);
        let is_over = Quantity::bytes(taken.bytes) > limit;
        is_over.then(|| Excess { signal: "ephemeralcontainerfs.limit", message: message() })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::VolumeUse;

    #[test]
    fn upstreams_messages() {
        let of = |bytes| DiskUse { bytes, inodes: 1 };
        let limited = json!({"spec": {
            "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}, {"name": "w", "emptyDir": {}}],
            "containers": [
                {"name": "a", "resources": {"limits": {"ephemeral-storage": "2Mi"}}},
                {"name": "b", "resources": {"limits": {"ephemeral-storage": "4Mi"}}},
            ],
        }});
        let limited: Pod = serde_json::from_value(limited).expect("a pod");
        assert!(has_limits(&limited) && !has_limits(&Pod { spec: Some(Default::default()), ..Pod::default() }));
        const MI: i64 = 1 << 20;
        for (volumes, a, b, has_image_fs, expected) in [
            ([MI, MI], (MI, 0), (MI, 0), false, ""),
            ([MI + 1, 0], (0, 0), (0, 0), false, "Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". "),
            (
                [0, 5 * MI],
                (MI, 0),
                (0, 1),
                false,
                "Pod ephemeral local storage usage exceeds the total limit of containers 6Mi. ",
            ),
            ([0, 0], (2 * MI, 1), (0, 0), false, "Container a exceeded its local ephemeral storage limit \"2Mi\". "),
            ([0, 0], (2 * MI, 1), (0, 0), true, ""),
        ] {
            let container = |name: &str, (layer, logs): (i64, i64)| ContainerUse {
                name: name.into(),
                rootfs: Some(of(layer)),
                logs: of(logs),
                ..ContainerUse::default()
            };
            let volume = |name: &str, bytes| VolumeUse { name: name.into(), taken: of(bytes), is_ephemeral: true };
            let used = PodUse {
                containers: vec![container("a", a), container("b", b)],
                volumes: vec![volume("v", volumes[0]), volume("w", volumes[1])],
                ..PodUse::default()
            };
            let found = excess(&limited, &used, has_image_fs).map(|it| it.message).unwrap_or_default();
            assert_eq!(found, expected);
        }
    }
}
