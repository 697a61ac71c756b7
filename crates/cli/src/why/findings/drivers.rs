//! Volumes of drivers that no node runs: nobody attaches, detaches or removes them.

use corten_api::resources::{CSI_NODES, VOLUME_ATTACHMENTS};
use corten_reconcile::Actor;
use serde_json::Value;

use super::found::Findings;
use crate::why::{
    fields::{items, text, time},
    reader::{PAGE, Reader},
};

/// Is the driver on no node? Where that cannot be seen, it is not.
pub(in crate::why) async fn run_nowhere(reader: &Reader<'_>, driver: &str) -> bool {
    let Ok(nodes) = reader.try_list(&CSI_NODES).await else { return false };
    let has = |it: &Value| items(it, "/spec/drivers").iter().any(|it| it["name"] == driver);
    !driver.is_empty() && nodes.len() < PAGE as usize && !nodes.iter().any(has)
}

/// A volume that is to be attached, and whose driver is nowhere.
pub(super) async fn unattached(reader: &Reader<'_>, volume: &Value, found: &mut Findings) {
    let (name, driver) = (text(volume, "/metadata/name"), text(volume, "/spec/csi/driver"));
    if driver.is_empty() {
        return;
    }
    let attachments = reader.list(&VOLUME_ATTACHMENTS, "").await;
    let waits = |it: &&Value| text(it, "/spec/source/persistentVolumeName") == name && it["status"]["attached"] != true;
    let Some(waiting) = attachments.iter().find(waits) else { return };
    if run_nowhere(reader, driver).await {
        let node = text(waiting, "/spec/nodeName");
        let n_before = found.waits.len();
        let message = format!("it is to be attached to node {node}, and no node runs driver {driver}");
        found.add("DriverNowhere", message, Actor::External);
        found.begun(n_before, time(&waiting["metadata"]["creationTimestamp"]));
        // It may be bound, and is not fine.
        found.verdict = None;
    }
}
