//! Takes snapshots, finds and removes them, and says of it at their contents.

use corten_api::snapshots::{BEING_CREATED, CONTENT_FINALIZER, VOLUME_SNAPSHOT_CONTENTS};
use corten_client::{Client, PatchType};
use corten_meta::Key;
use corten_provisioner::{
    Failure, Finding, Taking, snapshot_failed, snapshot_found, snapshot_not_found, snapshot_status,
};
use serde_json::{Value, json};

use super::{failed, gone, let_go, not_written, refused, told};
use crate::provisioner::hands::VolumeHands;

/// True: it is ready.
pub(super) async fn take_snapshot(client: &Client, hands: &dyn VolumeHands, taking: &Taking) -> Result<bool, Failure> {
    let secrets = told(client, taking.secret.as_ref()).await?;
    mark_content(client, &taking.content, &json!("yes")).await?;
    match hands.create_snapshot(taking.clone(), secrets).await {
        Ok(taken) => {
            tell_content(client, &taking.content, &snapshot_status(&taken)).await?;
            mark_content(client, &taking.content, &Value::Null).await?;
            Ok(taken.is_ready)
        }
        Err(refusal) => {
            tell_content(client, &taking.content, &snapshot_failed(taking, &refusal.message)).await?;
            if refusal.is_final {
                mark_content(client, &taking.content, &Value::Null).await?;
            }
            Err(failed(refusal.message))
        }
    }
}

/// True: it is ready.
pub(super) async fn find_snapshot(
    client: &Client,
    hands: &dyn VolumeHands,
    finding: &Finding,
) -> Result<bool, Failure> {
    let found = match told(client, finding.secret.as_ref()).await {
        Ok(secrets) => {
            let (driver, handle) = (finding.driver.clone(), finding.handle.clone());
            hands.find_snapshot(driver, handle, secrets).await.map_err(refused)
        }
        Err(failure) => Err(failure),
    };
    match found {
        Ok(found) => {
            tell_content(client, &finding.content, &snapshot_found(finding, found.as_ref())).await?;
            Ok(found.is_none_or(|it| it.is_ready))
        }
        Err(failure) => {
            tell_content(client, &finding.content, &snapshot_not_found(finding, &failure.message)).await?;
            Err(failure)
        }
    }
}

/// Says that the driver is asked, or that it has answered for good.
async fn mark_content(client: &Client, content: &str, mark: &Value) -> Result<(), Failure> {
    let patch = json!({ "metadata": { "annotations": { BEING_CREATED: mark } } });
    let key = Key::cluster(content);
    gone(client.patch(&VOLUME_SNAPSHOT_CONTENTS, &key, "", &PatchType::Merge, &patch).await).map_err(not_written)
}

async fn tell_content(client: &Client, content: &str, status: &Value) -> Result<(), Failure> {
    let (key, patch) = (Key::cluster(content), json!({ "status": status }));
    gone(client.patch(&VOLUME_SNAPSHOT_CONTENTS, &key, "status", &PatchType::Merge, &patch).await).map_err(not_written)
}

pub(super) async fn remove_snapshot(
    client: &Client,
    hands: &dyn VolumeHands,
    (content, driver): (&str, &str),
    handle: Option<&str>,
    secret: Option<&Key>,
) -> Result<(), Failure> {
    if let Some(handle) = handle {
        let secrets = told(client, secret).await?;
        hands.delete_snapshot(driver.to_owned(), handle.to_owned(), secrets).await.map_err(refused)?;
    }
    let own = [CONTENT_FINALIZER.to_string()];
    let_go(client, &VOLUME_SNAPSHOT_CONTENTS, &Key::cluster(content), &own).await.map_err(not_written)
}
