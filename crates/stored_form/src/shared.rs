//! What a store in Kubernetes's form and its watches share: the store below, and how its values are read and written.

use std::sync::Arc;

use bytes::Bytes;
use corten_store::{Compare, Entry, Error, Operation, Outcome, Page, Range, Revision, Store, Txn};

use crate::{
    form::{from_stored, to_stored},
    in_flight::InFlight,
    ranges::{self, ALLOCATION, Asked, PortChanges, Ports},
};

/// How many entries are read before others get their turn.
const READ_AT_ONCE: usize = 64;
/// Others who give away ports at the same time come first so often at most.
const ATTEMPTS: usize = 64;

pub(crate) struct Shared {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) in_flight: InFlight,
}

impl Shared {
    /// The entry as it is seen above. What cannot be read stays as it is stored, and says why.
    pub(crate) fn read(&self, entry: &mut Entry) {
        if entry.unreadable.is_some() {
            return;
        }
        match from_stored(&entry.key, &entry.value) {
            Ok(json) => entry.value = json,
            Err(reason) => entry.unreadable = Some(reason.into()),
        }
    }

    /// As [`Self::read`], of the newest write of a key: what this process has written it need not read.
    pub(crate) fn read_change(&self, entry: &mut Entry) {
        match self.in_flight.take(&entry.key, &entry.value) {
            Some(json) => entry.value = json,
            None => self.read(entry),
        }
    }

    pub(crate) async fn read_all(&self, entries: &mut [Entry]) {
        for entries in entries.chunks_mut(READ_AT_ONCE) {
            entries.iter_mut().for_each(|it| self.read(it));
            tokio::task::yield_now().await;
        }
    }

    /// The transaction with its values as they are to be stored.
    fn written(&self, mut txn: Txn) -> Txn {
        for operation in &mut txn.operations {
            let Operation::Put { key, value } = operation else { continue };
            let stored = to_stored(key, value);
            if stored.as_ptr() != value.as_ptr() {
                self.in_flight.add(key, &stored, value);
                *value = stored;
            }
        }
        txn
    }

    fn forget(&self, keys: &[Bytes]) {
        keys.iter().for_each(|it| self.in_flight.forget(it));
    }

    pub(crate) async fn commit(&self, mut txn: Txn) -> Result<Outcome, Error> {
        let ports = PortChanges::taken_out_of(&mut txn);
        let txn = self.written(txn);
        let keys: Vec<Bytes> = txn
            .operations
            .iter()
            .map(|it| match it {
                Operation::Put { key, .. } | Operation::Delete { key } => key.clone(),
            })
            .collect();
        let outcome =
            if ports.is_empty() { self.inner.commit(txn).await } else { self.commit_ports(txn, &ports).await };
        if !matches!(outcome, Ok(Outcome::Committed(_))) {
            self.forget(&keys);
        }
        outcome
    }

    /// Commits on condition that nobody has changed the allocation of ports meanwhile, and looks again where somebody has.
    async fn commit_ports(&self, txn: Txn, ports: &PortChanges) -> Result<Outcome, Error> {
        let mut outcome = Outcome::Conflict(None);
        for _ in 0..ATTEMPTS {
            let standing = self.inner.get(ALLOCATION).await?;
            let before = standing.as_ref().map_or(0, |it| it.mod_revision);
            let read = Ports::read(standing.as_ref().map(|it| &*it.value)).map_err(Error::Io)?;
            let value = match ports.applied(read) {
                Ok(value) => value,
                Err(port) => {
                    let entry = standing.map(|it| ranges::entry_of(ranges::key_of_port(port), &it));
                    return Ok(Outcome::Conflict(entry));
                }
            };
            let mut whole = txn.clone();
            let key = Bytes::from_static(ALLOCATION);
            whole.compares.push(Compare { key: key.clone(), mod_revision: before });
            whole.operations.push(Operation::Put { key, value });
            outcome = self.inner.commit(whole).await?;
            if matches!(outcome, Outcome::Committed(_)) {
                return Ok(outcome);
            }
            let now = self.inner.get(ALLOCATION).await?.map_or(0, |it| it.mod_revision);
            if now == before {
                return Ok(outcome);
            }
        }
        Ok(outcome)
    }

    /// What is given above, of a range below.
    pub(crate) async fn given(&self, asked: Asked, revision: Option<Revision>, limit: usize) -> Result<Page, Error> {
        let (range, below) = match asked {
            Asked::Addresses(range) => (range, Range::prefix(ranges::IP_ADDRESSES)),
            Asked::Ports(range) | Asked::Stored(range) => (range, ranges::allocation_range()),
        };
        let page = self.inner.range(below, revision, 0).await?;
        let mut entries = records(&page.entries)?;
        entries.retain(|it| range.contains(&it.key));
        let more = limit > 0 && entries.len() > limit;
        if more {
            entries.truncate(limit);
        }
        Ok(Page { entries, revision: page.revision, more })
    }
}

/// The records of addresses and ports that stored entries stand for.
pub(crate) fn records(stored: &[Entry]) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    for entry in stored {
        if entry.key == ALLOCATION {
            let ports = Ports::read(Some(&entry.value)).map_err(Error::Io)?;
            entries.extend(ports.given().iter().map(|it| ranges::entry_of(ranges::key_of_port(*it), entry)));
        } else {
            entries.extend(ranges::address_entry(entry));
        }
    }
    Ok(entries)
}
