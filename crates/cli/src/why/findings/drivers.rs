//! Volumes of drivers that no node runs: nobody attaches, detaches or removes them.

use corten_api::resources::{CSI_NODES, VOLUME_ATTACHMENTS};
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::found::Findings;
use crate::why::{
    State,
    fields::{items, one_line, text, time},
    reader::{PAGE, Reader},
};

/// Is the driver on no node? Where that cannot be seen, it is not.
pub(in crate::why) async fn run_nowhere(reader: &Reader<'_>, driver: &str) -> bool {
    let Ok(nodes) = reader.try_list(&CSI_NODES).await else { return false };
    let has = |it: &Value| items(it, "/spec/drivers").iter().any(|it| it["name"] == driver);
    !driver.is_empty() && nodes.len() < PAGE as usize && !nodes.iter().any(has)
}

/// An attachment whose driver refuses, or that nobody sees to.
pub(super) async fn attachment(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let (driver, node) = (text(object, "/spec/attacher"), text(object, "/spec/nodeName"));
    let refused = one_line(text(object, "/status/attachError/message"));
    let wait = if object["status"]["attached"] == true {
        found.verdict = Some((State::Fine, format!("its volume is attached to node {node}")));
        return;
    } else if !refused.is_empty() {
        Wait::new("AttachRefused", refused, Actor::External)
    } else if run_nowhere(reader, driver).await {
        Wait::new("DriverNowhere", format!("no node runs driver {driver}"), Actor::External)
    } else {
        Wait::new("AttachPending", format!("driver {driver} has not attached it to node {node} yet"), Actor::External)
    };
    let n_before = found.waits.len();
    found.wait(wait);
    found.begun(n_before, time(&object["metadata"]["creationTimestamp"]));
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
