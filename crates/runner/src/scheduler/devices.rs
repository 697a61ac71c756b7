//! Writes what claims for devices were given, before their pod is bound; and the claim for the pod's extended resources.

use corten_api::resources::{PODS, RESOURCE_CLAIMS};
use corten_client::{Client, DeleteParams, Error, PatchType, decode};
use corten_meta::{Key, ObjectMeta};
use corten_scheduler::{CLAIM_FINALIZER, ClaimRelease, ClaimReservation, ExtendedClaimWrite, NewClaim};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct OnlyMeta {
    metadata: ObjectMeta,
}

/// A claim that was made, until its pod is bound.
pub(super) struct MadeClaim {
    key: Key,
    uid: String,
    /// Those of others.
    finalizers: Vec<String>,
}

/// All that a pod's devices are written into.
pub(super) async fn reserve_all(
    client: &Client,
    (pod, uid): (&Key, &str),
    claims: Vec<ClaimReservation>,
    extended: Option<ExtendedClaimWrite>,
) -> Result<Option<MadeClaim>, Error> {
    reserve(client, claims).await?;
    match extended {
        Some(write) => extend(client, pod, uid, write).await,
        None => Ok(None),
    }
}

/// Whoever changed a claim meanwhile is right: the next try sees it.
pub(super) async fn release(client: &Client, claims: Vec<ClaimRelease>) {
    for it in claims {
        let released = client.patch(&RESOURCE_CLAIMS, &it.claim, "status", &PatchType::Merge, &it.patch).await;
        if let Err(error) = released {
            tracing::debug!(claim = %it.claim, %error, "cannot take the devices from a claim");
        }
    }
}

/// Up to the first that is not taken: somebody else changed it, and the pod is tried again.
async fn reserve(client: &Client, claims: Vec<ClaimReservation>) -> Result<(), Error> {
    for it in claims {
        let mut version = it.resource_version;
        if let Some(finalizers) = it.finalizers {
            let metadata = json!({ "uid": it.uid, "resourceVersion": version, "finalizers": finalizers });
            let patch = json!({ "metadata": metadata });
            let answer = client.patch(&RESOURCE_CLAIMS, &it.claim, "", &PatchType::Merge, &patch).await?;
            version = decode::<OnlyMeta>(&answer)?.metadata.resource_version;
        }
        let patch = json!({ "metadata": { "uid": it.uid, "resourceVersion": version }, "status": it.status });
        client.patch(&RESOURCE_CLAIMS, &it.claim, "status", &PatchType::Merge, &patch).await?;
    }
    Ok(())
}

/// Makes the claim for a pod's extended resources, and names it in the pod's status. It is there only if all of that is done, or
/// if it is not known whether it was made: then it is stale at the next try.
async fn extend(client: &Client, pod: &Key, uid: &str, write: ExtendedClaimWrite) -> Result<Option<MadeClaim>, Error> {
    let NewClaim { claim, status, mappings } = match write {
        ExtendedClaimWrite::Make(it) => *it,
        ExtendedClaimWrite::Forget => return name(client, pod, uid, Value::Null).await.map(|()| None),
    };
    let answer = client.create(&RESOURCE_CLAIMS, &pod.namespace, &claim).await?;
    let meta = decode::<OnlyMeta>(&answer)?.metadata;
    let made = MadeClaim { key: meta.key(), uid: meta.uid.clone(), finalizers: meta.finalizers.clone() };
    let mut finalizers = meta.finalizers;
    finalizers.push(CLAIM_FINALIZER.to_owned());
    let reservation = ClaimReservation {
        claim: made.key.clone(),
        uid: meta.uid,
        resource_version: meta.resource_version,
        finalizers: Some(finalizers),
        status,
    };
    let named = json!({ "resourceClaimName": made.key.name, "requestMappings": mappings });
    let mut done = reserve(client, vec![reservation]).await;
    if done.is_ok() {
        done = name(client, pod, uid, named).await;
    }
    match done {
        Ok(()) => Ok(Some(made)),
        Err(error) => {
            take_back(client, made).await;
            Err(error)
        }
    }
}

async fn name(client: &Client, pod: &Key, uid: &str, status: Value) -> Result<(), Error> {
    let patch = json!({ "metadata": { "uid": uid }, "status": { "extendedResourceClaimStatus": status } });
    client.patch(&PODS, pod, "status", &PatchType::Merge, &patch).await.map(drop)
}

/// Its pod is not where its devices are. One that cannot be deleted is stale at the next try.
pub(super) async fn take_back(client: &Client, made: MadeClaim) {
    if let Err(error) = delete(client, &made.key, &made.uid, &made.finalizers).await {
        tracing::debug!(claim = %made.key, %error, "cannot delete the claim for extended resources");
    }
}

/// Deletes a claim that keeps no more than these finalizers; one that is not there is deleted.
pub(super) async fn delete(client: &Client, claim: &Key, uid: &str, finalizers: &[String]) -> Result<(), Error> {
    let patch = json!({ "metadata": { "uid": uid, "finalizers": finalizers } });
    let unprotected = client.patch(&RESOURCE_CLAIMS, claim, "", &PatchType::Merge, &patch).await;
    let deleted = match unprotected {
        Ok(_) => {
            let params = DeleteParams { uid: Some(uid.to_owned()), ..DeleteParams::default() };
            client.delete(&RESOURCE_CLAIMS, claim, &params).await
        }
        Err(error) => Err(error),
    };
    match deleted {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
