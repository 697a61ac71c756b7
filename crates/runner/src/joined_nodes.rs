//! Which nodes are on machines that have joined, and have drivers that the control plane asks.
//!
//! The built-in driver is asked on each of them. One of somebody else's on a few alone, of those that its CSIDriver names: volumes are made
//! once, so one of its nodes is enough ([`corten_provisioner::leases`]), and one more waits to take over when that is no longer Ready.

mod candidates;
mod told;

use std::{
    collections::{BTreeMap, BTreeSet},
    future::poll_fn,
    task::{Context, Poll},
};

use corten_client::{BoxFuture, Client, Informer, InformerEvent};
use futures_util::{
    StreamExt,
    future::{AbortHandle, Abortable, abortable},
    stream::FuturesUnordered,
};
use tokio::sync::watch;

use self::{
    candidates::{Allowed, Candidates, ObservedNode},
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

/// Begins the loop of a node, with the drivers of others that it is to ask there now.
type Begin<'b> = Box<dyn Fn(&str, watch::Receiver<Vec<NodeDriver>>) -> BoxFuture<'static, ()> + Send + 'b>;

/// Has `begin` begin a loop for each of them, which goes on until the node says otherwise or is gone, with the drivers of others that it is
/// to ask there now. Never ends by itself.
pub async fn follow_joined_nodes(
    settings: JoinedNodesSettings,
    begin: impl Fn(&str, watch::Receiver<Vec<NodeDriver>>) -> BoxFuture<'static, ()> + Send,
) {
    let JoinedNodesSettings { client, viewer, driver } = settings;
    let mut nodes = JoinedNodes {
        joined: joined_nodes(&client, driver),
        others: None,
        candidates: Candidates::default(),
        running: BTreeMap::new(),
        loops: FuturesUnordered::new(),
        leaving: FuturesUnordered::new(),
        found: BTreeSet::new(),
        begin: Box::new(begin),
        client,
        viewer,
    };
    poll_fn(move |context| {
        let has_news = nodes.poll_joined(context) | nodes.poll_others(context);
        if has_news {
            nodes.tell_chosen();
        }
        while let Poll::Ready(Some(())) = nodes.leaving.poll_next_unpin(context) {}
        while let Poll::Ready(Some(_)) = nodes.loops.poll_next_unpin(context) {}
        Poll::<()>::Pending
    })
    .await;
}

struct JoinedNodes<'b> {
    client: Client,
    viewer: Client,
    begin: Begin<'b>,
    joined: Informer<Told>,
    /// Nodes and CSIDrivers, once there are drivers of others.
    others: Option<(Informer<ObservedNode>, Informer<Option<Allowed>>)>,
    candidates: Candidates,
    running: BTreeMap<String, (AbortHandle, watch::Sender<Vec<NodeDriver>>)>,
    /// Each is woken by itself: what happens to one node is not looked at by the loops of all others.
    loops: FuturesUnordered<Abortable<BoxFuture<'static, ()>>>,
    leaving: FuturesUnordered<BoxFuture<'static, ()>>,
    /// Every node of which something can be told.
    found: BTreeSet<String>,
}

impl JoinedNodes<'_> {
    /// True: other nodes may be the ones to ask drivers now.
    fn poll_joined(&mut self, context: &mut Context<'_>) -> bool {
        let mut has_news = false;
        while let Poll::Ready(event) = self.joined.poll_event(context) {
            match event {
                InformerEvent::Applied(told, _) => {
                    self.found.insert(told.node.clone());
                    has_news |= self.take_in(told);
                }
                InformerEvent::Deleted(meta) => {
                    self.found.remove(&meta.name);
                    has_news |= self.candidates.forget(&meta.name);
                    if let Some((handle, _)) = self.running.remove(&meta.name) {
                        handle.abort();
                        self.leaving.push(Box::pin(withdraw_of(self.client.clone(), meta.name)));
                    }
                }
                InformerEvent::Synced(_) => {
                    self.leaving.push(Box::pin(withdraw_but_of(self.client.clone(), self.found.clone())));
                }
            }
        }
        has_news
    }

    fn take_in(&mut self, Told { node, is_asked, others }: Told) -> bool {
        if !is_asked {
            if let Some((handle, _)) = self.running.remove(&node) {
                handle.abort();
            }
            return self.candidates.forget(&node);
        }
        let mut has_news = self.candidates.tell(&node, others);
        self.running.entry(node).or_insert_with_key(|node| {
            let (tell, told) = watch::channel(Vec::new());
            let (work, handle) = abortable((self.begin)(node, told));
            self.loops.push(work);
            has_news = true;
            (handle, tell)
        });
        has_news
    }

    fn poll_others(&mut self, context: &mut Context<'_>) -> bool {
        if !self.candidates.are_any() {
            return false;
        }
        let mut has_news = false;
        let (places, allowed) = self.others.get_or_insert_with(|| (nodes(&self.viewer), drivers(&self.client)));
        while let Poll::Ready(event) = places.poll_event(context) {
            has_news |= match event {
                InformerEvent::Applied(seen, identity) => self.candidates.see(identity.key.name, Some(seen)),
                InformerEvent::Deleted(meta) => self.candidates.see(meta.name, None),
                InformerEvent::Synced(_) => false,
            };
        }
        while let Poll::Ready(event) = allowed.poll_event(context) {
            has_news |= match event {
                InformerEvent::Applied(nodes, identity) => self.candidates.allow(identity.key.name, nodes),
                InformerEvent::Deleted(meta) => self.candidates.allow(meta.name, None),
                InformerEvent::Synced(_) => false,
            };
        }
        has_news
    }

    /// Tells each loop which drivers of others it is to ask.
    fn tell_chosen(&self) {
        let mut chosen = self.candidates.chosen();
        for (node, (_, tell)) in &self.running {
            let drivers = chosen.remove(node).unwrap_or_default();
            tell.send_if_modified(|it| {
                *it != drivers && {
                    *it = drivers;
                    true
                }
            });
        }
    }
}
