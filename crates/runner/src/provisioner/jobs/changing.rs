//! Grows volumes, and changes them as a VolumeAttributesClass says: what drivers do, between what is written of it.

use corten_api::resources::PERSISTENT_VOLUMES;
use corten_client::{Client, PatchType};
use corten_meta::Key;
use corten_provisioner::{Failure, FailureKind, Grown, Growth, MESSAGE, Modification, NodeGrowth};
use serde_json::{Value, json};

use super::{not_written, refused, told, unasked, write_status};
use crate::provisioner::hands::{Unchanged, VolumeHands};

/// The node's part: what is done with the driver, between what is written of it.
pub(crate) async fn grow_on_node(
    client: &Client,
    growth: &NodeGrowth,
    grown: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let write = async |status: &Option<Value>| match status {
        Some(status) => write_status(client, &growth.claim, status).await,
        None => Ok(()),
    };
    write(&growth.begun).await?;
    let Err(failure) = grown.await else { return write(&growth.done).await };
    let status = match failure.kind {
        FailureKind::Open | FailureKind::Unasked => &None,
        FailureKind::Refused => &growth.failed,
        FailureKind::Infeasible => &growth.infeasible,
    };
    let why = format!("failed to expand pvc with {}", failure.message);
    write(&status.as_ref().map(|it| with_message(it, &why))).await?;
    Err(failure)
}

pub(super) async fn expand(client: &Client, hands: &dyn VolumeHands, growth: &Growth) -> Result<bool, Failure> {
    write_status(client, &growth.claim, &growth.begun).await.map_err(unasked)?;
    let secrets = told(client, growth.secret.as_ref()).await?;
    let expanded = match growth.is_asked {
        true => hands.expand(growth.driver.clone(), growth.told.clone(), growth.bytes, secrets).await,
        // As external-resizer's `trivialResizer`.
        false => Ok(Grown { bytes: 0, needs_node: true }),
    };
    match expanded {
        Ok(grown) => {
            let (size, status) = growth.ended(grown);
            if let Some(size) = size {
                let patch = json!({ "spec": { "capacity": { "storage": size } } });
                let key = Key::cluster(growth.volume.as_str());
                let patched = client.patch(&PERSISTENT_VOLUMES, &key, "", &PatchType::Merge, &patch).await;
                patched.map_err(not_written)?;
            }
            write_status(client, &growth.claim, &status).await?;
            Ok(grown.needs_node)
        }
        Err(refusal) => {
            let status = if refusal.kind == FailureKind::Infeasible { &growth.infeasible } else { &growth.failed };
            write_status(client, &growth.claim, &with_message(status, &refusal.message)).await?;
            Err(refused(refusal))
        }
    }
}

/// A status whose condition says why.
fn with_message(status: &Value, message: &str) -> Value {
    let mut status = status.clone();
    for condition in status["conditions"].as_array_mut().into_iter().flatten() {
        if condition["message"] == MESSAGE {
            condition["message"] = message.into();
        }
    }
    status
}

/// As external-resizer's `controllerModifyVolumeWithTarget`: the volume's object before the claim's.
pub(super) async fn modify(client: &Client, hands: &dyn VolumeHands, it: &Modification) -> Result<(), Failure> {
    let secrets = told(client, it.secret.as_ref()).await?;
    write_status(client, &it.claim, &it.begun).await.map_err(unasked)?;
    let changed = hands.modify(it.driver.clone(), it.handle.clone(), it.parameters.clone(), secrets).await;
    if let Err(Unchanged { message, kind }) = changed {
        let status = if kind == FailureKind::Infeasible { &it.infeasible } else { &it.failed };
        let why = format!("ModifyVolume failed with error: {message}. Waiting for retry.");
        write_status(client, &it.claim, &with_message(status, &why)).await?;
        return Err(Failure { message, kind, ..Failure::default() });
    }
    let patch = json!({ "spec": { "volumeAttributesClassName": it.class } });
    let key = Key::cluster(it.volume.as_str());
    client.patch(&PERSISTENT_VOLUMES, &key, "", &PatchType::Merge, &patch).await.map_err(not_written)?;
    write_status(client, &it.claim, &it.done).await
}
