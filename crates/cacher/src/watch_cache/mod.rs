//! The newest state of every resource in memory, fed by one watch on the store; reads never go further.
//!
//! Per resource: an ordered map that is replaced as a whole (readers take the newest with one atomic load), and one log of
//! recent events. A watcher is a cursor into that log, or into a lane of it that holds only what its exact match can see.

mod announced;
mod converted;
mod custom;
mod drafts;
mod encode;
mod event;
pub mod feed;
mod form;
mod layout;
mod log;
mod matcher;
mod message;
mod record;
mod resource;
mod stored;
#[cfg(test)]
mod tests;
mod unreadable;
pub mod versions;
mod watcher;

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use corten_kinds::{KINDS, Kind, KindRef};
use corten_meta::{Resource, Status, depth::Read};
use corten_store::{Entry, Revision};
use fnv::FnvBuildHasher;
use serde_json::Value;
use tokio::sync::Notify;

use custom::CustomCaches;
use drafts::Drafts;

pub use announced::Announcement;
pub use converted::{Converted, PendingConversion, Slot};
pub use custom::CacheRef;
pub use encode::{encode, encode_text};
pub use event::{Event, EventType, protobuf_frame};
pub use feed::Feed;
pub use layout::{built_in_of_key, head, key_of, prefix_of, resource_of_key};
pub use log::Few;
pub use matcher::Matcher;
pub use message::{Extent, message_body};
pub use resource::Events;
pub use resource::{ResourceCache, Snapshot};
pub use stored::Stored;
pub use stored::{OWNERS, owners_fit, spliced};
pub use watcher::{FellBehind, Start, Watcher};

/// How long a request waits for a revision the caches have not reached (`blockTimeout`).
const REVISION_WAIT: Duration = Duration::from_secs(3);

/// Keeps up with keys that belong to no resource, and are in no cache.
pub trait OtherKeys: Send + Sync {
    /// The key was written, or deleted.
    fn changed(&self, key: &[u8], is_there: bool);

    /// Changes were lost: these are all keys that are there.
    fn read_again(&self, entries: &[Entry]);
}

/// One cache for each resource that is stored.
pub struct Caches {
    /// Those of built-in kinds, in the order of their resources.
    caches: Vec<ResourceCache>,
    /// Where in `caches` each is: a write asks for dozens of them.
    places: HashMap<Resource, usize, FnvBuildHasher>,
    by_prefix: BTreeMap<String, usize>,
    custom: ArcSwap<CustomCaches>,
    drafts: Drafts,
    other_keys: OnceLock<Arc<dyn OtherKeys>>,
    /// Every change up to this revision is in the caches.
    applied: AtomicU64,
    advanced: Notify,
}

impl Caches {
    fn new(revision: Revision) -> Self {
        let stored = KINDS.iter().filter(|it| is_stored(it));
        let by_resource: BTreeMap<_, _> = stored.map(|it| (it.resource.clone(), it)).collect();
        let places = by_resource.keys().cloned().zip(0..).collect();
        let caches: Vec<_> =
            by_resource.into_values().map(|it| ResourceCache::new(KindRef::BuiltIn(it), revision)).collect();
        let by_prefix = caches.iter().map(|it| it.prefix().to_owned()).zip(0..).collect();
        Self {
            caches,
            places,
            by_prefix,
            custom: ArcSwap::default(),
            drafts: Drafts::default(),
            other_keys: OnceLock::new(),
            applied: AtomicU64::new(revision),
            advanced: Notify::new(),
        }
    }

