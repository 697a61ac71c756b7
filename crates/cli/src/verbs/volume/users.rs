//! Pods that have a claim, and the command that ends them for as long as it takes.

use anyhow::{Context, Result};
use corten_api::{
    core::v1::Pod,
    resources::{PODS, REPLICA_SETS},
};
use corten_client::{Client, ListParams};
use corten_meta::{Key, ObjectMeta};
use serde::Deserialize;

use corten_console::failure::Failure;

/// # Errors
/// A Pod has the claim.
pub(super) async fn refuse_used(client: &Client, claim: &Key, node: &str) -> Result<()> {
    let params = ListParams { namespace: claim.namespace.clone(), ..ListParams::default() };
    let pods = client.list_as::<Pod>(&PODS, &params).await;
    let pods = pods.with_context(|| format!("listing the Pods of {}", claim.namespace))?;
    let Some(pod) = pods.iter().find(|it| has(it, claim)) else { return Ok(()) };
    let name = pod.metadata.name.clone().unwrap_or_default();
    let message = format!("pod/{name} has the volume on node {node}: no Pod may while it is moved");
    Err(Failure::new(message).next(stop(client, pod, &claim.namespace).await).into())
}

/// It is on a node, has not ended, and names the claim.
fn has(pod: &Pod, claim: &Key) -> bool {
    let spec = pod.spec.as_ref();
    let ended = matches!(pod.status.as_ref().and_then(|it| it.phase.as_deref()), Some("Succeeded" | "Failed"));
    let is_placed = spec.and_then(|it| it.node_name.as_deref()).is_some_and(|it| !it.is_empty());
    let pod_name = pod.metadata.name.as_deref().unwrap_or_default();
    let mut volumes = spec.into_iter().flat_map(|it| it.volumes.iter().flatten());
    let names = |it: &corten_api::core::v1::Volume| match (&it.persistent_volume_claim, &it.ephemeral) {
        (Some(named), _) => named.claim_name == claim.name,
        (None, Some(_)) => format!("{pod_name}-{}", it.name) == claim.name,
        (None, None) => false,
    };
    is_placed && !ended && volumes.any(names)
}

/// What ends the Pod, and all that would take its place.
async fn stop(client: &Client, pod: &Pod, namespace: &str) -> String {
    #[derive(Deserialize)]
    struct OnlyMeta {
        metadata: ObjectMeta,
    }
    let owner = pod.metadata.owner_references.iter().flatten().find(|it| it.controller == Some(true));
    let scale = |kind: &str, name: &str| format!("kubectl scale {kind}/{name} --replicas=0 -n {namespace}");
    match owner.map(|it| (it.kind.as_str(), it.name.as_str())) {
        Some(("StatefulSet", name)) => scale("statefulset", name),
        Some(("ReplicationController", name)) => scale("replicationcontroller", name),
        Some(("ReplicaSet", name)) => {
            let set = client.get_as::<OnlyMeta>(&REPLICA_SETS, &Key::new(namespace, name)).await;
            let above = set.ok().and_then(|it| it.metadata.controller().map(|it| it.name.clone()));
            above.map_or_else(|| scale("replicaset", name), |it| scale("deployment", &it))
        }
        _ => format!("kubectl delete pod {} -n {namespace}", pod.metadata.name.as_deref().unwrap_or_default()),
    }
}
