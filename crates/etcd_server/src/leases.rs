//! Leases: which there are, when each ends, and which keys may be bound to it. What a key is bound to stands in its entry; the sets of
//! keys here may name some that are no longer.
//!
//! A lease is written down before it is answered, with its whole time: after a restart each has all of it again, as in etcd after
//! another member became leader.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use corten_store::{Error, LocalStore, Operation, Range, Txn};
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};
use tonic::Status;

use crate::failure;

/// Of a lease that keys are bound to and nothing else knows: a copy of the store has come here without its leases.
pub(crate) const TTL_OF_UNKNOWN: i64 = 3_600;
/// Without leases there is nothing to wait for.
const IDLE: Duration = Duration::from_secs(3_600);
const PREFIX: &[u8] = b"lease/";

pub(crate) struct Leases {
    /// Where they are written down.
    pub(crate) disk: Arc<dyn LocalStore>,
    pub(crate) known: Mutex<BTreeMap<i64, Granted>>,
    pub(crate) changed: Notify,
    /// Keys that a lease may have lost. The next transaction looks, in its turn.
    loosened: Mutex<Vec<(i64, Bytes)>>,
}

pub(crate) struct Granted {
    pub(crate) ttl: i64,
    pub(crate) end: Instant,
    pub(crate) keys: BTreeSet<Bytes>,
    pub(crate) stage: Stage,
}

#[derive(PartialEq, Eq)]
pub(crate) enum Stage {
    /// It is being written down.
    Begins,
    Lasts,
    /// Its keys are being deleted.
    Ends,
}

impl Granted {
    pub(crate) fn new(ttl: i64, stage: Stage) -> Self {
        Self { ttl, end: end(ttl), keys: BTreeSet::new(), stage }
    }

    pub(crate) fn remaining(&self) -> i64 {
        i64::try_from(self.end.saturating_duration_since(Instant::now()).as_secs()).unwrap_or(i64::MAX)
    }
}

pub(crate) fn end(ttl: i64) -> Instant {
    Instant::now() + Duration::from_secs(ttl.unsigned_abs())
}

pub(crate) fn key(id: i64) -> Bytes {
    [PREFIX, &id.to_be_bytes()].concat().into()
}

impl Leases {
    /// Those that were written down, with the keys that are bound to them.
    pub(crate) async fn open(store: &dyn LocalStore, disk: Arc<dyn LocalStore>) -> Result<Self, Error> {
        let mut known = BTreeMap::new();
        for entry in disk.range(Range::prefix(PREFIX), None, 0).await?.entries {
            let number = |it: &[u8]| it.try_into().ok().map(i64::from_be_bytes);
            if let (Some(id), Some(ttl)) = (number(&entry.key[PREFIX.len()..]), number(&entry.value)) {
                known.insert(id, Granted::new(ttl, Stage::Lasts));
            }
        }
        let mut unknown = Vec::new();
        for entry in store.view(&Range::prefix(""), None)?.entries().filter(|it| it.lease != 0) {
            let lease = known.entry(entry.lease).or_insert_with(|| {
                unknown.push(entry.lease);
                Granted::new(TTL_OF_UNKNOWN, Stage::Lasts)
            });
            lease.keys.insert(entry.key.clone());
        }
        let this = Self { disk, known: Mutex::new(known), changed: Notify::new(), loosened: Mutex::default() };
        for id in unknown {
            this.write_down(id, TTL_OF_UNKNOWN).await?;
        }
        Ok(this)
    }

    pub(crate) async fn write_down(&self, id: i64, ttl: i64) -> Result<(), Error> {
        let value = Bytes::copy_from_slice(&ttl.to_be_bytes());
        let operations = vec![Operation::Put { key: key(id), value }];
        self.disk.commit(Txn { compares: Vec::new(), operations }).await.map(|_| ())
    }

    pub(crate) fn is_alive(&self, id: i64) -> bool {
        self.known.lock().get(&id).is_some_and(|it| it.stage == Stage::Lasts)
    }

    /// A key that is about to be bound to it.
    pub(crate) fn attach(&self, id: i64, key: Bytes) -> Result<(), Status> {
        match self.known.lock().get_mut(&id).filter(|it| it.stage == Stage::Lasts) {
            Some(lease) => {
                lease.keys.insert(key);
                Ok(())
            }
            None => Err(failure::no_lease()),
        }
    }

    /// Keys that were written anew or deleted, with the leases that they were bound to.
    pub(crate) fn loosen(&self, keys: Vec<(i64, Bytes)>) {
        self.loosened.lock().extend(keys);
    }

    /// Forgets the keys that are bound to another lease by now, or gone. `is_bound` says what may be so by what is written and by what is
    /// being written: either may be what stays.
    pub(crate) fn detach(&self, is_bound: impl Fn(i64, &Bytes) -> bool) {
        let loosened = std::mem::take(&mut *self.loosened.lock());
        let mut known = self.known.lock();
        for (id, key) in loosened {
            if let Some(lease) = known.get_mut(&id)
                && !is_bound(id, &key)
            {
                lease.keys.remove(&key);
            }
        }
    }

    /// From now on nothing is bound to it any more. Says whether it lasted until now.
    pub(crate) fn begin_end(&self, id: i64) -> bool {
        let mut known = self.known.lock();
        let lease = known.get_mut(&id).filter(|it| it.stage == Stage::Lasts);
        lease.map(|it| it.stage = Stage::Ends).is_some()
    }

    /// Those that may be bound to it.
    pub(crate) fn keys(&self, id: i64) -> BTreeSet<Bytes> {
        self.known.lock().get(&id).map(|it| it.keys.clone()).unwrap_or_default()
    }

    pub(crate) fn first_end(&self) -> Instant {
        let known = self.known.lock();
        let ends = known.values().filter(|it| it.stage == Stage::Lasts).map(|it| it.end);
        ends.min().unwrap_or_else(|| Instant::now() + IDLE)
    }

    pub(crate) fn over(&self) -> Vec<i64> {
        let (now, known) = (Instant::now(), self.known.lock());
        known.iter().filter(|(_, it)| it.stage == Stage::Lasts && it.end <= now).map(|it| *it.0).collect()
    }
}
