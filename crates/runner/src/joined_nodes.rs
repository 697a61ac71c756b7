//! Which nodes are on machines that have joined, and have a driver that the control plane asks.

use std::{collections::BTreeMap, future::poll_fn, task::Poll};

use corten_api::{
    resources::{CSI_NODES, CSI_STORAGE_CAPACITIES},
    storage::v1::CSINode,
};
use corten_client::{
    BoxFuture, Client, DeleteParams, Identity, Informer, InformerEvent, InformerParams, ListParams, decode,
};
use corten_meta::{Key, ObjectMeta};
use corten_provisioner::CAPACITY_NAMESPACE;
use futures_util::{
    StreamExt,
    future::{AbortHandle, abortable},
    stream::FuturesUnordered,
};
use serde::Deserialize;

use crate::provisioner::MADE_BY_CONTROL_PLANE;

/// Has `begin` begin a loop for each of them, which goes on until the node says otherwise or is gone. Never ends by itself.
pub async fn follow_joined_nodes(client: Client, driver: &'static str, begin: impl Fn(&str) -> BoxFuture<'static, ()>) {
    let mut nodes = Informer::decoding(client.clone(), InformerParams::all(CSI_NODES), move |bytes| {
        #[derive(Deserialize)]
        struct OnlyMeta {
            metadata: ObjectMeta,
        }
        let meta = decode::<OnlyMeta>(&bytes)?.metadata;
        let node: CSINode = decode(&bytes)?;
        let is_asked = meta.annotations.get(MADE_BY_CONTROL_PLANE).is_some_and(|it| it == "true");
        let has_driver = node.spec.drivers.iter().any(|it| it.name == driver);
        Ok((Identity::of(&meta), (meta.name, is_asked && has_driver)))
    });
    let mut running: BTreeMap<String, AbortHandle> = BTreeMap::new();
    // Each is woken by itself: what happens to one node is not looked at by the loops of all others.
    let mut loops = FuturesUnordered::new();
    let mut leaving = FuturesUnordered::new();
    poll_fn(move |context| {
        while let Poll::Ready(event) = nodes.poll_event(context) {
            match event {
                InformerEvent::Applied((node, true), _) => {
                    running.entry(node).or_insert_with_key(|node| {
                        let (work, handle) = abortable(begin(node));
                        loops.push(work);
                        handle
                    });
                }
                InformerEvent::Applied((node, false), _) => {
                    if let Some(handle) = running.remove(&node) {
                        handle.abort();
                    }
                }
                InformerEvent::Deleted(meta) => {
                    if let Some(handle) = running.remove(&meta.name) {
                        handle.abort();
                        leaving.push(withdraw(client.clone(), meta.name));
                    }
                }
                InformerEvent::Synced(_) => {}
            }
        }
        while let Poll::Ready(Some(())) = leaving.poll_next_unpin(context) {}
        while let Poll::Ready(Some(_)) = loops.poll_next_unpin(context) {}
        Poll::<()>::Pending
    })
    .await;
}

/// A node that is gone has no room.
async fn withdraw(client: Client, node: String) {
    #[derive(Deserialize)]
    struct OnlyMeta {
        metadata: ObjectMeta,
    }
    let of_node = ListParams {
        namespace: CAPACITY_NAMESPACE.to_owned(),
        label_selector: format!("csi.storage.k8s.io/managed-by=corten-{node}"),
        ..ListParams::default()
    };
    match client.list_as::<OnlyMeta>(&CSI_STORAGE_CAPACITIES, &of_node).await {
        Ok(found) => {
            for it in found {
                let key = Key::new(CAPACITY_NAMESPACE, it.metadata.name);
                let _ = client.delete(&CSI_STORAGE_CAPACITIES, &key, &DeleteParams::default()).await;
            }
        }
        Err(error) => tracing::debug!(%error, node, "what a node had left is still told"),
    }
}
