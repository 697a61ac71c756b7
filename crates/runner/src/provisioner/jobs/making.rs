//! Has a driver make a volume that is nobody's yet, and is what was asked for.

use corten_client::Client;
use corten_kubelet::Secrets;
use corten_provisioner::{Created, Failure, FailureKind, Handles, Request};

use super::{failed, refused, told};
use crate::provisioner::answered::Answered;
use crate::provisioner::hands::VolumeHands;

/// How often a volume is to be deleted that is not what was asked for, before that is told.
const DELETIONS_MAX: u32 = 5;

/// Has the driver make a volume that is nobody's yet, and is what was asked for.
pub(super) async fn create(
    client: &Client,
    hands: &dyn VolumeHands,
    answered: &Answered,
    request: &Request,
    others: &Handles,
) -> Result<Created, Failure> {
    let secrets = told(client, request.secrets.provisioner.as_ref()).await?;
    let created = hands.create(request.clone(), secrets.clone()).await.map_err(refused)?;
    let other = others.get(&created.handle).cloned();
    let taken = || answered.take(&request.driver, &created.handle, &request.name).err();
    if let Some(other) = other.or_else(taken) {
        let handle = &created.handle;
        let message = format!("the driver answers with volume {handle:?}, which is that of PersistentVolume {other}");
        return Err(Failure { message, kind: FailureKind::Refused, ..Failure::default() });
    }
    match created.refused {
        Some(why) => Err(clean_up(hands, answered, (request, &created.handle), secrets, why).await),
        None => Ok(created),
    }
}

/// As external-provisioner's `cleanupVolume`. What cannot be removed is asked for again, and removed then.
async fn clean_up(
    hands: &dyn VolumeHands,
    answered: &Answered,
    (request, handle): (&Request, &str),
    secrets: Secrets,
    why: String,
) -> Failure {
    let mut failure = None;
    for _ in 0..DELETIONS_MAX {
        match hands.delete(request.driver.clone(), handle.to_owned(), secrets.clone()).await {
            Ok(()) => {
                answered.forget(&request.driver, handle);
                return Failure { message: why, kind: FailureKind::Refused, ..Failure::default() };
            }
            Err(refusal) => failure = Some(refusal.message),
        }
    }
    let failure = failure.unwrap_or_default();
    failed(format!("{why}. Cleanup of volume {} failed, volume is orphaned: {failure}", request.name))
}
