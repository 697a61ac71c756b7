//! A store whose values lie below as Kubernetes stores them, and are seen above as Corten works with them.

use std::sync::Arc;

use bytes::Bytes;
use corten_store::{BoxFuture, Changes, DiskUse, Entry, Error, Outcome, Page, Range, Revision, Store, Txn};

use crate::{
    changes::ReadChanges,
    form::{from_stored, to_stored},
    in_flight::InFlight,
    ranges::{self, ALLOCATION, Asked, Ports, RangeKey},
    shared::{Shared, records},
};

/// Clones are the same store.
#[derive(Clone)]
pub struct KubernetesForm(Arc<Shared>);

impl KubernetesForm {
    pub fn new(inner: Arc<dyn Store>) -> Self {
        Self(Arc::new(Shared { inner, in_flight: InFlight::default() }))
    }
}

impl Store for KubernetesForm {
    fn revision(&self) -> Revision {
        self.0.inner.revision()
    }

    fn newest(&self) -> BoxFuture<'_, Result<Revision, Error>> {
        self.0.inner.newest()
    }

    fn get(&self, key: &[u8]) -> BoxFuture<'_, Result<Option<Entry>, Error>> {
        let key = Bytes::copy_from_slice(key);
        Box::pin(async move {
            match ranges::range_key(&key) {
                Some(RangeKey::Address(address)) => {
                    let below = self.0.inner.get(&ranges::key_of_address(address)).await?;
                    Ok(below.map(|it| ranges::entry_of(key, &it)))
                }
                Some(RangeKey::Port(port)) => {
                    let Some(below) = self.0.inner.get(ALLOCATION).await? else { return Ok(None) };
                    let ports = Ports::read(Some(&below.value)).map_err(Error::Io)?;
                    Ok(ports.is_given(port).then(|| ranges::entry_of(key, &below)))
                }
                None => {
                    let Some(mut entry) = self.0.inner.get(&key).await? else { return Ok(None) };
                    self.0.read(&mut entry);
                    Ok(Some(entry))
                }
            }
        })
    }

    fn range(&self, range: Range, revision: Option<Revision>, limit: usize) -> BoxFuture<'_, Result<Page, Error>> {
        Box::pin(async move {
            match ranges::asked(range) {
                Asked::Stored(range) => {
                    let shows_records =
                        range.contains(ranges::ADDRESSES) && range.contains(ranges::PORTS) && limit == 0;
                    let mut page = self.0.inner.range(range, revision, limit).await?;
                    let records = if shows_records { records(&page.entries)? } else { Vec::new() };
                    self.0.read_all(&mut page.entries).await;
                    if !records.is_empty() {
                        page.entries.extend(records);
                        page.entries.sort_by(|a, b| a.key.cmp(&b.key));
                    }
                    Ok(page)
                }
                given => self.0.given(given, revision, limit).await,
            }
        })
    }

    /// Writes in the caller's task what is to be stored, before the store is asked.
    fn commit(&self, txn: Txn) -> BoxFuture<'_, Result<Outcome, Error>> {
        Box::pin(async move {
            match self.0.commit(txn).await? {
                Outcome::Conflict(Some(mut entry)) => {
                    self.0.read(&mut entry);
                    Ok(Outcome::Conflict(Some(entry)))
                }
                outcome => Ok(outcome),
            }
        })
    }

    fn watch(&self, range: Range, after: Revision) -> BoxFuture<'_, Result<Box<dyn Changes>, Error>> {
        Box::pin(async move {
            let asked = ranges::asked(range);
            let below = match &asked {
                Asked::Stored(range) => range.clone(),
                Asked::Addresses(_) => Range::prefix(ranges::IP_ADDRESSES),
                Asked::Ports(_) => ranges::allocation_range(),
            };
            let changes = self.0.inner.watch(below, after).await?;
            Ok(Box::new(ReadChanges::new(self.0.clone(), changes, asked)) as Box<dyn Changes>)
        })
    }

    fn is_stale(&self, key: &[u8]) -> BoxFuture<'_, Result<bool, Error>> {
        let key = Bytes::copy_from_slice(key);
        Box::pin(async move {
            if self.0.inner.is_stale(&key).await? {
                return Ok(true);
            }
            let Some(entry) = self.0.inner.get(&key).await?.filter(|it| it.unreadable.is_none()) else {
                return Ok(false);
            };
            // What cannot be read any more is better stored anew by who still has it.
            Ok(!from_stored(&key, &entry.value).is_ok_and(|it| to_stored(&key, &it) == entry.value))
        })
    }

    fn compact(&self, revision: Revision) -> BoxFuture<'_, Result<(), Error>> {
        self.0.inner.compact(revision)
    }

    fn writable(&self) -> Result<(), Error> {
        self.0.inner.writable()
    }

    fn must_be_reopened(&self) -> bool {
        self.0.inner.must_be_reopened()
    }

    /// It is for others that values are stored so.
    fn is_shared(&self) -> bool {
        true
    }

    fn disk_use(&self) -> Option<DiskUse> {
        self.0.inner.disk_use()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.0.inner.close()
    }
}
