//! What a kubelet asks of the API about its pods' claims for devices. As its node, which may read just these.

use corten_api::{resource::v1::ResourceClaim, resources::RESOURCE_CLAIMS};
use corten_client::Client;
use corten_kubelet::{ClaimName, GivenDevice, PodRef, ReservedClaim};
use corten_meta::Key;

/// Reads the claims one after the other; an error is in the words of the kubelet's `dra.Manager`.
pub(crate) async fn read(client: &Client, pod: &PodRef, claims: Vec<ClaimName>) -> Result<Vec<ReservedClaim>, String> {
    let mut found = Vec::new();
    for name in claims {
        let key = Key::new(&*pod.key.namespace, &*name.claim);
        let read = client.get_as::<ResourceClaim>(&RESOURCE_CLAIMS, &key).await;
        let claim = read.map_err(|it| format!("fetch ResourceClaim {key}: {it}"))?;
        found.push(reserved(pod, name, claim)?);
    }
    Ok(found)
}

fn reserved(pod: &PodRef, name: ClaimName, claim: ResourceClaim) -> Result<ReservedClaim, String> {
    let key = Key::new(&*pod.key.namespace, &*name.claim);
    let status = claim.status.unwrap_or_default();
    let is_reserved = status.reserved_for.iter().flatten().any(|it| it.uid == pod.uid);
    let allocation = status.allocation.ok_or_else(|| format!("ResourceClaim {key} is not allocated"))?;
    if !is_reserved {
        return Err(format!("pod {}({}) is not allowed to use ResourceClaim {key}", pod.key, pod.uid));
    }
    let results = allocation.devices.into_iter().flat_map(|it| it.results.unwrap_or_default());
    let results =
        results.map(|it| GivenDevice { request: it.request, driver: it.driver, pool: it.pool, device: it.device });
    let uid = claim.metadata.uid.unwrap_or_default();
    Ok(ReservedClaim { in_pod: name.in_pod, claim: name.claim, uid, results: results.collect(), users: Vec::new() })
}
