//! Fills the caches from the store and keeps them up with one watch.

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    sync::Arc,
    time::Duration,
};

use corten_store::{Changes, Entry, Error, Range, Revision, Store, registry::ROOT};
use parking_lot::Mutex;
use tokio::{sync::watch, time::Instant};

use super::{Caches, ResourceCache, Snapshot, custom::Pair, log::Log, resource::Change};

/// After so many rounds the lanes are trimmed to what the logs hold.
const TRIM_EVERY: u32 = 256;
/// Events are kept for this long, in steps, unless their window is too narrow before.
const EVENT_AGE: Duration = Duration::from_secs(300);
const AGE_STEP: Duration = Duration::from_secs(30);
/// How long a store that does not answer is left alone before everything is read again.
const RESYNC_PAUSE: Duration = Duration::from_secs(1);

/// The state of the store in caches, and the changes after it.
pub async fn fill(store: &dyn Store) -> Result<(Caches, Box<dyn Changes>), Error> {
    let page = store.range(Range::prefix(ROOT), None, 0).await?;
    let changes = store.watch(Range::prefix(ROOT), page.revision).await?;
    let caches = Caches::new(page.revision);
    for cache in caches.iter() {
        cache.fill(slice(&page.entries, cache.prefix()), page.revision);
    }
    Ok((caches, changes))
}

/// The entries, sorted by key, whose keys begin with `prefix`.
fn slice<'a>(entries: &'a [Entry], prefix: &str) -> &'a [Entry] {
    let start = entries.partition_point(|it| *it.key < *prefix.as_bytes());
    let n = entries[start..].partition_point(|it| it.key.starts_with(prefix.as_bytes()));
    &entries[start..start + n]
}

/// What moves changes from the store into the caches: a task does, and any writer that would otherwise wait for it.
pub struct Feed(Mutex<State>);

struct State {
    changes: Box<dyn Changes>,
    /// Logs with events that their watchers were not woken for. The task wakes them: a writer's answer comes first.
    unheard: Vec<Arc<Log>>,
    /// The caches have come further, and who waits for that was not woken.
    has_advanced: bool,
}

impl Feed {
    pub fn new(changes: Box<dyn Changes>) -> Self {
        Self(Mutex::new(State { changes, unheard: Vec::new(), has_advanced: false }))
    }

    /// Applies what is there now, unless somebody is about it: then the task sees to what that one leaves.
    pub fn help(&self, caches: &Caches) {
        if let Some(mut state) = self.0.try_lock() {
            // The end of the store's changes is told again, to the task.
            let _ = state.pump(caches);
        }
    }

    fn woken(&self) -> corten_store::BoxFuture<'static, ()> {
        self.0.lock().changes.woken()
    }

    fn pump(&self, caches: &Caches) -> Result<(), Error> {
        let mut state = self.0.lock();
        let pumped = state.pump(caches);
        let (unheard, has_advanced) = (mem::take(&mut state.unheard), mem::take(&mut state.has_advanced));
        drop(state);
        if has_advanced {
            caches.tell_advanced();
        }
        unheard.iter().for_each(|it| it.wake());
        pumped
    }
}

impl State {
    fn pump(&mut self, caches: &Caches) -> Result<(), Error> {
        while let Some(batch) = self.changes.ready() {
            self.unheard.extend(apply(caches, batch?));
            self.has_advanced = true;
        }
        // Others may have written what is in no cache.
        if let Some(revision) = self.changes.progress()
            && revision > caches.applied()
        {
            caches.advance(revision);
            self.has_advanced = true;
        }
        Ok(())
    }
}

/// Applies changes in order until the store or the server ends.
pub async fn run(store: Arc<dyn Store>, caches: Arc<Caches>, feed: Arc<Feed>, mut ended: watch::Receiver<bool>) {
    let mut rounds = 0_u32;
    let mut ages = Ages::default();
    loop {
        match feed.pump(&caches) {
            Ok(()) => {}
            Err(Error::Compacted { .. }) => {
                let again = tokio::select! {
                    biased;
                    _ = ended.wait_for(|it| *it) => return,
                    again = resynced(&*store, &caches) => again,
                };
                match again {
                    Ok(again) => feed.0.lock().changes = again,
                    Err(error) => return tracing::error!(%error, "the watch caches cannot be read again"),
                }
                continue;
            }
            Err(Error::Closed) => return,
            Err(error) => return tracing::error!(%error, "the watch caches lost the store"),
        }
        rounds = rounds.wrapping_add(1);
        if rounds.is_multiple_of(TRIM_EVERY) {
            caches.iter().for_each(|it| it.trim_lanes());
        }
        if let Some(revision) = ages.pass(caches.applied()) {
            caches.forget(revision);
            forget(&*store, revision).await;
        }
        let woken = feed.woken();
        tokio::select! {
            biased;
            _ = ended.wait_for(|it| *it) => return,
            () = woken => {}
            // Where nothing changes any more, the last changes grow old all the same.
            () = ages.next_pass(caches.applied()) => {}
        }
    }
}

/// The store keeps each value as long as its own window does, whatever the caches forget. What a shared store forgets is decided
/// among all who share it.
async fn forget(store: &dyn Store, revision: Revision) {
    if store.is_shared() {
        return;
    }
    match store.compact(revision).await {
        Ok(()) | Err(Error::Closed) => {}
        Err(error) => tracing::warn!(%error, revision, "the store cannot forget what is old"),
    }
}

/// Which revision was the newest when: so that events need not carry the time.
#[derive(Default)]
struct Ages {
    marks: VecDeque<(Instant, Revision)>,
    /// Of the newest mark, also when that has been dropped.
    marked: Revision,
}

