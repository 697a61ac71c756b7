//! Writes what claims for devices were given, before their pod is bound.

use corten_api::resources::RESOURCE_CLAIMS;
use corten_client::{Client, Error, PatchType, decode};
use corten_meta::ObjectMeta;
use corten_scheduler::ClaimReservation;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Written {
    metadata: ObjectMeta,
}

/// Up to the first that is not taken: somebody else changed it, and the pod is tried again.
pub(super) async fn reserve(client: &Client, claims: Vec<ClaimReservation>) -> Result<(), Error> {
    for it in claims {
        let mut version = it.resource_version;
        if let Some(finalizers) = it.finalizers {
            let metadata = json!({ "uid": it.uid, "resourceVersion": version, "finalizers": finalizers });
            let patch = json!({ "metadata": metadata });
            let answer = client.patch(&RESOURCE_CLAIMS, &it.claim, "", &PatchType::Merge, &patch).await?;
            version = decode::<Written>(&answer)?.metadata.resource_version;
        }
        let patch = json!({ "metadata": { "uid": it.uid, "resourceVersion": version }, "status": it.status });
        client.patch(&RESOURCE_CLAIMS, &it.claim, "status", &PatchType::Merge, &patch).await?;
    }
    Ok(())
}
