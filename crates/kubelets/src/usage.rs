//! What nodes and Pods use: read from kubelets when somebody asks, and not while nobody does.
//!
//! Use of CPU is the difference of two readings. The first question in a while waits for the second reading; those that
//! follow find the one of the question before.

mod exposition;
mod reading;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use corten_access::Clock;
use corten_cacher::watch_cache::Caches;
use corten_meta::{Status, Time};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;

use crate::KubeletClient;
pub use reading::{Reading, Use, Window};

/// As metrics-server's resolution: younger readings are good enough.
const FRESH: Duration = Duration::from_secs(15);
/// What was used long ago says nothing of now.
const OLD: Duration = Duration::from_secs(60);
/// The shortest time that use is reckoned over.
const SHORTEST: Duration = Duration::from_secs(1);
const SCRAPE_DEADLINE: Duration = Duration::from_secs(8);
const SIDE_BY_SIDE: usize = 16;

/// The last two readings of each node.
#[derive(Default)]
pub struct Usages {
    pairs: Mutex<BTreeMap<String, Pair>>,
    /// Who holds it reads; those who come meanwhile wait and find what was read.
    turn: tokio::sync::Mutex<()>,
}

/// Two readings of a node, the older one first.
#[derive(Clone, Default)]
pub struct Pair {
    pub older: Option<Arc<Reading>>,
    pub newer: Option<Arc<Reading>>,
    /// When the node was last asked in vain; whoever asks next does not wait for it again at once.
    silent_since: Option<Time>,
}

impl Pair {
    fn push(&mut self, reading: Reading) {
        *self = Self { older: self.newer.take(), newer: Some(Arc::new(reading)), silent_since: None };
    }

    /// Is it known well enough what it uses, or that it does not say?
    fn is_fresh(&self, now: Time) -> bool {
        let is_silent = self.silent_since.is_some_and(|it| now.since(it) < FRESH);
        is_silent || self.is_pair() && self.newer.as_ref().is_some_and(|it| now.since(it.taken) < FRESH)
    }

    /// Are its two readings near enough to each other to be compared?
    fn is_pair(&self) -> bool {
        let (Some(older), Some(newer)) = (&self.older, &self.newer) else { return false };
        newer.taken.since(older.taken) < OLD
    }
}

/// What readings are made with.
pub struct Source<'a> {
    pub kubelets: Option<&'a KubeletClient>,
    pub caches: &'a Caches,
    pub clock: &'a Clock,
}

impl Usages {
    /// Of each of `nodes` that answers: what it and its Pods use.
    ///
    /// # Errors
    /// 503 where there are nodes and this server cannot reach any kubelet.
    pub async fn of(&self, source: &Source<'_>, nodes: &[String]) -> Result<BTreeMap<String, Pair>, Status> {
        if nodes.is_empty() {
            return Ok(BTreeMap::new());
        }
        let Some(kubelets) = source.kubelets else { return Err(crate::no_way()) };
        let turn = self.turn.lock().await;
        let stale = self.that(nodes, |it| !it.is_fresh((source.clock)()));
        self.read(kubelets, source, stale).await;
        let alone = self.that(nodes, |it| it.newer.is_some() && !it.is_pair());
        if !alone.is_empty() {
            tokio::time::sleep(SHORTEST).await;
            self.read(kubelets, source, alone).await;
        }
        drop(turn);
        let mut pairs = self.pairs.lock();
        pairs.retain(|name, _| nodes.contains(name));
        Ok(pairs.iter().filter(|it| it.1.newer.is_some()).map(|(name, pair)| (name.clone(), pair.clone())).collect())
    }

    fn that(&self, nodes: &[String], is_meant: impl Fn(&Pair) -> bool) -> Vec<String> {
        let pairs = self.pairs.lock();
        let none = Pair::default();
        nodes.iter().filter(|it| is_meant(pairs.get(*it).unwrap_or(&none))).cloned().collect()
    }

    async fn read(&self, kubelets: &KubeletClient, source: &Source<'_>, nodes: Vec<String>) {
        let mut readings = stream::iter(nodes)
            .map(|node| async move {
                let reading = tokio::time::timeout(SCRAPE_DEADLINE, one(kubelets, source, &node)).await;
                (node, reading.unwrap_or_else(|_| Err(Status::internal("no answer in time"))))
            })
            .buffer_unordered(SIDE_BY_SIDE);
        while let Some((node, reading)) = readings.next().await {
            let mut pairs = self.pairs.lock();
            match reading {
                Ok(reading) => pairs.entry(node).or_default().push(reading),
                Err(error) => {
                    tracing::warn!(node, error = error.message, "cannot read what a node uses");
                    let silent_since = Some((source.clock)());
                    pairs.insert(node, Pair { silent_since, ..Pair::default() });
                }
            }
        }
    }
}

async fn one(kubelets: &KubeletClient, source: &Source<'_>, node: &str) -> Result<Reading, Status> {
    let text = crate::scrape(kubelets, source.caches, node, "/metrics/resource").await?;
    Ok(Reading::parse(&String::from_utf8_lossy(&text), (source.clock)()))
}

#[cfg(test)]
mod tests;
