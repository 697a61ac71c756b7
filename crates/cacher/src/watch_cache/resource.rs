//! The cache of one resource: its newest snapshot, snapshots that pages are read from, its event log and the log's lanes.

use std::{
    collections::{BTreeMap, VecDeque},
    ops::Bound,
    pin::pin,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicU64,
            Ordering::{Acquire, Release},
        },
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use corten_kinds::KindRef;
use corten_meta::Resource;
use corten_store::{Entry, Revision, registry::ENCRYPTED};
use imbl::OrdMap;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::{
    Matcher, Stored, Watcher,
    announced::{Announced, Announcement},
    custom::{self, PendingChanges},
    event::Event,
    form::Form,
    head, key_of,
    log::{Log, WINDOW, Window},
    matcher::Scope,
    prefix_of,
    record::Reader,
    unreadable::Unreadables,
    watcher::{Start, Started},
};

/// Snapshots that clients page through, kept for this long and so many.
const PAGED_AGE: Duration = Duration::from_secs(300);
const PAGED_MAX: usize = 64;

pub struct ResourceCache {
    kind: KindRef,
    prefix: String,
    /// What stored values may begin with: that in which objects are written comes first. A custom resource has one for each version.
    forms: Vec<Form>,
    reader: Reader,
    announced: Announced,
    current: ArcSwap<Snapshot>,
    paged: Mutex<VecDeque<Paged>>,
    log: Arc<Log>,
    /// Locked while a batch is published, so that a new watcher starts between two batches.
    lanes: Arc<Mutex<Lanes>>,
    window: Window,
    /// Of a cache that is not filled yet: what came meanwhile.
    waiting: Mutex<Option<PendingChanges>>,
    /// The revision that it was filled at. What comes later and is not newer is in it.
    filled_at: AtomicU64,
    /// Its definition has gone, or another cache has taken its place.
    is_closed: Arc<AtomicBool>,
}

struct Paged {
    revision: Revision,
    snapshot: Arc<Snapshot>,
    until: Instant,
}

/// The events of one scope, for as long as somebody watches it.
pub(super) struct Lane {
    pub(super) log: Arc<Log>,
    pub(super) watchers: usize,
}

/// Ordered, so that simulations repeat exactly.
pub(super) type Lanes = BTreeMap<Scope, Lane>;

/// All objects of a resource as they were at one revision.
#[derive(Clone)]
pub struct Snapshot {
    /// Of the newest change it holds; it is also the state at every later revision until the next change.
    pub revision: Revision,
    objects: OrdMap<Arc<str>, Arc<Stored>>,
    pub(super) unreadable: Unreadables,
}

impl Snapshot {
    /// Why the object cannot be read though it is there.
    pub fn unreadable(&self, namespace: &str, name: &str) -> Option<&str> {
        if self.unreadable.is_empty() { None } else { self.unreadable.get(&key_of(namespace, name)).map(|it| &**it) }
    }

    /// Why a list that wants these objects cannot be whole.
    pub fn gap(&self, matcher: &Matcher) -> Option<&str> {
        self.unreadable.within(matcher.key.as_deref(), &matcher.namespace).map(|it| &**it)
    }

    /// How many objects cannot be read, and why the first of them cannot.
    pub fn unreadables(&self) -> Option<(usize, &str)> {
        self.unreadable.first().map(|it| (self.unreadable.len(), &**it))
    }

    /// How long ago the first of them was found.
    pub fn unreadable_since(&self) -> Option<std::time::Duration> {
        self.unreadable.since()
    }

    /// The keys of the objects that cannot be read, below that of their resource.
    pub fn unreadable_keys(&self) -> impl Iterator<Item = &str> {
        self.unreadable.keys().map(|it| &**it)
    }

    pub fn get(&self, namespace: &str, name: &str) -> Option<&Arc<Stored>> {
        self.objects.get(&*key_of(namespace, name))
    }

    pub fn by_key(&self, key: &str) -> Option<&Arc<Stored>> {
        self.objects.get(key)
    }

