//! Questions to a pod's spec: its containers, their kinds, and when they run again.

use std::{borrow::Cow, sync::LazyLock};

use corten_api::core::v1::{Container, ContainerRestartRule, EphemeralContainer, Pod, PodSpec};

use crate::Exit;

/// Does the container run again after this exit?
pub(crate) fn restarts(pod: &Pod, container: &Container, exit: &Exit) -> bool {
    if is_ephemeral(pod, &container.name) {
        return false;
    }
    // The first rule that fits decides; both actions end in a start.
    if crate::spec::pod::rule(container, exit).is_some() {
        return true;
    }
    let of_pod = spec_of(pod).restart_policy.as_deref().unwrap_or("Always");
    match container.restart_policy.as_deref().unwrap_or(of_pod) {
        "Never" => false,
        "OnFailure" => exit.code != 0,
        // An init container that succeeded is done, whatever the pod's policy; a sidecar is not.
        _ => exit.code != 0 || is_sidecar(container) || !is_init(pod, &container.name),
    }
}

/// From a manifest of this node, not from the API.
pub(crate) fn is_static(pod: &Pod) -> bool {
    let source = pod.metadata.annotations.as_ref().and_then(|it| it.get("kubernetes.io/config.source"));
    source.is_some_and(|it| it != "api")
}

pub(crate) fn spec_of(pod: &Pod) -> &PodSpec {
    static NONE: LazyLock<PodSpec> = LazyLock::new(PodSpec::default);
    pod.spec.as_ref().unwrap_or(&NONE)
}

/// Empty where it has none.
pub(crate) fn uid_of(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}

/// Init containers, then the others.
pub(crate) fn all_containers(pod: &Pod) -> impl Iterator<Item = &Container> {
    let spec = spec_of(pod);
    spec.init_containers.iter().flatten().chain(&spec.containers)
}

pub(crate) fn container_named<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    all_containers(pod).find(|it| it.name == name)
}

/// As `container_named`, of ephemeral containers too.
pub(crate) fn any_container_named<'a>(pod: &'a Pod, name: &str) -> Option<Cow<'a, Container>> {
    let ephemeral = || ephemeral_containers(pod).find(|it| it.name == name).map(as_container);
    container_named(pod, name).map(Cow::Borrowed).or_else(|| ephemeral().map(Cow::Owned))
}

/// Containers that join a pod to look around in it: they start once, whatever the others do, and nothing waits for them.
pub(crate) fn ephemeral_containers(pod: &Pod) -> impl Iterator<Item = &EphemeralContainer> {
    spec_of(pod).ephemeral_containers.iter().flatten()
}

pub(crate) fn is_ephemeral(pod: &Pod, name: &str) -> bool {
    ephemeral_containers(pod).any(|it| it.name == name)
}

/// All that an ephemeral container has in common with others. Probes, hooks, ports and resources the API server refuses.
pub(crate) fn as_container(it: &EphemeralContainer) -> Container {
    Container {
        args: it.args.clone(),
        command: it.command.clone(),
        env: it.env.clone(),
        env_from: it.env_from.clone(),
        image: it.image.clone(),
        image_pull_policy: it.image_pull_policy.clone(),
        name: it.name.clone(),
        security_context: it.security_context.clone(),
        stdin: it.stdin,
        stdin_once: it.stdin_once,
        termination_message_path: it.termination_message_path.clone(),
        termination_message_policy: it.termination_message_policy.clone(),
        tty: it.tty,
        volume_devices: it.volume_devices.clone(),
        volume_mounts: it.volume_mounts.clone(),
        working_dir: it.working_dir.clone(),
        ..Container::default()
    }
}

pub(crate) fn is_init(pod: &Pod, name: &str) -> bool {
    spec_of(pod).init_containers.iter().flatten().any(|it| it.name == name)
}

/// An init container that keeps running beside the others.
pub(crate) fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

pub(crate) fn field_path(pod: &Pod, name: &str) -> String {
    let list = match () {
        () if is_init(pod, name) => "initContainers",
        () if is_ephemeral(pod, name) => "ephemeralContainers",
        () => "containers",
    };
    format!("spec.{list}{{{name}}}")
}

pub(crate) fn is_system_critical(pod: &Pod) -> bool {
    const SYSTEM: i32 = 2_000_000_000;
    spec_of(pod).priority.is_some_and(|it| it >= SYSTEM)
}

/// The first rule that is about this exit.
pub(crate) fn rule<'a>(container: &'a Container, exit: &Exit) -> Option<&'a ContainerRestartRule> {
    container.restart_policy_rules.iter().flatten().find(|rule| {
        rule.exit_codes.as_ref().is_some_and(|codes| {
            let is_listed = codes.values.iter().flatten().any(|it| *it == exit.code);
            is_listed == (codes.operator == "In")
        })
    })
}
