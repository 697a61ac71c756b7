//! The newest state of every resource in memory, fed by one watch on the store; reads never go further.
//!
//! Per resource: an ordered map that is replaced as a whole (readers take the newest with one atomic load), and one log of
//! recent events. A watcher is a cursor into that log, or into a lane of it that holds only what its exact match can see.

mod announced;
mod converted;
mod custom;
mod encode;
mod event;
pub mod feed;
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
    collections::BTreeMap,
    ops::Bound,
    pin::pin,
    sync::{
        Arc,
        atomic::{
            AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use corten_kinds::{KINDS, Kind, KindRef};
use corten_meta::{Resource, Status};
use corten_store::Revision;
use tokio::sync::Notify;

use custom::CustomCaches;

pub use announced::Announcement;
pub use converted::{Conversion, Converted, Slot};
pub use custom::CacheRef;
pub use encode::{encode, encode_text};
pub use event::{Event, EventType, protobuf_frame};
pub use feed::Feed;
pub use layout::{head, key_of, prefix_of, resource_of_key};
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

/// One cache for each resource that is stored.
pub struct Caches {
    caches: BTreeMap<Resource, ResourceCache>,
    by_prefix: BTreeMap<String, Resource>,
    custom: ArcSwap<CustomCaches>,
    /// Every change up to this revision is in the caches.
    applied: AtomicU64,
    advanced: Notify,
}

impl Caches {
    fn new(revision: Revision) -> Self {
        let stored = KINDS.iter().filter(|it| is_stored(it));
        let caches: BTreeMap<_, _> =
            stored.map(|it| (it.resource.clone(), ResourceCache::new(KindRef::BuiltIn(it), revision))).collect();
        let by_prefix = caches.iter().map(|(resource, it)| (it.prefix().to_owned(), resource.clone())).collect();
        Self {
            caches,
            by_prefix,
            custom: ArcSwap::default(),
            applied: AtomicU64::new(revision),
            advanced: Notify::new(),
        }
    }

    /// The cache a store key belongs to, and the rest of the key.
    fn locate<'a>(&self, key: &'a [u8]) -> Option<(&ResourceCache, &'a str)> {
        let key = std::str::from_utf8(key).ok()?;
        // The longest prefix that is not after the key is the only one it can begin with.
        let (prefix, resource) =
            self.by_prefix.range::<str, _>((Bound::Unbounded, Bound::Included(key))).next_back()?;
        Some((self.caches.get(resource)?, key.strip_prefix(&**prefix)?))
    }

    fn advance(&self, revision: Revision) {
        self.applied.store(revision, Release);
        self.advanced.notify_waiters();
    }

    /// The cache of a built-in kind that is stored (see [`is_stored`]).
    pub fn built_in(&self, kind: &Kind) -> &ResourceCache {
        let resource = kind.view_of.as_ref().map_or(&kind.resource, |it| &it.stored);
        self.caches.get(resource).expect("only kinds that are stored are asked for")
    }

    /// The cache of a definition's kind. `None` where its definition has just gone.
    pub fn custom(&self, kind: &Kind) -> Option<Arc<ResourceCache>> {
        self.custom.load().current(&kind.resource)
    }

    /// That of a built-in resource.
    pub fn get(&self, resource: &Resource) -> Option<&ResourceCache> {
        self.caches.get(resource)
    }

    pub fn iter(&self) -> impl Iterator<Item = CacheRef<'_>> {
        let custom: Vec<_> = self.custom.load().all().collect();
        self.caches.values().map(CacheRef::BuiltIn).chain(custom.into_iter().map(CacheRef::Custom))
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