    /// These objects, each under its key, at one revision.
    pub fn of(revision: Revision, objects: impl IntoIterator<Item = Arc<Stored>>) -> Self {
        let objects = objects.into_iter().map(|it| (it.key.clone(), it)).collect();
        Self { revision, objects, unreadable: Unreadables::default() }
    }

    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Is there no object, readable or not?
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.unreadable.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Stored>> {
        self.objects.values()
    }

    /// The objects of a namespace (empty: all), in key order, those after `after` where it is given.
    pub fn range<'a>(&'a self, namespace: &str, after: Option<&str>) -> impl Iterator<Item = &'a Arc<Stored>> {
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let start = match after {
            Some(key) if *key >= *prefix => Bound::Excluded(key),
            _ => Bound::Included(&*prefix),
        };
        let range = self.objects.range::<_, str>((start, Bound::Unbounded));
        range.map(|(_, it)| it).take_while(move |it| it.key.starts_with(&prefix))
    }
}

/// One change as the cache takes it.
pub(super) struct Change {
    pub(super) key: Arc<str>,
    pub(super) revision: Revision,
    /// What stands there now; `None` after a deletion.
    pub(super) content: Option<Content>,
}

/// What an entry of the store holds.
pub(super) enum Content {
    Object(Arc<Stored>),
    /// And why.
    Unreadable(Arc<str>),
}

impl ResourceCache {
    pub(super) fn new(kind: KindRef, revision: Revision) -> Self {
        Self::with_window(kind, revision, WINDOW)
    }

    pub(super) fn with_window(kind: KindRef, revision: Revision, window: Window) -> Self {
        Self {
            prefix: if kind.is_custom() { custom::prefix_of(&kind.resource) } else { prefix_of(&kind.resource) },
            forms: Form::of(&kind, head),
            reader: Reader::new(&kind),
            kind,
            announced: Announced::default(),
            current: ArcSwap::from_pointee(Snapshot {
                revision,
                objects: OrdMap::new(),
                unreadable: Unreadables::default(),
            }),
            paged: Mutex::default(),
            log: Arc::new(Log::new(revision, window)),
            lanes: Arc::default(),
            window,
            waiting: Mutex::default(),
            filled_at: AtomicU64::new(0),
            is_closed: Arc::default(),
        }
    }

    /// Of a custom resource: it takes changes from now on, and what came before them by [`Self::fill_up`].
    pub(super) fn to_be_filled(kind: KindRef) -> Self {
        Self { waiting: Mutex::new(Some(PendingChanges::default())), ..Self::new(kind, 0) }
    }

    /// Takes the state of the store, and what has come since. False where something of that was lost.
    pub(super) fn fill_up(&self, entries: &[Entry], revision: Revision) -> bool {
        let mut waiting = self.waiting.lock();
        let Some(since) = waiting.take().filter(|it| !it.is_lost) else { return false };
        self.fill(entries, revision);
        self.filled_at.store(revision, Release);
        self.log.begin_at(revision);
        self.apply(since.after(revision));
        true
    }

    /// As [`Self::apply`], once it is filled.
    pub(super) fn apply_or_wait(&self, mut changes: Vec<Change>) -> Vec<Arc<Log>> {
        let mut waiting = self.waiting.lock();
        match &mut *waiting {
            Some(waiting) => {
                waiting.changes.extend(changes);
                Vec::new()
            }
            None => {
                // The store was read ahead of where its watch was.
                let filled_at = self.filled_at.load(Acquire);
                changes.retain(|it| it.revision > filled_at);
                self.apply(changes)
            }
        }
    }

    pub(super) fn lose(&self) {
        if let Some(waiting) = &mut *self.waiting.lock() {
            waiting.is_lost = true;
        }
    }

