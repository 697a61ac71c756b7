//! Which nodes are on machines that have joined, and have drivers that the control plane asks.
//!
//! The built-in driver is asked on each of them. One of somebody else's on a few alone, of those that its CSIDriver names: volumes are made
//! once, so one of its nodes is enough ([`corten_provisioner::leases`]), and one more waits to take over when that is no longer Ready.

mod candidates;
mod told;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::poll_fn,
    task::Poll,
};

use corten_client::{BoxFuture, Client, Informer, InformerEvent};
use futures_util::{
    StreamExt,
    future::{AbortHandle, abortable},
    stream::FuturesUnordered,
};
use tokio::sync::watch;

use self::{
    candidates::{Allowed, Candidates, NodeSeen},
    told::{Told, drivers, joined_nodes, nodes},
};
use crate::{
    NodeDriver,
    provisioner::{withdraw_but_of, withdraw_of},
};

/// What it is given.
pub struct JoinedNodesSettings {
    /// Who sees what nodes say of their drivers.
    pub client: Client,
    /// Who sees nodes.
    pub viewer: Client,
    /// The driver that is built in.
    pub driver: &'static str,
}

/// Has `begin` begin a loop for each of them, which goes on until the node says otherwise or is gone, with the drivers of others that it is
/// to ask there now. Never ends by itself.
pub async fn follow_joined_nodes(
    settings: JoinedNodesSettings,
    begin: impl Fn(&str, watch::Receiver<Vec<NodeDriver>>) -> BoxFuture<'static, ()>,
) {
    let JoinedNodesSettings { client, viewer, driver } = settings;
    let mut joined = joined_nodes(&client, driver);
    let mut others: Option<(Informer<NodeSeen>, Informer<Option<Allowed>>)> = None;
    let mut candidates = Candidates::default();
    let mut running: BTreeMap<String, (AbortHandle, watch::Sender<Vec<NodeDriver>>)> = BTreeMap::new();
    // Each is woken by itself: what happens to one node is not looked at by the loops of all others.
    let mut loops = FuturesUnordered::new();
    let mut leaving = FuturesUnordered::<BoxFuture<'static, ()>>::new();
    // Every node of which something can be told.
    let mut found = BTreeSet::new();
    poll_fn(move |context| {
        let mut has_news = false;
        while let Poll::Ready(event) = joined.poll_event(context) {
            if let InformerEvent::Applied(told, _) = &event {
                found.insert(told.node.clone());
            }
            match event {
                InformerEvent::Applied(Told { node, is_asked: true, others }, _) => {
                    has_news |= candidates.tell(&node, others);
                    running.entry(node).or_insert_with_key(|node| {
                        let (tell, told) = watch::channel(Vec::new());
                        let (work, handle) = abortable(begin(node, told));
                        loops.push(work);
                        has_news = true;
                        (handle, tell)
                    });
                }
                InformerEvent::Applied(Told { node, is_asked: false, .. }, _) => {
                    has_news |= candidates.forget(&node);
                    if let Some((handle, _)) = running.remove(&node) {
                        handle.abort();
                    }
                }
                InformerEvent::Deleted(meta) => {
                    found.remove(&meta.name);
                    has_news |= candidates.forget(&meta.name);
                    if let Some((handle, _)) = running.remove(&meta.name) {
                        handle.abort();
                        leaving.push(Box::pin(withdraw_of(client.clone(), meta.name)));
                    }
                }
                InformerEvent::Synced(_) => leaving.push(Box::pin(withdraw_but_of(client.clone(), found.clone()))),
            }
        }
        if candidates.are_any() {
            let (places, allowed) = others.get_or_insert_with(|| (nodes(&viewer), drivers(&client)));
            while let Poll::Ready(event) = places.poll_event(context) {
                has_news |= match event {
                    InformerEvent::Applied(seen, identity) => candidates.see(identity.key.name, Some(seen)),
                    InformerEvent::Deleted(meta) => candidates.see(meta.name, None),
                    InformerEvent::Synced(_) => false,
                };
            }
            while let Poll::Ready(event) = allowed.poll_event(context) {
                has_news |= match event {
                    InformerEvent::Applied(nodes, identity) => candidates.allow(identity.key.name, nodes),
                    InformerEvent::Deleted(meta) => candidates.allow(meta.name, None),
                    InformerEvent::Synced(_) => false,
                };
            }
        }
        if has_news {
            let mut chosen = candidates.chosen();
            for (node, (_, tell)) in &running {
                let drivers = chosen.remove(node).unwrap_or_default();
                tell.send_if_modified(|it| {
                    *it != drivers && {
                        *it = drivers;
                        true
                    }
                });
            }
        }
        while let Poll::Ready(Some(())) = leaving.poll_next_unpin(context) {}
        while let Poll::Ready(Some(_)) = loops.poll_next_unpin(context) {}
        Poll::<()>::Pending
    })
    .await;
}
