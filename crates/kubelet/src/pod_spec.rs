//! Questions to a pod's spec: its containers, their kinds, and when they run again.

use std::sync::LazyLock;

use corten_api::core::v1::{Container, Pod, PodSpec};

use crate::Exit;

/// Does the container run again after this exit?
pub(crate) fn restarts(pod: &Pod, container: &Container, exit: &Exit) -> bool {
    for rule in container.restart_policy_rules.iter().flatten().filter(|it| it.action == "Restart") {
        let Some(codes) = &rule.exit_codes else { continue };
        let is_listed = codes.values.iter().flatten().any(|it| *it == exit.code);
        if is_listed == (codes.operator == "In") {
            return true;
        }
    }
    let of_pod = spec_of(pod).restart_policy.as_deref().unwrap_or("Always");
    match container.restart_policy.as_deref().unwrap_or(of_pod) {
        "Never" => false,
        "OnFailure" => exit.code != 0,
        // An init container that succeeded is done, whatever the pod's policy; a sidecar is not.
        _ => exit.code != 0 || is_sidecar(container) || !is_init(pod, &container.name),
    }
}

pub(crate) fn spec_of(pod: &Pod) -> &PodSpec {
    static NONE: LazyLock<PodSpec> = LazyLock::new(PodSpec::default);
    pod.spec.as_ref().unwrap_or(&NONE)
}

/// Init containers, then the others.
pub(crate) fn all_containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = spec_of(pod);
    spec.init_containers.iter().flatten().chain(&spec.containers)
}

pub(crate) fn container_named<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    all_containers(pod).find(|it| it.name == name)
}

pub(crate) fn is_init(pod: &Pod, name: &str) -> bool {
    spec_of(pod).init_containers.iter().flatten().any(|it| it.name == name)
}

/// An init container that keeps running beside the others.
pub(crate) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

pub(crate) fn field_path(pod: &Pod, name: &str) -> String {
    let list = if is_init(pod, name) { "initContainers" } else { "containers" };
    format!("spec.{list}{{{name}}}")
}
