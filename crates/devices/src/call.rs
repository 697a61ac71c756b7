//! What a plugin is asked, and how it is told where it fails.

use std::time::Duration;

use corten_grpc::{Client, Status};
use corten_kubelet::{AllocatedDevices, DeviceWish, Granted, GrantedDevice, GrantedMount};

use crate::messages::{
    ALLOCATE, Allocated, ContainerAllocated, ContainersIds, Empty, Ids, PRE_START, PREFER, PluginOptions,
    PreferredRequest, PreferredRequests,
};

/// For what is asked amid an admission; upstream waits without end.
const PATIENCE: Duration = Duration::from_secs(60);
/// The device plugin API's `KubeletPreStartContainerRPCTimeoutInSecs`.
const PRE_START_PATIENCE: Duration = Duration::from_secs(30);

/// Asks for devices: first which ones, where the plugin has preferences.
pub(crate) async fn allocate(
    client: &Client,
    options: &PluginOptions,
    wish: DeviceWish,
) -> Result<AllocatedDevices, String> {
    let ids = if options.get_preferred_allocation_available { preferred(client, &wish).await? } else { None };
    let ids = ids.unwrap_or_else(|| wish.ids.clone());
    let question = ContainersIds { containers: vec![Ids { ids: ids.clone() }] };
    let answer: Allocated = client.call(ALLOCATE, question, PATIENCE).await.map_err(|it| told(&it))?;
    let given = answer.containers.into_iter().next();
    let given = given.ok_or_else(|| format!("the plugin of {} answered for no container", wish.resource))?;
    Ok(AllocatedDevices { container: wish.container, resource: wish.resource, ids, granted: granted(given)? })
}

/// `None`: what it prefers is not among what it was asked about, or not as many.
async fn preferred(client: &Client, wish: &DeviceWish) -> Result<Option<Vec<String>>, String> {
    let request = PreferredRequest {
        available: wish.available.clone(),
        must_include: wish.must_include.clone(),
        size: i32::try_from(wish.ids.len()).unwrap_or(i32::MAX),
    };
    let question = PreferredRequests { containers: vec![request] };
    let answer: ContainersIds = client.call(PREFER, question, PATIENCE).await.map_err(|it| told(&it))?;
    let chosen = answer.containers.into_iter().next().map(|it| it.ids).unwrap_or_default();
    Ok(Some(chosen).filter(|it| is_choice(it, wish)))
}

fn is_choice(chosen: &[String], wish: &DeviceWish) -> bool {
    let mut distinct = chosen.to_vec();
    distinct.sort();
    distinct.dedup();
    let has_all = wish.must_include.iter().all(|it| chosen.contains(it));
    distinct.len() == wish.ids.len()
        && chosen.len() == distinct.len()
        && has_all
        && chosen.iter().all(|it| wish.available.contains(it))
}

/// Tells a plugin that a container with its devices is about to start.
pub(crate) async fn pre_start(client: &Client, ids: &[String]) -> Result<(), String> {
    let question = Ids { ids: ids.to_vec() };
    let answer = client.call::<_, Empty>(PRE_START, question, PRE_START_PATIENCE).await;
    answer.map(drop).map_err(|it| told(&it))
}

/// What names no place is refused: the runtime would take it for one of its own.
fn granted(given: ContainerAllocated) -> Result<Granted, String> {
    let places = given.mounts.iter().flat_map(|it| [&it.container_path, &it.host_path]);
    let places = places.chain(given.devices.iter().flat_map(|it| [&it.container_path, &it.host_path]));
    if let Some(place) = places.into_iter().find(|it| !it.starts_with('/')) {
        return Err(format!("the plugin gives {place:?}, which is no absolute path"));
    }
    let mounts = given.mounts.into_iter().map(|it| GrantedMount {
        container_path: it.container_path,
        host_path: it.host_path,
        read_only: it.read_only,
    });
    let devices = given.devices.into_iter().map(|it| GrantedDevice {
        container_path: it.container_path,
        host_path: it.host_path,
        permissions: it.permissions,
    });
    Ok(Granted {
        env: given.envs.into_iter().collect(),
        mounts: mounts.collect(),
        devices: devices.collect(),
        annotations: given.annotations.into_iter().collect(),
        cdi_devices: given.cdi_devices.into_iter().map(|it| it.name).collect(),
    })
}

/// As grpc-go writes it.
pub(crate) fn told(status: &Status) -> String {
    format!("rpc error: code = {:?} desc = {}", status.code(), status.message())
}
