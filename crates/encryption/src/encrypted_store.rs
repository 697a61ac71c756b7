//! A store whose values are encrypted by what the resource they belong to is configured to have.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use corten_cacher::watch_cache::resource_of_key;
use corten_store::{BoxFuture, Changes, DiskUse, Entry, Error, Operation, Outcome, Page, Range, Revision, Store, Txn};
use tokio::{sync::watch, time::Instant};

use crate::{
    changes::OpenedChanges,
    encryption::Encryption,
    lost_keys,
    shared::{Locate, Shared, fetch},
    transformers::Opened,
};

/// How often values that nothing opens are tried again.
const RETRY: Duration = Duration::from_secs(10);
/// How often values under a key that is gone are counted anew.
const LOST_KEYS_EVERY: Duration = Duration::from_secs(60);

/// Clones are the same store.
#[derive(Clone)]
pub struct EncryptedStore(Arc<Shared>);

impl EncryptedStore {
    pub fn new(inner: Arc<dyn Store>, encryption: Encryption) -> Self {
        Self::locating(inner, encryption, resource_of_key)
    }

    pub(crate) fn locating(inner: Arc<dyn Store>, encryption: Encryption, locate: Locate) -> Self {
        Self(Arc::new(Shared::new(inner, encryption, locate)))
    }

    pub fn encryption(&self) -> &Encryption {
        &self.0.encryption
    }

    async fn look_for_lost_keys(&self) {
        if let Some(lost) = lost_keys::look(&self.0).await {
            self.0.encryption.found_lost(lost);
        }
    }

    /// Follows file and plugins until `ended`, and tries again what nothing opened.
    pub async fn keep(self, ended: watch::Receiver<bool>) {
        let (changed, mut may_open) = (watch::Sender::new(()), watch::Receiver::clone(&ended));
        let mut news = changed.subscribe();
        let mut looked_at = Instant::now();
        let retrying = async {
            loop {
                let is_new = tokio::select! {
                    biased;
                    _ = may_open.wait_for(|it| *it) => return,
                    _ = news.changed() => true,
                    () = tokio::time::sleep(RETRY) => false,
                };
                self.0.retry().await;
                // What was found is looked at again until it is written anew, or its key is back: that goes through all values.
                if is_new || self.0.encryption.has_lost_keys() && looked_at.elapsed() >= LOST_KEYS_EVERY {
                    self.look_for_lost_keys().await;
                    looked_at = Instant::now();
                }
            }
        };
        tokio::join!(self.0.encryption.keep(&*self.0, &changed, ended), retrying);
    }
}

fn values(txn: &Txn) -> Vec<Bytes> {
    let value = |it: &Operation| match it {
        Operation::Put { value, .. } => Some(value.clone()),
        Operation::Delete { .. } => None,
    };
    txn.operations.iter().filter_map(value).collect()
}

impl Store for EncryptedStore {
    fn revision(&self) -> Revision {
        self.0.inner.revision()
    }

    fn is_shared(&self) -> bool {
        self.0.inner.is_shared()
    }

    fn newest(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        self.0.inner.newest()
    }

    fn get(&self, key: &[u8]) -> BoxFuture<'_, Result<Option<Entry>, Error>> {
        let key = Bytes::copy_from_slice(key);
        Box::pin(async move {
            let Some(entry) = self.0.inner.get(&key).await? else { return Ok(None) };
            let mut entries = [entry];
            self.0.open_all(&mut entries).await;
            let [entry] = entries;
            Ok(Some(entry))
        })
    }

    fn range(&self, range: Range, revision: Option<Revision>, limit: usize) -> BoxFuture<'_, Result<Page, Error>> {
        Box::pin(async move {
            let mut page = self.0.inner.range(range, revision, limit).await?;
            self.0.open_all(&mut page.entries).await;
            if revision.is_none() {
                page.entries.iter().for_each(|it| self.0.note(&it.key, it.unreadable.is_none()));
            }
            Ok(page)
        })
    }

    /// Encrypts in the caller's task, before the store is asked.
    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            let txn = self.0.seal(txn)?;
            let written = values(&txn);
            let outcome = self.0.inner.commit(txn).await;
            match outcome {
                Ok(Outcome::Committed(_)) => outcome,
                Ok(Outcome::Conflict(entry)) => {
                    self.0.forget(&written);
                    let mut entries: Vec<Entry> = entry.into_iter().collect();
                    self.0.open_all(&mut entries).await;
                    Ok(Outcome::Conflict(entries.pop()))
                }
                Err(error) => {
                    self.0.forget(&written);
                    Err(error)
                }
            }
        })
    }

    fn watch(&self, range: Range, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, Error>> {
        Box::pin(async move {
            // Before the watch begins: what becomes readable from now on is told.
            let reopened = self.0.reopened();
            let changes = self.0.inner.watch(range, after).await?;
            Ok(Box::new(OpenedChanges::new(self.0.clone(), changes, reopened)) as Box<dyn Changes>)
        })
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), Error>> {
        self.0.inner.compact(revision)
    }

    fn is_stale(&self, key: &[u8]) -> BoxFuture<'_, Result<bool, Error>> {
        let key = Bytes::copy_from_slice(key);
        Box::pin(async move {
            let Some(resource) = self.0.resource(&key) else { return Ok(false) };
            let Some(entry) = self.0.inner.get(&key).await? else { return Ok(false) };
            let open = || self.0.encryption.open(Some(&resource), &key, &entry.value);
            let mut opened = open();
            if let Opened::NeedsSeed(kms, object) = opened {
                fetch(vec![(kms, object)]).await;
                opened = open();
            }
            // What no key opens any more is better stored anew by who still has it.
            Ok(!matches!(opened, Opened::Plain { is_stale: false, .. }))
        })
    }

    fn writable(&self) -> Result<(), Error> {
        self.0.inner.writable()
    }

    fn must_be_reopened(&self) -> bool {
        self.0.inner.must_be_reopened()
    }

    fn disk_use(&self) -> Option<DiskUse> {
        self.0.inner.disk_use()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.inner.close()
    }
}
