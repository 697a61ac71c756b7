//! What API servers decide about a node one after the other, each in the commit that follows from it.
//!
//! A key of the node is written with every decision, on condition that it has not changed since the node's Pods were read: of two
//! servers that decide at once one is refused, and decides anew. It holds nothing. Those who decide at one server take turns, so that they
//! wait for each other instead of failing on each other.

use bytes::Bytes;
use corten_cacher::watch_cache::Caches;
use corten_meta::Status;
use corten_store::{Compare, Error, Operation, Revision, Store, Txn};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Nodes share these by hash. Who shares one waits a little longer, and nothing else.
const N_TURNS: usize = 64;

pub(crate) struct NodeTurns {
    /// Before the name of each node. Below what `--etcd-prefix` moves: each of several clusters in an etcd has its own.
    keys: &'static str,
    turns: [Semaphore; N_TURNS],
}

/// Nobody else decides about the node here until it is dropped.
pub(crate) struct NodeTurn<'a> {
    key: Bytes,
    /// Of the key, before the node's Pods are read.
    revision: Revision,
    _turn: SemaphorePermit<'a>,
}

impl NodeTurns {
    pub(crate) const fn new(keys: &'static str) -> Self {
        Self { keys, turns: [const { Semaphore::const_new(1) }; N_TURNS] }
    }

    /// Comes when the caches hold the Pods of all decisions before it.
    ///
    /// # Errors
    /// As the request is to be answered where the store does not answer.
    pub(crate) async fn take(&self, store: &dyn Store, caches: &Caches, node: &str) -> Result<NodeTurn<'_>, Status> {
        let place = usize::try_from(corten_meta::stable_hash(node.as_bytes()) % N_TURNS as u64);
        let turn = self.turns[place.expect("less than the number of turns")].acquire().await;
        let key = Bytes::from(format!("{}{node}", self.keys));
        let revision = store.get(&key).await.map_err(|it| failed(&it))?.map_or(0, |it| it.mod_revision);
        caches.reach(revision).await?;
        Ok(NodeTurn { key, revision, _turn: turn.expect("it is never closed") })
    }
}

impl NodeTurn<'_> {
    pub(crate) fn add_to(&self, txn: &mut Txn) {
        txn.compares.push(Compare { key: self.key.clone(), mod_revision: self.revision });
        txn.operations.push(Operation::Put { key: self.key.clone(), value: Bytes::from_static(b"{}") });
    }
}

fn failed(error: &Error) -> Status {
    match error {
        Error::Closed | Error::Unavailable(_) => Status::unavailable(error.to_string()),
        _ => Status::internal(error),
    }
}
