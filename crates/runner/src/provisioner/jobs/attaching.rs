//! Attaches volumes to nodes, and detaches them, as external-attacher's `csiHandler`.

use corten_api::{
    resources::{CSI_NODES, PERSISTENT_VOLUMES, VOLUME_ATTACHMENTS},
    storage::v1::CSINode,
};
use corten_client::{Client, PatchType};
use corten_meta::{Key, Time};
use corten_provisioner::{ASKED, AttachedVolume, Attaching, Failure, NODE_ID};
use serde_json::{Value, json};

use super::{failed, gone, not_written, refused, told};
use crate::provisioner::hands::VolumeHands;

/// gRPC's code.
const RESOURCE_EXHAUSTED: i32 = 8;

/// As external-attacher's `csiHandler`: marked, attached, told; what fails is told, too.
pub(super) async fn attach(client: &Client, hands: &dyn VolumeHands, it: &Attaching) -> Result<(), Failure> {
    let attached = async {
        let volume = it.volume.clone().map_err(failed)?;
        // Nothing is held where there is nothing to detach (external-attacher's `trivialHandler`).
        if !it.is_asked {
            return Ok(Default::default());
        }
        let node_id = node_id(client, it).await?;
        mark(client, it, &volume, &node_id).await?;
        let secrets = told(client, it.secret.as_ref()).await?;
        hands.attach(it.driver.clone(), volume, node_id, secrets).await.map_err(refused)
    };
    match attached.await {
        Ok(metadata) => {
            let status = json!({ "attached": true, "attachmentMetadata": metadata, "attachError": null });
            write_attachment(client, it, "status", json!({ "status": status })).await
        }
        Err(failure) => tell_refused(client, it, "attachError", failure).await,
    }
}

pub(super) async fn detach(client: &Client, hands: &dyn VolumeHands, it: &Attaching) -> Result<(), Failure> {
    let detached = async {
        // One that was marked though there was nothing to ask, whatever has become of its volume.
        if !it.is_asked {
            return Ok(());
        }
        let volume = it.volume.clone().map_err(failed)?;
        let node_id = node_id(client, it).await?;
        let secrets = told(client, it.secret.as_ref()).await?;
        hands.detach(it.driver.clone(), volume.handle, node_id, secrets).await.map_err(refused)
    };
    if let Err(failure) = detached.await {
        return tell_refused(client, it, "detachError", failure).await;
    }
    let status = json!({ "attached": false, "attachmentMetadata": null, "detachError": null });
    write_attachment(client, it, "status", json!({ "status": status })).await?;
    // Somebody's finalizer may have come in between: then it is looked at again.
    let seen = client.get_as::<Value>(&VOLUME_ATTACHMENTS, &Key::cluster(it.attachment.as_str())).await;
    let mut found = match seen {
        Err(error) if error.is_not_found() => return Ok(()),
        other => other.map_err(not_written)?,
    };
    let held = found["metadata"]["finalizers"].take();
    let own = format!("external-attacher/{}", it.driver.replace('/', "-"));
    let left: Vec<Value> = held.as_array().into_iter().flatten().filter(|it| **it != *own).cloned().collect();
    let version = found["metadata"]["resourceVersion"].take();
    write_attachment(client, it, "", json!({ "metadata": { "resourceVersion": version, "finalizers": left } })).await
}

/// Says in the attachment and the volume that they are held, before the driver does anything.
async fn mark(client: &Client, it: &Attaching, volume: &AttachedVolume, node_id: &str) -> Result<(), Failure> {
    let marks = json!({ "annotations": { NODE_ID: node_id, ASKED: "true" }, "finalizers": it.finalizers, "resourceVersion": it.version });
    let (key, patch) = (Key::cluster(it.attachment.as_str()), json!({ "metadata": marks }));
    // One that is gone is attached no more: nobody would detach it.
    let marked = client.patch(&VOLUME_ATTACHMENTS, &key, "", &PatchType::Merge, &patch).await;
    marked.map_err(not_written)?;
    let Some((version, finalizers)) = &volume.hold else { return Ok(()) };
    let patch = json!({ "metadata": { "resourceVersion": version, "finalizers": finalizers } });
    let key = Key::cluster(volume.volume.as_str());
    client.patch(&PERSISTENT_VOLUMES, &key, "", &PatchType::Merge, &patch).await.map(drop).map_err(not_written)
}

async fn write_attachment(client: &Client, it: &Attaching, subresource: &str, patch: Value) -> Result<(), Failure> {
    let key = Key::cluster(it.attachment.as_str());
    gone(client.patch(&VOLUME_ATTACHMENTS, &key, subresource, &PatchType::Merge, &patch).await).map_err(not_written)
}

async fn tell_refused(client: &Client, it: &Attaching, field: &str, failure: Failure) -> Result<(), Failure> {
    let time: Time = it.now;
    // The one code that kubelets look at. An earlier one goes.
    let code = failure.is_exhausted.then_some(RESOURCE_EXHAUSTED);
    let patch = json!({ "status": { field: { "time": time, "message": failure.message, "errorCode": code } } });
    write_attachment(client, it, "status", patch).await?;
    Err(failure)
}

/// The driver's name for the node.
async fn node_id(client: &Client, it: &Attaching) -> Result<String, Failure> {
    if let Some(known) = &it.node_id {
        return Ok(known.clone());
    }
    let found = client.get_as::<CSINode>(&CSI_NODES, &Key::cluster(it.node.as_str())).await;
    let found = found.map_err(|error| failed(format!("CSINode {}: {error}", it.node)))?;
    let driver = found.spec.drivers.into_iter().find(|driver| driver.name == it.driver);
    let missing = || failed(format!("CSINode {} does not contain driver {}", it.node, it.driver));
    driver.map(|it| it.node_id).ok_or_else(missing)
}