impl Ages {
    /// The revision up to which events have become old, where that has moved.
    fn pass(&mut self, newest: Revision) -> Option<Revision> {
        let now = Instant::now();
        if newest > self.marked && self.marks.back().is_none_or(|(at, _)| now - *at >= AGE_STEP) {
            self.marks.push_back((now, newest));
            self.marked = newest;
        }
        let mut old = None;
        while let Some((at, revision)) = self.marks.front()
            && now - *at >= EVENT_AGE
        {
            old = Some(*revision);
            self.marks.pop_front();
        }
        old
    }

    /// Waits until [`Self::pass`] has something to do though nothing new happens.
    async fn next_pass(&self, newest: Revision) {
        let old = self.marks.front().map(|(at, _)| *at + EVENT_AGE);
        let unmarked = self.marks.back().filter(|_| newest > self.marked).map(|(at, _)| *at + AGE_STEP);
        match old.into_iter().chain(unmarked).min() {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}

/// Gives the logs whose watchers are to be woken; [`Caches::tell_advanced`] is due, too.
pub(super) fn apply(caches: &Caches, batch: Vec<corten_store::Change>) -> Vec<Arc<Log>> {
    let Some(newest) = batch.last().map(|it| it.revision) else { return Vec::new() };
    let mut by_prefix: BTreeMap<&str, (&ResourceCache, Vec<Change>)> = BTreeMap::new();
    let custom = caches.custom.load();
    let mut of_custom: BTreeMap<&str, (&Pair, Vec<&corten_store::Change>)> = BTreeMap::new();
    for it in &batch {
        let Some((cache, key)) = caches.locate(&it.key) else {
            if let Some((prefix, pair, _)) = custom.locate(&it.key) {
                of_custom.entry(prefix).or_insert_with(|| (pair, Vec::new())).1.push(it);
            } else if let Some(follower) = caches.other_keys.get() {
                follower.changed(&it.key, it.entry.is_some());
            }
            continue;
        };
        let content = it.entry.as_ref().and_then(|it| cache.content(it));
        let change = Change { key: key.into(), revision: it.revision, content };
        by_prefix.entry(cache.prefix()).or_insert_with(|| (cache, Vec::new())).1.push(change);
    }
    let mut unheard: Vec<_> = by_prefix.into_values().flat_map(|(cache, changes)| cache.apply(changes)).collect();
    unheard.extend(of_custom.into_values().flat_map(|(pair, changes)| pair.apply(&changes)));
    // Only now: whoever waits for a revision finds it in every cache.
    caches.advance(newest);
    // Writers are answered before watchers are told: there is one of them, and many of those.
    unheard
}

/// As [`resync`], however long the store does not answer.
async fn resynced(store: &dyn Store, caches: &Caches) -> Result<Box<dyn Changes>, Error> {
    loop {
        match resync(store, caches).await {
            Err(error @ (Error::Unavailable(_) | Error::Compacted { .. })) => {
                tracing::warn!(%error, "the watch caches cannot be read again yet");
                tokio::time::sleep(RESYNC_PAUSE).await;
            }
            again => return again,
        }
    }
}

/// Reads everything again after the watch was lost. Watchers of what is different list again.
async fn resync(store: &dyn Store, caches: &Caches) -> Result<Box<dyn Changes>, Error> {
    let page = store.range(Range::prefix(ROOT), None, 0).await?;
    let mut unheard = Vec::new();
    if let Some(follower) = caches.other_keys.get() {
        follower.read_again(&page.entries);
    }
    caches.custom.load().lost();
    for cache in caches.iter() {
        let entries = slice(&page.entries, cache.prefix());
        let changes = difference(&cache, &cache.snapshot(), entries, page.revision);
        unheard.extend(cache.apply_difference(changes));
    }
    caches.advance(page.revision);
    caches.tell_advanced();
    unheard.iter().for_each(|it| it.wake());
    store.watch(Range::prefix(ROOT), page.revision).await
}

fn difference(cache: &ResourceCache, before: &Snapshot, entries: &[Entry], revision: Revision) -> Vec<Change> {
    let now: BTreeMap<Arc<str>, &Entry> = entries.iter().map(|it| (cache.key(it), it)).collect();
    let known = before.iter().map(|it| &it.key).chain(before.unreadable.keys());
    let gone = known.filter(|it| !now.contains_key(*it));
    let mut changes: Vec<Change> = gone.map(|it| Change { key: it.clone(), revision, content: None }).collect();
    for (key, entry) in now {
        // What is known of the newest value stays known, even if nothing decrypts it any more.
        if before.by_key(&key).is_some_and(|it| it.revision == entry.mod_revision) {
            continue;
        }
        let was_unreadable = before.unreadable.get(&key).is_some();
        if was_unreadable && entry.unreadable.is_some() {
            continue;
        }
        // What has become readable was changed before, and is news now.
        let revision = if was_unreadable { revision } else { entry.mod_revision };
        let content = cache.content(entry);
        changes.push(Change { key, revision, content });
    }
    // Revisions within a log never go back: what is gone went at the latest now.
    changes.sort_by_key(|it| it.revision);
    changes
}

/// The objects of a resource as the store remembers them, for revisions the caches no longer hold.
pub async fn read_at(store: &dyn Store, cache: &ResourceCache, revision: Revision) -> Result<Snapshot, Error> {
    let page = store.range(Range::prefix(cache.prefix().to_owned()), Some(revision), 0).await?;
    Ok(cache.snapshot_of(&page.entries, revision))
}
