//! Writes of one who leads are committed only while it does.

use std::time::Duration;

use bytes::Bytes;
use corten_api::resources::LEASES;
use corten_meta::Status;
use corten_store::{Compare, Entry, Error, Outcome, Store, Txn};
use tokio::{sync::watch, time::timeout};

use crate::watch_cache::{key_of, prefix_of};

/// A renewal is told of so soon after it is committed.
const RENEWAL_WAIT: Duration = Duration::from_secs(2);

/// The Lease of a leader. Put into the extensions of a request from inside the process, it binds what the request writes to it.
#[derive(Clone)]
pub struct Fence {
    key: Bytes,
    /// Of the lease, as its holder wrote it last; 0 once it holds it no more.
    revision: watch::Receiver<u64>,
}

impl Fence {
    /// A lease of `kube-system`.
    pub fn new(lease: &str, revision: watch::Receiver<u64>) -> Self {
        Self { key: format!("{}{}", prefix_of(&LEASES), key_of("kube-system", lease)).into(), revision }
    }

    /// Commits, where the lease is as its holder wrote it.
    /// # Errors
    /// It leads no more.
    pub async fn commit(&self, store: &dyn Store, txn: Txn) -> Result<Result<Outcome, Error>, Status> {
        let mut revision = self.revision.clone();
        loop {
            let mod_revision = *revision.borrow_and_update();
            if mod_revision == 0 {
                return Err(over());
            }
            let mut fenced = txn.clone();
            fenced.compares.insert(0, Compare { key: self.key.clone(), mod_revision });
            let outcome = store.commit(fenced).await;
            let is_own = match &outcome {
                Ok(Outcome::Conflict(Some(Entry { key, .. }))) => *key == self.key,
                // Which key it is about is not said; a lease that somebody has deleted is made anew by its holder.
                Ok(Outcome::Conflict(None)) => matches!(store.get(&self.key).await, Ok(None)),
                _ => false,
            };
            if !is_own {
                return Ok(outcome);
            }
            // Renewed by its holder amid this, or taken by another.
            if !matches!(timeout(RENEWAL_WAIT, revision.changed()).await, Ok(Ok(()))) {
                return Err(over());
            }
        }
    }
}

fn over() -> Status {
    Status::unavailable("this server leads no more: another one runs the controllers")
}
