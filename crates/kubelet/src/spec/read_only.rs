//! Mounts that are read-only with all that is mounted beneath them: only where the runtime can.

use corten_api::core::v1::{Pod, PodStatus, VolumeMount};

use crate::{NodeFacts, spec::pod::spec_of};

/// Is the mount read-only all the way down? What was asked for and cannot be is an error, in upstream's words.
pub(crate) fn is_recursive(mount: &VolumeMount, facts: Option<&NodeFacts>) -> Result<bool, String> {
    let refused = |why: &str| {
        let volume = &mount.name;
        let prefix = "failed to resolve recursive read-only mode";
        Err(format!("{prefix}: volume {volume:?} requested recursive read-only mode, but it is {why}"))
    };
    let Some(mode) = mount.recursive_read_only.as_deref().filter(|it| *it != "Disabled") else { return Ok(false) };
    if mount.read_only != Some(true) {
        return refused("not read-only");
    }
    if let Some(propagation) = mount.mount_propagation.as_deref().filter(|it| *it != "None") {
        return refused(&format!("not compatible with propagation {propagation:?}"));
    }
    // Pods run by the usual handler, which has no name.
    let handlers = facts.map(|it| it.runtime_handlers.as_slice()).unwrap_or_default();
    let can = handlers.iter().any(|it| it.name.is_empty() && it.recursive_read_only_mounts);
    if mode == "Enabled" && !can { refused("not supported by the runtime") } else { Ok(can) }
}

/// Says of each mount what became of the wish.
pub(crate) fn show(pod: &Pod, status: &mut PodStatus, facts: Option<&NodeFacts>) {
    let spec = spec_of(pod);
    let init = (spec.init_containers.as_deref(), status.init_container_statuses.as_mut());
    for (containers, statuses) in [init, (Some(&spec.containers), status.container_statuses.as_mut())] {
        for (container, status) in containers.into_iter().flatten().zip(statuses.into_iter().flatten()) {
            let mounts = container.volume_mounts.iter().flatten();
            for (mount, shown) in mounts.zip(status.volume_mounts.iter_mut().flatten()) {
                if is_recursive(mount, facts) == Ok(true) {
                    shown.recursive_read_only = Some("Enabled".into());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RuntimeHandler;

    #[test]
    fn all_the_way_down_only_where_the_runtime_can() {
        let facts = |can: bool| {
            let usual = RuntimeHandler { recursive_read_only_mounts: can, ..RuntimeHandler::default() };
            let other = RuntimeHandler { name: "other".into(), recursive_read_only_mounts: true, ..usual.clone() };
            NodeFacts { runtime_handlers: vec![other, usual], ..NodeFacts::default() }
        };
        let (can, cannot) = (facts(true), facts(false));
        let refused = |why: &str| {
            let begin = "failed to resolve recursive read-only mode: volume \"v\" requested recursive read-only mode, but it is";
            Err(format!("{begin} {why}"))
        };
        let no_runtime = || refused("not supported by the runtime");
        for (mode, read_only, propagation, with, without) in [
            (None, true, None, Ok(false), Ok(false)),
            (Some("Disabled"), false, Some("Bidirectional"), Ok(false), Ok(false)),
            (Some("IfPossible"), true, None, Ok(true), Ok(false)),
            (Some("Enabled"), true, Some("None"), Ok(true), no_runtime()),
            (Some("Enabled"), false, None, refused("not read-only"), refused("not read-only")),
            (
                Some("IfPossible"),
                true,
                Some("HostToContainer"),
                refused("not compatible with propagation \"HostToContainer\""),
                refused("not compatible with propagation \"HostToContainer\""),
            ),
        ] {
            let mount = VolumeMount {
                name: "v".into(),
                read_only: Some(read_only),
                recursive_read_only: mode.map(str::to_owned),
                mount_propagation: propagation.map(str::to_owned),
                ..VolumeMount::default()
            };
            assert_eq!(is_recursive(&mount, Some(&can)), with, "{mount:?}");
            assert_eq!(is_recursive(&mount, Some(&cannot)), without, "{mount:?}");
        }
    }
}
