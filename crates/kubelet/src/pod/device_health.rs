//! How the devices do that containers were given (`allocatedResourcesStatus`, KEP-4680).

use corten_api::core::v1::{ContainerStatus, Pod, PodStatus, ResourceHealth, ResourceStatus};

use crate::{node::devices::DevicesHealth, pod::context::Context};

/// Says it of every container that has devices. Before anything is known of devices, what was said holds.
pub(crate) fn show(pod: &Pod, status: &mut PodStatus, cx: &Context<'_>) {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let told = pod.status.iter().flat_map(|it| [&it.init_container_statuses, &it.container_statuses]);
    let told: Vec<&ContainerStatus> = told.flatten().flatten().collect();
    let lists = [&mut status.init_container_statuses, &mut status.container_statuses];
    for status in lists.into_iter().flatten().flatten() {
        let before = || told.iter().find(|it| it.name == status.name)?.allocated_resources_status.clone();
        let shown = if cx.devices.are_known { Some(of_container(uid, status, cx)) } else { before() };
        status.allocated_resources_status = shown.filter(|it| !it.is_empty());
    }
}

fn of_container(uid: &str, status: &ContainerStatus, cx: &Context<'_>) -> Vec<ResourceStatus> {
    let health = |(resource_id, is_healthy): (String, Option<bool>)| {
        let health = match is_healthy {
            Some(true) => "Healthy",
            Some(false) => "Unhealthy",
            None => "Unknown",
        };
        ResourceHealth { resource_id, health: Some(health.to_owned()), ..ResourceHealth::default() }
    };
    let of_resource = |(name, devices): (String, DevicesHealth)| ResourceStatus {
        name,
        resources: Some(devices.into_iter().map(health).collect()),
    };
    cx.devices.health(uid, &status.name).into_iter().map(of_resource).collect()
}
