//! What a store over a store and its watches share: how values are sealed and opened, and which of them nothing opens.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};

use bytes::Bytes;
use corten_store::{BoxFuture, Entry, Error, Operation, Page, Range, Store, Txn};
use futures_util::{StreamExt, stream};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{
    encryption::Encryption,
    envelope::EncryptedObject,
    group_resource::GroupResource,
    in_flight::InFlight,
    kms::Kms,
    transformers::Opened,
    wrong_keys::{PAGE, Stored},
};

/// Which resource a key of the store belongs to: plural and group.
pub(crate) type Locate = fn(&[u8]) -> Option<(String, String)>;

/// So many plugins' answers are waited for at once.
const FETCHES: usize = 8;
/// So many of them at a time.
const RETRIED: usize = 64;

pub(crate) struct Shared {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) encryption: Encryption,
    locate: Locate,
    in_flight: InFlight,
    unreadable: Mutex<Unreadable>,
    /// How often something that was unreadable has become readable: then watches begin anew.
    reopened: watch::Sender<u64>,
}

/// The keys whose newest value nothing opens.
#[derive(Default)]
struct Unreadable {
    keys: BTreeSet<Bytes>,
    /// The one that was tried last.
    tried: Bytes,
}

impl Unreadable {
    /// Those whose turn it is: however many there are, each is tried before one is tried again.
    fn next(&self) -> Vec<Bytes> {
        let later = self.keys.range::<Bytes, _>((Bound::Excluded(&self.tried), Bound::Unbounded));
        let earlier = self.keys.range::<Bytes, _>((Bound::Unbounded, Bound::Included(&self.tried)));
        later.chain(earlier).take(RETRIED).cloned().collect()
    }
}

/// A seed that only a plugin can give.
pub(crate) type Missing = (Arc<Kms>, Box<EncryptedObject>);

impl Shared {
    pub(crate) fn new(inner: Arc<dyn Store>, encryption: Encryption, locate: Locate) -> Self {
        Self {
            inner,
            encryption,
            locate,
            in_flight: InFlight::default(),
            unreadable: Mutex::default(),
            reopened: watch::Sender::new(0),
        }
    }

    pub(crate) fn reopened(&self) -> watch::Receiver<u64> {
        self.reopened.subscribe()
    }

    pub(crate) fn resource(&self, key: &[u8]) -> Option<GroupResource> {
        (self.locate)(key).map(|(resource, group)| GroupResource { resource, group })
    }

    pub(crate) fn open(&self, key: &[u8], stored: &Bytes) -> Opened {
        match self.in_flight.take(stored) {
            Some(value) => Opened::Plain { value, is_stale: false },
            None => self.encryption.open(self.resource(key).as_ref(), key, stored),
        }
    }

    /// Opens an entry where that needs no plugin.
    pub(crate) fn open_entry(&self, entry: &mut Entry) -> Option<Missing> {
        match self.open(&entry.key, &entry.value) {
            Opened::Plain { value, .. } => entry.value = value,
            Opened::NeedsSeed(kms, object) => return Some((kms, object)),
            Opened::Unreadable(reason) => entry.unreadable = Some(reason.into()),
        }
        None
    }

    /// Notes what became of the newest value of a key.
    pub(crate) fn note(&self, key: &Bytes, is_readable: bool) {
        let mut unreadable = self.unreadable.lock();
        if !is_readable {
            unreadable.keys.insert(key.clone());
        } else if !unreadable.keys.is_empty() {
            unreadable.keys.remove(key);
        }
    }

    /// Opens entries, asking plugins for what only they know: for each seed once.
    pub(crate) async fn open_all(&self, entries: &mut [Entry]) {
        let mut missing = BTreeMap::new();
        let mut closed = Vec::new();
        for (at, entry) in entries.iter_mut().enumerate() {
            if let Some((kms, object)) = self.open_entry(entry) {
                missing.entry(object.seed_id()).or_insert((kms, object));
                closed.push(at);
            }
        }
        if closed.is_empty() {
            return;
        }
        fetch(missing.into_values().collect()).await;
        for at in closed {
            if self.open_entry(&mut entries[at]).is_some() {
                entries[at].unreadable = Some("the KMS plugin did not give the seed in time".into());
            }
        }
    }

    /// Tries what nothing opened again. Where that opens now, watches begin anew.
    pub(crate) async fn retry(&self) {
        let keys = self.unreadable.lock().next();
        for key in keys {
            self.unreadable.lock().tried = key.clone();
            let Ok(current) = self.inner.get(&key).await else { return };
            let Some(current) = current else {
                self.note(&key, true);
                continue;
            };
            let mut entries = [current];
            self.open_all(&mut entries).await;
            if entries[0].unreadable.is_none() {
                tracing::info!("objects that could not be decrypted can be now");
                self.reopened.send_modify(|it| *it += 1);
                return;
            }
        }
    }

    /// The transaction with its values as they are to be stored.
    pub(crate) fn seal(&self, mut txn: Txn) -> Result<Txn, Error> {
        for operation in &mut txn.operations {
            let Operation::Put { key, value } = operation else { continue };
            let Some(resource) = self.resource(key) else { continue };
            let sealed = self.encryption.seal(&resource, key, value).map_err(Error::Encryption)?;
            if let Some(sealed) = sealed.filter(|it| it.as_ptr() != value.as_ptr()) {
                self.in_flight.add(&sealed, value);
                *value = sealed;
            }
        }
        Ok(txn)
    }

    pub(crate) fn forget(&self, written: &[Bytes]) {
        for value in written {
            self.in_flight.take(value);
        }
    }
}

/// Asks plugins for seeds. Each answer has a deadline of its own.
pub(crate) async fn fetch(missing: Vec<Missing>) {
    stream::iter(missing)
        .map(|(kms, object)| async move { kms.fetch(&object).await })
        .buffer_unordered(FETCHES)
        .collect::<()>()
        .await;
}

impl Stored for Shared {
    fn page(&self, range: Range) -> BoxFuture<'_, Result<Page, Error>> {
        self.inner.range(range, None, PAGE)
    }

    fn resource_of(&self, key: &[u8]) -> Option<GroupResource> {
        self.resource(key)
    }
}
