//! What is told of the containers of Pods, and, under names of their own, of init containers.

use corten_meta::Time;
use serde::Deserialize;

use crate::{
    exposition::{Number, Samples},
    family::Family,
    pod::Pod,
    quantities::{self, Amounts},
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Container {
    name: String,
    image: String,
    restart_policy: String,
    resources: Resources,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resources {
    limits: Amounts,
    requests: Amounts,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ContainerStatus {
    name: String,
    image: String,
    #[serde(rename = "imageID")]
    image_id: String,
    #[serde(rename = "containerID")]
    container_id: String,
    ready: bool,
    restart_count: i32,
    state: State,
    last_state: State,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct State {
    running: Option<Running>,
    terminated: Option<Terminated>,
    waiting: Option<Waiting>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Running {
    started_at: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Terminated {
    exit_code: i32,
    reason: String,
    started_at: Option<Time>,
    finished_at: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: String,
}

impl ContainerStatus {
    pub(crate) fn finished(&self) -> Option<Time> {
        self.state.terminated.as_ref()?.finished_at
    }

    pub(crate) fn terminated_reason(&self) -> Option<&str> {
        Some(&*self.state.terminated.as_ref()?.reason)
    }

    fn started(&self) -> Option<Time> {
        let State { running, terminated, .. } = &self.state;
        running.as_ref().and_then(|it| it.started_at).or_else(|| terminated.as_ref()?.started_at)
    }

    fn info(&self, pod: &Pod, is_init: bool, out: &mut Samples<'_>) {
        let containers = if is_init { &pod.spec.init_containers } else { &pod.spec.containers };
        let container = containers.iter().find(|it| it.name == self.name);
        let (asked, policy) = container.map_or(("", ""), |it| (&*it.image, &*it.restart_policy));
        let values = [&*self.name, asked, &*self.image, &*self.image_id, &*self.container_id, policy];
        out.add(if is_init { &values } else { &values[..5] }, 1.0);
    }
}

const CONTAINER: &[&str] = &["container"];
const CONTAINER_REASON: &[&str] = &["container", "reason"];
const CONTAINER_RESOURCE: &[&str] = &["container", "node", "resource", "unit"];

/// A sample for each container whose number is known.
fn each<N: Number>(statuses: &[ContainerStatus], out: &mut Samples<'_>, number: impl Fn(&ContainerStatus) -> N) {
    for status in statuses {
        if let Some(number) = number(status).number() {
            out.add(&[&status.name], number);
        }
    }
}

/// A sample for each container that has a reason.
fn each_reason<'s>(
    statuses: &'s [ContainerStatus],
    out: &mut Samples<'_>,
    reason: impl Fn(&'s ContainerStatus) -> Option<&'s str>,
) {
    for status in statuses {
        if let Some(reason) = reason(status).filter(|it| !it.is_empty()) {
            out.add(&[&status.name, reason], 1.0);
        }
    }
}

fn resources(pod: &Pod, containers: &[Container], out: &mut Samples<'_>, amounts: impl Fn(&Container) -> &Amounts) {
    for container in containers {
        quantities::of(amounts(container), &[&container.name, &pod.spec.node_name], out);
    }
}

fn last_reason(status: &ContainerStatus) -> Option<&str> {
    Some(&*status.last_state.terminated.as_ref()?.reason)
}

fn last_exit_code(status: &ContainerStatus) -> Option<i32> {
    Some(status.last_state.terminated.as_ref()?.exit_code)
}

fn last_finished(status: &ContainerStatus) -> Option<Time> {
    status.last_state.terminated.as_ref()?.finished_at
}

fn waiting_reason(status: &ContainerStatus) -> Option<&str> {
    Some(&*status.state.waiting.as_ref()?.reason)
}

pub(crate) const INFO: Family<Pod> = Family::gauge(
    "kube_pod_container_info",
    "Information about a container in a pod.",
    &["container", "image_spec", "image", "image_id", "container_id"],
    |it, out| it.status.container_statuses.iter().for_each(|status| status.info(it, false, out)),
);
pub(crate) const LIMITS: Family<Pod> = Family::gauge(
    "kube_pod_container_resource_limits",
    "The number of requested limit resource by a container. It is recommended to use the kube_pod_resource_limits metric exposed by kube-scheduler instead, as it is more precise.",
    CONTAINER_RESOURCE,
    |it, out| resources(it, &it.spec.containers, out, |it| &it.resources.limits),
);
pub(crate) const REQUESTS: Family<Pod> = Family::gauge(
    "kube_pod_container_resource_requests",
    "The number of requested request resource by a container. It is recommended to use the kube_pod_resource_requests metric exposed by kube-scheduler instead, as it is more precise.",
    CONTAINER_RESOURCE,
    |it, out| resources(it, &it.spec.containers, out, |it| &it.resources.requests),
);
pub(crate) const STATE_STARTED: Family<Pod> = Family::gauge(
    "kube_pod_container_state_started",
    "Start time in unix timestamp for a pod container.",
    CONTAINER,
    |it, out| each(&it.status.container_statuses, out, ContainerStatus::started),
);
pub(crate) const LAST_TERMINATED_REASON: Family<Pod> = Family::gauge(
    "kube_pod_container_status_last_terminated_reason",
    "Describes the last reason the container was in terminated state.",
    CONTAINER_REASON,
    |it, out| each_reason(&it.status.container_statuses, out, last_reason),
);
pub(crate) const LAST_TERMINATED_EXIT_CODE: Family<Pod> = Family::gauge(
    "kube_pod_container_status_last_terminated_exitcode",
    "Describes the exit code for the last container in terminated state.",
    CONTAINER,
    |it, out| each(&it.status.container_statuses, out, last_exit_code),
);
pub(crate) const LAST_TERMINATED_TIMESTAMP: Family<Pod> = Family::gauge(
    "kube_pod_container_status_last_terminated_timestamp",
    "Last terminated time for a pod container in unix timestamp.",
    CONTAINER,
    |it, out| each(&it.status.container_statuses, out, last_finished),
);
pub(crate) const READY: Family<Pod> = Family::gauge(
    "kube_pod_container_status_ready",
    "Describes whether the containers readiness check succeeded.",
    CONTAINER,
    |it, out| each(&it.status.container_statuses, out, |it| it.ready),
);
pub(crate) const RESTARTS: Family<Pod> = Family::counter(
    "kube_pod_container_status_restarts_total",
    "The number of container restarts per container.",
    CONTAINER,
    |it, out| each(&it.status.container_statuses, out, |it| it.restart_count),
);
pub(crate) const RUNNING: Family<Pod> = Family::gauge(
    "kube_pod_container_status_running",
    "Describes whether the container is currently in running state.",
    CONTAINER,
    |it, out| each(&it.status.container_statuses, out, |it| it.state.running.is_some()),
);
pub(crate) const TERMINATED: Family<Pod> = Family::gauge(
    "kube_pod_container_status_terminated",
    "Describes whether the container is currently in terminated state.",
    CONTAINER,
    |it, out| each(&it.status.container_statuses, out, |it| it.state.terminated.is_some()),
);
pub(crate) const TERMINATED_REASON: Family<Pod> = Family::gauge(
    "kube_pod_container_status_terminated_reason",
    "Describes the reason the container is currently in terminated state.",
    CONTAINER_REASON,
    |it, out| each_reason(&it.status.container_statuses, out, ContainerStatus::terminated_reason),
);
pub(crate) const WAITING: Family<Pod> = Family::gauge(
    "kube_pod_container_status_waiting",
    "Describes whether the container is currently in waiting state.",
    CONTAINER,
    |it, out| each(&it.status.container_statuses, out, |it| it.state.waiting.is_some()),
);
pub(crate) const WAITING_REASON: Family<Pod> = Family::gauge(
    "kube_pod_container_status_waiting_reason",
    "Describes the reason the container is currently in waiting state.",
    CONTAINER_REASON,
    |it, out| each_reason(&it.status.container_statuses, out, waiting_reason),
);
pub(crate) const INIT_INFO: Family<Pod> = Family::gauge(
    "kube_pod_init_container_info",
    "Information about an init container in a pod.",
    &["container", "image_spec", "image", "image_id", "container_id", "restart_policy"],
    |it, out| it.status.init_container_statuses.iter().for_each(|status| status.info(it, true, out)),
);
pub(crate) const INIT_LIMITS: Family<Pod> = Family::gauge(
    "kube_pod_init_container_resource_limits",
    "The number of requested limit resource by an init container.",
    CONTAINER_RESOURCE,
    |it, out| resources(it, &it.spec.init_containers, out, |it| &it.resources.limits),
);
pub(crate) const INIT_REQUESTS: Family<Pod> = Family::gauge(
    "kube_pod_init_container_resource_requests",
    "The number of requested request resource by an init container.",
    CONTAINER_RESOURCE,
    |it, out| resources(it, &it.spec.init_containers, out, |it| &it.resources.requests),
);
pub(crate) const INIT_STATE_STARTED: Family<Pod> = Family::gauge(
    "kube_pod_init_container_state_started",
    "Start time in unix timestamp for a pod init container.",
    CONTAINER,
    |it, out| each(&it.status.init_container_statuses, out, ContainerStatus::started),
);
pub(crate) const INIT_LAST_TERMINATED_REASON: Family<Pod> = Family::gauge(
    "kube_pod_init_container_status_last_terminated_reason",
    "Describes the last reason the init container was in terminated state.",
    CONTAINER_REASON,
    |it, out| each_reason(&it.status.init_container_statuses, out, last_reason),
);
pub(crate) const INIT_LAST_TERMINATED_EXIT_CODE: Family<Pod> = Family::gauge(
    "kube_pod_init_container_status_last_terminated_exitcode",
    "Describes the exit code for the last init container in terminated state.",
    CONTAINER,
    |it, out| each(&it.status.init_container_statuses, out, last_exit_code),
);
pub(crate) const INIT_LAST_TERMINATED_TIMESTAMP: Family<Pod> = Family::gauge(
    "kube_pod_init_container_status_last_terminated_timestamp",
    "Last terminated time for a pod init container in unix timestamp.",
    CONTAINER,
    |it, out| each(&it.status.init_container_statuses, out, last_finished),
);
pub(crate) const INIT_READY: Family<Pod> = Family::gauge(
    "kube_pod_init_container_status_ready",
    "Describes whether the init containers readiness check succeeded.",
    CONTAINER,
    |it, out| each(&it.status.init_container_statuses, out, |it| it.ready),
);
pub(crate) const INIT_RESTARTS: Family<Pod> = Family::counter(
    "kube_pod_init_container_status_restarts_total",
    "The number of restarts for the init container.",
    CONTAINER,
    |it, out| each(&it.status.init_container_statuses, out, |it| it.restart_count),
);
pub(crate) const INIT_RUNNING: Family<Pod> = Family::gauge(
    "kube_pod_init_container_status_running",
    "Describes whether the init container is currently in running state.",
    CONTAINER,
    |it, out| each(&it.status.init_container_statuses, out, |it| it.state.running.is_some()),
);
pub(crate) const INIT_TERMINATED: Family<Pod> = Family::gauge(
    "kube_pod_init_container_status_terminated",
    "Describes whether the init container is currently in terminated state.",
    CONTAINER,
    |it, out| each(&it.status.init_container_statuses, out, |it| it.state.terminated.is_some()),
);
pub(crate) const INIT_TERMINATED_REASON: Family<Pod> = Family::gauge(
    "kube_pod_init_container_status_terminated_reason",
    "Describes the reason the init container is currently in terminated state.",
    CONTAINER_REASON,
    |it, out| each_reason(&it.status.init_container_statuses, out, ContainerStatus::terminated_reason),
);
pub(crate) const INIT_WAITING: Family<Pod> = Family::gauge(
    "kube_pod_init_container_status_waiting",
    "Describes whether the init container is currently in waiting state.",
    CONTAINER,
    |it, out| each(&it.status.init_container_statuses, out, |it| it.state.waiting.is_some()),
);
pub(crate) const INIT_WAITING_REASON: Family<Pod> = Family::gauge(
    "kube_pod_init_container_status_waiting_reason",
    "Describes the reason the init container is currently in waiting state.",
    CONTAINER_REASON,
    |it, out| each_reason(&it.status.init_container_statuses, out, waiting_reason),
);