    /// The cache a store key belongs to, and the rest of the key.
    fn locate<'a>(&self, key: &'a [u8]) -> Option<(&ResourceCache, &'a str)> {
        let key = std::str::from_utf8(key).ok()?;
        // The longest prefix that is not after the key is the only one it can begin with.
        let (prefix, at) = self.by_prefix.range::<str, _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        Some((&self.caches[*at], key.strip_prefix(&**prefix)?))
    }

    /// Tells `follower` of keys that are in no cache from now on. Once.
    pub fn follow_other_keys(&self, follower: Arc<dyn OtherKeys>) {
        // Whoever came first stays.
        let _ = self.other_keys.set(follower);
    }

    /// Wakes nobody: that is [`Caches::tell_advanced`].
    fn advance(&self, revision: Revision) {
        self.applied.store(revision, Release);
    }

    fn tell_advanced(&self) {
        self.advanced.notify_waiters();
    }

    /// The cache of a built-in kind that is stored (see [`is_stored`]).
    pub fn built_in(&self, kind: &Kind) -> &ResourceCache {
        let resource = kind.view_of.as_ref().map_or(&kind.resource, |it| &it.stored);
        self.get(resource).expect("only kinds that are stored are asked for")
    }

    /// The cache of a definition's kind. `None` where its definition has just gone.
    pub fn custom(&self, kind: &Kind) -> Option<Arc<ResourceCache>> {
        self.custom.load().current(&kind.resource)
    }

    /// As [`Caches::custom`], by the resource.
    pub fn custom_of(&self, resource: &Resource) -> Option<Arc<ResourceCache>> {
        self.custom.load().current(resource)
    }

    /// That of a built-in resource.
    pub fn get(&self, resource: &Resource) -> Option<&ResourceCache> {
        self.places.get(resource).map(|at| &self.caches[*at])
    }

    /// Keeps what an object of a built-in kind was written of, in so many bytes, for who changes it next: see [`Self::draft`].
    pub fn keep_draft(&self, cache: &ResourceCache, key: &str, revision: Revision, bytes: usize, mut object: Value) {
        let Resource { kind, .. } = &cache.kind().resource;
        let owners = &object["metadata"]["managedFields"];
        let is_draft = !cache.kind().is_custom()
            && (owners.is_string() || owners.is_null())
            && object["kind"] == **kind
            && object["apiVersion"] == cache.kind().resource.api_version();
        if is_draft {
            object["metadata"]["resourceVersion"] = revision.to_string().into();
            head_first(&mut object);
            self.drafts.keep(cache.prefix(), key, revision, bytes, object);
        }
    }

    /// The object as a DOM for a write, as [`Stored::draft_as_far_as_it_goes`] reads it: not read at all where it was just written.
    pub fn draft(&self, cache: &ResourceCache, object: &Stored) -> (Arc<Value>, bool) {
        if let Some(draft) = self.drafts.get(cache.prefix(), &object.key, object.revision) {
            debug_assert_eq!(*draft, object.draft(), "what {} was written of is what it is read as", object.key);
            return (draft, true);
        }
        let Read { value, is_whole } = object.draft_as_far_as_it_goes();
        (Arc::new(value), is_whole)
    }

    /// Lets go of what nobody can reasonably ask for any more: what was written up to `revision`.
    fn forget(&self, revision: Revision) {
        self.iter().for_each(|it| it.forget(revision));
        self.drafts.forget(revision);
    }

    pub fn iter(&self) -> impl Iterator<Item = CacheRef<'_>> {
        let custom: Vec<_> = self.custom.load().all().collect();
        self.caches.iter().map(CacheRef::BuiltIn).chain(custom.into_iter().map(CacheRef::Custom))
    }

    pub fn applied(&self) -> Revision {
        self.applied.load(Acquire)
    }

    /// Waits until the caches hold everything up to `revision`.
    ///
    /// # Errors
    /// 504 where that does not come to pass in time (`NewTooLargeResourceVersionError`).
    pub async fn reach(&self, revision: Revision) -> Result<(), Status> {
        if self.applied() >= revision {
            return Ok(());
        }
        let reached = self.until(|| (self.applied() >= revision).then_some(()));
        tokio::time::timeout(REVISION_WAIT, reached).await.map_err(|_| too_large(revision, self.applied()))
    }

    /// Looks after every change of any object until there is something. Put a deadline around it.
    pub async fn until<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        loop {
            let mut advanced = pin!(self.advanced.notified());
            // Before the look: what comes after it wakes.
            advanced.as_mut().enable();
            if let Some(found) = look() {
                return found;
            }
            advanced.await;
        }
    }

    /// Wakes every watcher, so that it looks whether the server stops, or its right has ended.
    pub fn wake_watchers(&self) {
        self.iter().for_each(|it| it.wake());
    }
}

/// In the order in which it is stored: errors show objects so.
fn head_first(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    for name in ["metadata", "apiVersion", "kind"] {
        if let Some(value) = fields.shift_remove(name) {
            fields.shift_insert(0, name.to_owned(), value);
        }
    }
}

fn too_large(asked: Revision, newest: Revision) -> Status {
    let mut status = Status::timeout(format!("Too large resource version: {asked}, current: {newest}"));
    let cause = corten_meta::Cause {
        reason: "ResourceVersionTooLarge".into(),
        message: "Too large resource version".into(),
        ..Default::default()
    };
    status.details =
        Some(corten_meta::Details { causes: vec![cause], retry_after_seconds: Some(1), ..Default::default() });
    status
}

/// Kinds that can be listed are stored; the others (reviews, journals) are answered on the spot.
pub fn is_stored(kind: &Kind) -> bool {
    kind.is_stored()
}
