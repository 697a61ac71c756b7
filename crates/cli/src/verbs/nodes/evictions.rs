//! Which Pods leave a node that is drained, as `kubectl drain` has it, and their eviction.

use corten_api::{
    core::v1::Pod,
    resources::{MIRROR_POD, PODS},
};
use corten_client::{Client, Error};
use corten_meta::Key;
use serde_json::json;

/// A Pod that is to leave.
#[derive(Debug, PartialEq)]
pub(super) struct LeavingPod {
    pub(super) key: Key,
    uid: String,
    /// It is being deleted already.
    pub(super) is_going: bool,
}

#[derive(Debug, Default, PartialEq)]
pub(super) struct Leaving {
    pub(super) pods: Vec<LeavingPod>,
    /// Those of them that nobody makes again.
    pub(super) unmanaged: Vec<Key>,
}

/// Pods of DaemonSets stay, which would be made again here; so do static ones, and those that have ended and
/// that nobody deletes: what is being deleted may still have volumes here.
pub(super) fn leaving(pods: &[Pod]) -> Leaving {
    let mut leaving = Leaving::default();
    for pod in pods {
        let metadata = &pod.metadata;
        let controller = metadata.owner_references.iter().flatten().find(|it| it.controller == Some(true));
        let is_static = metadata.annotations.as_ref().is_some_and(|it| it.contains_key(MIRROR_POD));
        let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref()).unwrap_or_default();
        let is_going = metadata.deletion_timestamp.is_some();
        let has_ended = matches!(phase, "Succeeded" | "Failed") && !is_going;
        if is_static || has_ended || controller.is_some_and(|it| it.kind == "DaemonSet") {
            continue;
        }
        let text = |it: &Option<String>| it.clone().unwrap_or_default();
        let key = Key::new(text(&metadata.namespace), text(&metadata.name));
        if controller.is_none() && !is_going {
            leaving.unmanaged.push(key.clone());
        }
        leaving.pods.push(LeavingPod { key, uid: text(&metadata.uid), is_going });
    }
    leaving
}

/// Evicts it; why not yet, where a disruption budget holds it.
pub(super) async fn evict(client: &Client, pod: &LeavingPod) -> Result<Option<String>, Error> {
    let eviction = json!({
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": { "name": &*pod.key.name, "namespace": &*pod.key.namespace },
        "deleteOptions": { "preconditions": { "uid": pod.uid } },
    });
    match client.create_subresource(&PODS, &pod.key, "eviction", &eviction).await {
        Ok(_) => Ok(None),
        // Another of its name is looked at the next time.
        Err(error) if error.is_not_found() || error.is_conflict() => Ok(None),
        Err(Error::Status(status)) if status.code == 429 => Ok(Some(status.message)),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