    /// Ends its watches.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Release);
        self.wake();
    }

    pub fn kind(&self) -> &KindRef {
        &self.kind
    }

    /// What every key of the resource begins with in the store.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    pub fn store_key(&self, namespace: &str, name: &str) -> Bytes {
        format!("{}{}", self.prefix, key_of(namespace, name)).into()
    }

    /// Of the newest change that the snapshot holds.
    pub fn snapshot_revision(&self) -> Revision {
        self.current.load().revision
    }

    /// The newest state. One atomic load.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.current.load_full()
    }

    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        self.current.load().get(namespace, name).cloned()
    }

    /// A store entry as the cache keeps it. `None` where it is another resource's.
    pub(super) fn content(&self, entry: &Entry) -> Option<Content> {
        let key = std::str::from_utf8(&entry.key).ok()?.strip_prefix(&self.prefix)?;
        let read = match &entry.unreadable {
            None => self.stored(key, entry),
            Some(reason) => Err(reason.to_string()),
        };
        Some(match read {
            Ok(object) => Content::Object(object),
            Err(reason) => {
                tracing::error!(%key, resource = %self.kind.resource, reason, "the stored object cannot be read");
                // As etcd3's store names it.
                let stored_at = format!("{}{key}", self.prefix);
                Content::Unreadable(format!("unable to transform key {stored_at:?}: {reason}").into())
            }
        })
    }

    fn stored(&self, key: &str, entry: &Entry) -> Result<Arc<Stored>, String> {
        let (form, value) = match self.forms.iter().find(|it| entry.value.starts_with(it.head.as_bytes())) {
            Some(form) => (form, entry.value.clone()),
            None if entry.value.starts_with(ENCRYPTED) => {
                return Err("identity transformer tried to read encrypted data".into());
            }
            // Written by somebody else, such as a restored backup.
            None => self.rewritten(&entry.value)?,
        };
        let announced = self.announced.take(&value);
        let value = if announced.is_some() { value } else { form.coerced(value, super::encode) };
        debug_assert!(
            announced.as_ref().is_none_or(|it| self.reader.read(&value).is_ok_and(|read| read == *it)),
            "what is announced of {key} is what its bytes say"
        );
        let record = announced.map_or_else(|| self.reader.read(&value), Ok).map_err(|it| it.to_string())?;
        Ok(Arc::new(Stored::new(key.into(), value, form.head.len(), entry.mod_revision, record)))
    }

    /// The value as this server would have written it, and in which version that is.
    fn rewritten(&self, value: &[u8]) -> Result<(&Form, Bytes), String> {
        let form = if self.kind.versions.is_some() { self.own_form(value)? } else { &self.forms[0] };
        let value = super::encode_text(&form.resource, value).map_err(|it| it.to_string())?;
        Ok((form, value))
    }

    /// The version that a custom resource says it is in. What is in another one nobody can convert: under the name of a known version
    /// it would lose what that does not have, and the next write would make that last.
    fn own_form(&self, value: &[u8]) -> Result<&Form, String> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Head {
            #[serde(default)]
            api_version: String,
        }
        let Head { api_version } = serde_json::from_slice(value).map_err(|it| it.to_string())?;
        let form = self.forms.iter().find(|it| it.resource.api_version() == api_version);
        // The message of `crConverter`.
        form.ok_or_else(|| format!("request to convert CR from an invalid group/version: {api_version}"))
    }

    /// An object in another of its versions, as whoever converts it made it of what is stored. `None` where that cannot be read.
    pub fn in_other_version(&self, of: &Stored, resource: &Resource, object: &Value) -> Option<Arc<Stored>> {
        let (value, splice) = (super::encode(resource, object), head(resource).len());
        let record = self.reader.read(&value).ok()?;
        Some(Arc::new(Stored::new(of.key.clone(), value, splice, of.revision, record)))
    }

    /// Says what the bytes of an object hold before they are committed. Nothing depends on it but the time it takes to read them;
    /// `None`: they must be read, because what they are read as is more than they hold.
    pub fn announce(&self, value: &Bytes, object: Option<&Value>) -> Announcement<'_> {
        self.announced.add(value, object.map(|it| self.reader.read_value(it)))
    }

    /// Is an object being committed that was announced?
    pub fn is_written_to(&self) -> bool {
        self.announced.is_pending()
    }

    /// Takes the state the store is in at the start: no events.
    pub(super) fn fill(&self, entries: &[Entry], revision: Revision) {
        self.current.store(Arc::new(self.snapshot_of(entries, revision)));
    }

    pub(super) fn snapshot_of(&self, entries: &[Entry], revision: Revision) -> Snapshot {
        let (mut objects, mut unreadable) = (Vec::with_capacity(entries.len()), Unreadables::default());
        for entry in entries {
            match self.content(entry) {
                Some(Content::Object(object)) => objects.push((object.key.clone(), object)),
                Some(Content::Unreadable(reason)) => unreadable.insert(self.key(entry), reason),
                None => {}
            }
        }
        let unreadable = unreadable.following(&self.current.load().unreadable);
        let revision = unreadable.revision(revision);
        Snapshot { revision, objects: objects.into_iter().collect(), unreadable }
    }

    /// What follows the prefix.
    pub(super) fn key(&self, entry: &Entry) -> Arc<str> {
        let key = std::str::from_utf8(&entry.key).unwrap_or_default();
        key.strip_prefix(&self.prefix).unwrap_or(key).into()
    }

    /// Takes changes in; gives the logs whose watchers are to be woken.
    pub(super) fn apply(&self, changes: Vec<Change>) -> Vec<Arc<Log>> {
        self.take_in(changes, false)
    }

    /// Takes in what is different from what is known, where it is not known what happened between. Told as events it would show states
    /// that never were: whoever watches lists again.
    pub(super) fn apply_difference(&self, changes: Vec<Change>) -> Vec<Arc<Log>> {
        let has_gap = !changes.is_empty();
        self.take_in(changes, has_gap)
    }

    fn take_in(&self, changes: Vec<Change>, mut has_gap: bool) -> Vec<Arc<Log>> {
        let lanes = self.lanes.lock();
        let before = self.current.load();
        let mut snapshot = Snapshot::clone(&before);
        let mut events = Vec::with_capacity(changes.len());
        let mut revision = before.revision;
        for change in changes {
            revision = change.revision;
            has_gap |= snapshot.unreadable.remove(&change.key);
            let object = match change.content {
                Some(Content::Object(object)) => Some(object),
                Some(Content::Unreadable(reason)) => {
                    snapshot.unreadable.insert(change.key.clone(), reason);
                    has_gap = true;
                    None
                }
                None => None,
            };
            let previous = match &object {
                Some(object) => snapshot.objects.insert(change.key.clone(), object.clone()),
                None => snapshot.objects.remove(&change.key),
            };
            if object.is_some() || previous.is_some() {
                events.push(Arc::new(Event::new(change.revision, object, previous)));
            }
        }
        snapshot.revision = snapshot.unreadable.revision(revision).max(before.revision);
        self.current.store(Arc::new(snapshot));
        let mut unheard = Vec::new();
        if has_gap {
            // What became of it cannot be told as events: whoever watches lists again, as after a restart of upstream's cacher.
            let logs = lanes.values().map(|it| &it.log).chain([&self.log]);
            return logs.inspect(|it| it.break_off(revision)).cloned().collect();
        }
        if events.is_empty() {
            // It has come further all the same, and somebody may wait for that.
            unheard.push(self.log.clone());
        }
        for event in events {
            publish(&lanes, &event, &mut unheard);
            if self.log.push(event) {
                unheard.push(self.log.clone());
            }
        }
        unheard
    }

    /// For who only wants to know that something has changed.
    pub fn events(&self) -> Events {
        Events(self.log.clone())
    }

    /// Waits until the newest change is one after `revision`.
    pub async fn changed_after(&self, revision: Revision) {
        loop {
            let mut woken = pin!(self.log.woken());
            // Before the look: a change that comes after it wakes.
            woken.as_mut().enable();
            if self.snapshot_revision() > revision {
                return;
            }
            woken.await;
        }
    }

    /// Wakes every watcher, so that it looks whether the server stops.
    pub(super) fn wake(&self) {
        self.log.wake();
        for lane in self.lanes.lock().values() {
            lane.log.wake();
        }
    }

    /// Lets go of what nobody can reasonably ask for any more: events up to `revision` and pages nobody went on with.
    pub(super) fn forget(&self, revision: Revision) {
        self.log.trim(revision);
        self.trim_lanes();
        let now = Instant::now();
        self.paged.lock().retain(|it| it.until > now);
    }

    /// Lanes need no more than the log holds.
    pub(super) fn trim_lanes(&self) {
        let since = self.log.since();
        for lane in self.lanes.lock().values() {
            lane.log.trim(since);
        }
    }

    /// The objects at exactly `revision`, if that is the newest state or one that is being paged through.
    pub fn at(&self, revision: Revision, applied: Revision) -> Option<Arc<Snapshot>> {
        let current = self.snapshot();
        if (current.revision..=applied.max(current.revision)).contains(&revision) {
            return Some(current);
        }
        self.paged.lock().iter().find(|it| it.revision == revision).map(|it| it.snapshot.clone())
    }

    /// Keeps a snapshot for the pages that follow.
    pub fn keep(&self, snapshot: &Arc<Snapshot>, revision: Revision) {
        let mut paged = self.paged.lock();
        if paged.iter().any(|it| it.revision == revision) {
            return;
        }
        if paged.len() == PAGED_MAX {
            paged.pop_front();
        }
        paged.push_back(Paged { revision, snapshot: snapshot.clone(), until: Instant::now() + PAGED_AGE });
    }

    /// How many watch what a write of this object changes: all objects, those of its namespace, or this one (`GetInterestedWatchCount`).
    pub fn n_watchers(&self, namespace: &str, name: &str) -> usize {
        let lanes = self.lanes.lock();
        let of = |scope: Scope| lanes.get(&scope).map_or(0, |it| it.watchers);
        let of_namespace = if namespace.is_empty() { 0 } else { of(Scope::Namespace(namespace.to_owned())) };
        let of_object = if name.is_empty() { 0 } else { of(Scope::Object(key_of(namespace, name))) };
        self.log.n_watchers() + of_namespace + of_object
    }

    /// Begins a watch.
    ///
    /// # Errors
    /// With the oldest revision to go on from, where the one asked for is older than the log.
    pub fn watch(&self, matcher: Matcher, start: Start) -> Result<Started, Revision> {
        let scope = matcher.scope();
        let mut lanes = self.lanes.lock();
        let snapshot = self.snapshot();
        let (past, after) = match start {
            Start::After(revision) => (self.log.place_after(revision)?, revision),
            Start::State | Start::Now => (self.log.end(), 0),
        };
        let place_after_past = self.log.end();
        if scope == Scope::All {
            let watcher = Watcher::new(self.log.clone(), past, matcher, Vec::new(), None).after(after);
            let watcher = watcher.until(self.is_closed.clone());
            return Ok(Started { watcher, snapshot });
        }
        let backlog = self.log.read(past, usize::MAX).expect("the log holds what lies after a place it just gave");
        debug_assert_eq!(past + backlog.len() as u64, place_after_past);
        let backlog = backlog.into_iter().filter(|it| touches(it, &scope)).collect();
        let lane = lanes.entry(scope.clone()).or_insert_with(|| {
            let log = Arc::new(Log::new(snapshot.revision, self.window));
            Lane { log, watchers: 0 }
        });
        lane.watchers += 1;
        let place = lane.log.end();
        let watcher =
            Watcher::new(lane.log.clone(), place, matcher, backlog, Some((self.lanes.clone(), scope))).after(after);
        let watcher = watcher.until(self.is_closed.clone());
        Ok(Started { watcher, snapshot })
    }
}

/// How many events a resource has had.
pub struct Events(Arc<Log>);

impl Events {
    pub fn count(&self) -> u64 {
        self.0.end()
    }

    /// Waits until there are more than `count`.
    pub async fn after(&self, count: u64) {
        loop {
            let mut woken = pin!(self.0.woken());
            // Before the look: an event that comes after it wakes.
            woken.as_mut().enable();
            if self.count() != count {
                return;
            }
            woken.await;
        }
    }
}

fn touches(event: &Event, scope: &Scope) -> bool {
    event.object.iter().chain(&event.previous).any(|it| scope.holds(it))
}

/// Puts an event into every lane that holds its object as it is or as it was.
fn publish(lanes: &Lanes, event: &Arc<Event>, unheard: &mut Vec<Arc<Log>>) {
    if lanes.is_empty() {
        return;
    }
    let mut told: Vec<Scope> = Vec::new();
    for object in event.object.iter().chain(&event.previous) {
        for scope in Scope::of(object) {
            if let Some(lane) = lanes.get(&scope)
                && !told.contains(&scope)
            {
                if lane.log.push(event.clone()) {
                    unheard.push(lane.log.clone());
                }
                told.push(scope);
            }
        }
    }
}
