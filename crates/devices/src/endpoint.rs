//! One plugin that has registered: what it has is listened to as long as it says something.

use std::{path::Path, time::Duration};

use corten_grpc::{Client, Status};
use corten_kubelet::PluginDevice;

use crate::{
    messages::{Device, Devices, Empty, HEALTHY, LIST_AND_WATCH, OPTIONS, PluginOptions},
    state::{Plugin, State},
};

const PATIENCE: Duration = Duration::from_secs(10);

/// Asks the plugin what it is and has, and goes on listening until it ends.
///
/// # Errors
/// It does not answer, or what it says breaks off.
pub(crate) async fn listen(state: &State, resource: &str, socket: &Path, run: u64) -> Result<(), Status> {
    let client = Client::new(socket)?;
    let options: PluginOptions = client.call(OPTIONS, Empty {}, PATIENCE).await?;
    let mut news = client.stream::<_, Devices>(LIST_AND_WATCH, Empty {}, PATIENCE).await?;
    while let Some(told) = news.message().await? {
        let devices = told.devices.into_iter().filter(|it| !it.id.is_empty()).map(device).collect();
        let plugin = Plugin { client: client.clone(), options: options.clone() };
        state.told(resource, run, plugin, devices);
    }
    Ok(())
}

fn device(it: Device) -> (String, PluginDevice) {
    let numa_nodes = it.topology.into_iter().flat_map(|it| it.nodes).map(|it| it.id).collect();
    (it.id, PluginDevice { is_healthy: it.health == HEALTHY, numa_nodes })
}
