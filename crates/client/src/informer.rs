//! A cache's feed: everything there is, then every change, through broken connections and forgotten versions.
//!
//! ```text
//!            +---------- expired (410) ----------+
//!            v                                   |
//! Listing --> (next page) --> Connecting --> Watching
//!    |                           |  ^            |
//!    +--> Waiting(then list)     |  +---- end ---+
//!                                +--> Waiting(then connect) <-- error
//! ```
//! A list of an optional resource that the server does not serve is an empty one, and is asked for again every half a minute.
//!
//! Level-triggered: what was missed while disconnected comes as its newest state, what went meanwhile as a deletion.

mod event;
mod listing;
mod state;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque, btree_map::Entry},
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use corten_meta::{Key, ObjectMeta, Resource};
use futures_util::Stream;
use serde::Deserialize;
use tokio::time::Instant;

pub use event::{Identity, InformerEvent};
use listing::Listing;
use state::{State, Then};

use crate::{
    Backoff, Client, Error, Failing, InformerParams, LeftOut, List, Watch, WatchEvent, WatchParams,
    kept::{KeptObjects, is_silence},
    version_number,
};

/// The server is asked to end each watch after this long, and up to as much again, so that connections move around.
const WATCH_SECONDS: u32 = 300;
/// A watch that outlives what was asked for by this much is taken for dead.
const WATCH_GRACE: Duration = Duration::from_secs(30);
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// Once another request gets through, all that wait for the server try it again within this time, not all at once.
const RETURN_SPREAD: Duration = Duration::from_millis(500);
/// How often it is asked whether an optional resource is served now.
const UNSERVED_RETRY: Duration = Duration::from_secs(30);
/// Where an earlier run has kept a list, an answer is waited for no longer.
const KNOWN_AFTER: Duration = Duration::from_secs(5);

type Decode<T> = Box<dyn Fn(Bytes) -> Result<(Identity, T), Error> + Send + Sync>;

/// See the module's documentation. It runs only while it is polled; it never ends.
pub struct Informer<T = Bytes> {
    client: Client,
    params: InformerParams,
    decode: Decode<T>,
    state: State,
    known: BTreeMap<Key, ObjectVersion>,
    /// Where the next watch goes on.
    from: String,
    /// The newest version that has been delivered.
    version: String,
    /// What was delivered last is part of a list, or an end that was found out late: its version says nothing.
    is_amid_list: bool,
    n_lists: u64,
    /// The server has said so of the last list that was tried.
    cannot_list: bool,
    /// The server said of the last list that was tried that this caller may not have it.
    is_forbidden: bool,
    /// Why nothing comes.
    failing: Option<Failing>,
    /// The resource is optional, and no server has served it yet.
    is_unserved: bool,
    /// The list under way may be too old for whoever asked for one.
    lists_again: bool,
    ready: VecDeque<(StreamPosition, InformerEvent<T>)>,
    backoff: Backoff,
    kept: Option<KeptObjects>,
    /// No list of a server has come yet, and what an earlier run has kept may still stand for it.
    may_fall_back: bool,
    left_out: Vec<LeftOut>,
}

/// Where an event stands that is to be delivered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamPosition {
    /// A list comes in the order of names, so an item's version says nothing of the other items.
    AmidList,
    EndOfList,
    /// With it, everything up to its version has been delivered.
    Watch,
}

struct ObjectVersion {
    uid: String,
    version: String,
}

impl Informer<Bytes> {
    /// Gives each object as the bytes the server sent.
    pub fn new(client: Client, params: InformerParams) -> Self {
        Self::decoding(client, params, |bytes| {
            let object: OnlyMeta = crate::decode_projection(&bytes)?;
            Ok((Identity::of(&object.metadata), bytes))
        })
    }
}

#[derive(Deserialize)]
struct OnlyMeta {
    metadata: ObjectMeta,
}

impl<T> Informer<T> {
    /// Gives each object decoded, once. One that cannot be decoded is logged and left out.
    pub fn decoding(
        client: Client,
        params: InformerParams,
        decode: impl Fn(Bytes) -> Result<(Identity, T), Error> + Send + Sync + 'static,
    ) -> Self {
        let backoff = Backoff::new(BACKOFF_FIRST, BACKOFF_MAX, params.seed);
        let kept = client.kept().and_then(|it| Some(KeptObjects::new(it, params.keeping?, params.kept_name())));
        let may_fall_back = kept.as_ref().is_some_and(KeptObjects::has_before);
        let left_out = kept.as_ref().filter(|_| may_fall_back).map(KeptObjects::left_out).unwrap_or_default();
        let first = if may_fall_back { client.clone().with_deadline(KNOWN_AFTER) } else { client.clone() };
        let state = State::Listing(Listing::begin(&first, &params));
        let is_unserved = params.is_optional;
        Self {
            client,
            params,
            decode: Box::new(decode),
            state,
            known: BTreeMap::new(),
            from: String::new(),
            version: String::new(),
            is_amid_list: false,
            n_lists: 0,
            cannot_list: false,
            is_forbidden: false,
            failing: None,
            is_unserved,
            lists_again: false,
            ready: VecDeque::new(),
            backoff,
            kept,
            may_fall_back,
            left_out,
        }
    }

    pub fn resource(&self) -> &Resource {
        &self.params.resource
    }

    /// Everything up to this version has been delivered; empty before the first list.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Does what was delivered last only count together with what comes next? Then [`Informer::version`] is still the one
    /// before it.
    pub fn is_amid_list(&self) -> bool {
        self.is_amid_list
    }

    /// How many whole lists have been delivered.
    pub fn n_lists(&self) -> u64 {
        self.n_lists
    }

    /// The server answered the last list with an error of its own (500): as long as it does nobody knows what there is.
    pub fn cannot_list(&self) -> bool {
        self.cannot_list
    }

    /// This caller may not list it (403), as far as the server has said last.
    pub fn is_forbidden(&self) -> bool {
        self.is_forbidden
    }

    /// Objects that are there and were too large to be kept. Until a server has listed them, nobody is told of them.
    pub fn left_out(&self) -> &[LeftOut] {
        &self.left_out
    }

    /// Since when neither a list nor a watch comes about, and why.
    pub fn failing(&self) -> Option<&Failing> {
        self.failing.as_ref()
    }

    /// Lists again: for a cache that is suspected to have missed something. Gives the [`Informer::n_lists`] at which a
    /// list begun after this call has been delivered. A list that is under way is not given up for it.
    pub fn relist(&mut self) -> u64 {
        let undelivered = self.ready.iter().filter(|it| it.0 == StreamPosition::EndOfList).count();
        let so_far = self.n_lists + u64::from(undelivered > 0);
        match &self.state {
            State::Listing(_) => {
                self.lists_again = true;
                so_far + 2
            }
            // It begins as soon as the server may be asked again.
            State::Waiting { then: Then::List, .. } => so_far + 1,
            _ => {
                self.state = State::Listing(Listing::begin(&self.client, &self.params));
                so_far + 1
            }
        }
    }

    /// As [`Informer::relist`], and gives every object once more.
    pub fn replay(&mut self) -> u64 {
        self.known.values_mut().for_each(|it| it.version.clear());
        self.relist()
    }

    /// The next event. Nothing is lost where the caller stops waiting.
    pub async fn next(&mut self) -> InformerEvent<T> {
        std::future::poll_fn(|context| self.poll_event(context)).await
    }

    pub fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<InformerEvent<T>> {
        loop {
            if let Some((place, event)) = self.ready.pop_front() {
                self.deliver(place, &event);
                return Poll::Ready(event);
            }
            if let Some(state) = ready!(self.poll_state(context)) {
                self.state = state;
            }
        }
    }

    fn deliver(&mut self, place: StreamPosition, event: &InformerEvent<T>) {
        let version = match event {
            InformerEvent::Applied(_, identity) => &identity.version,
            InformerEvent::Deleted(meta) => &meta.resource_version,
            InformerEvent::Synced(version) => version,
        };
        self.is_amid_list = place == StreamPosition::AmidList;
        if !self.is_amid_list {
            version.clone_into(&mut self.version);
        }
        self.n_lists += u64::from(place == StreamPosition::EndOfList);
    }

    /// Waits until the present state has something to say; gives the state after it, where that is another.
    fn poll_state(&mut self, context: &mut Context<'_>) -> Poll<Option<State>> {
        let next = match &mut self.state {
            State::Listing(listing) => {
                let page = ready!(listing.page.as_mut().poll(context));
                let seen = std::mem::take(&mut listing.seen);
                self.listed(page, seen)
            }
            State::Connecting(watch) => {
                let watch = ready!(watch.as_mut().poll(context));
                self.connected(watch)
            }
            State::Watching { watch, until } => {
                if let Poll::Ready(event) = watch.poll_event(context) {
                    return Poll::Ready(self.watched(event));
                }
                ready!(until.as_mut().poll(context));
                tracing::debug!(resource = %self.params.resource, "a watch outlived its time and is begun anew");
                self.connect()
            }
            State::Waiting { until, then, returned } => {
                let then = *then;
                if returned.as_mut().is_some_and(|it| it.as_mut().poll(context).is_ready()) {
                    *returned = None;
                    let permille = u32::try_from(self.backoff.draw() % 1000).expect("a remainder below 1000 fits");
                    let soon = (Instant::now() + RETURN_SPREAD * permille / 1000).min(until.deadline());
                    until.as_mut().reset(soon);
                }
                ready!(until.as_mut().poll(context));
                match then {
                    Then::List => State::Listing(Listing::begin(&self.client, &self.params)),
                    Then::Connect => self.connect(),
                }
            }
        };
        Poll::Ready(Some(next))
    }

    // ---- the states' ends ----

    fn listed(&mut self, page: Result<List, Error>, mut seen: BTreeSet<Key>) -> State {
        let page = match page {
            Ok(page) => page,
            Err(error) => {
                // A server that is away, or in haste, will list them; one that says so cannot.
                self.cannot_list = matches!(&error, Error::Status(it) if it.code == 500);
                self.is_forbidden = matches!(&error, Error::Status(it) if it.code == 403);
                if self.is_unserved && error.is_not_found() {
                    return self.unserved();
                }
                if self.params.is_field_selector_hint && error.status().is_some_and(|it| it.code == 400) {
                    self.params.is_field_selector_hint = false;
                    self.params.field_selector.clear();
                    return State::Listing(Listing::begin(&self.client, &self.params));
                }
                self.fall_back(&error);
                return self.failed("list", &error, Then::List);
            }
        };
        let n_before = seen.len();
        for item in page.items {
            if let Some(key) = self.apply(item, StreamPosition::AmidList) {
                seen.insert(key);
            }
        }
        if seen.len() > self.params.objects_max {
            return self.too_many();
        }
        if !page.continue_token.is_empty() {
            // Of a server that is not trusted to come to an end.
            if seen.len() == n_before && self.params.lists_after_failure {
                let error = Error::Decode("a page holds nothing new and is not the last".into());
                return self.failed("list", &error, Then::List);
            }
            return State::Listing(Listing::go_on(&self.client, &self.params, page.continue_token, seen));
        }
        // What the new list does not hold ended while nobody watched.
        let gone: Vec<Key> = self.known.keys().filter(|it| !seen.contains(*it)).cloned().collect();
        for key in gone {
            self.forget(&key);
        }
        (self.cannot_list, self.is_forbidden, self.may_fall_back) = (false, false, false);
        self.is_unserved = false;
        self.left_out.clear();
        self.failing = None;
        self.from = page.resource_version;
        if let Some(kept) = &self.kept {
            kept.whole(&self.from);
        }
        self.ready.push_back((StreamPosition::EndOfList, InformerEvent::Synced(self.from.clone())));
        if std::mem::take(&mut self.lists_again) {
            return State::Listing(Listing::begin(&self.client, &self.params));
        }
        match self.params.polled {
            Some(every) => State::waiting(every, Then::List),
            None => self.connect(),
        }
    }

    /// The server has no such resource: there is nothing of it. One that was served once and is gone is an error instead, because a
    /// server that has just begun may not know all its resources yet.
    fn unserved(&mut self) -> State {
        if self.n_lists == 0 {
            tracing::info!(resource = %self.params.resource, "the server does not serve it: there is none");
        }
        self.failing = None;
        self.ready.push_back((StreamPosition::EndOfList, InformerEvent::Synced("0".to_owned())));
        if std::mem::take(&mut self.lists_again) {
            return State::Listing(Listing::begin(&self.client, &self.params));
        }
        State::waiting(UNSERVED_RETRY, Then::List)
    }

    /// What an earlier run has kept is told in the place of the list that does not come. That is tried again all the same.
    fn fall_back(&mut self, error: &Error) {
        let Some(kept) = self.kept.as_ref().filter(|it| self.may_fall_back && is_silence(error) && it.is_cut_off())
        else {
            return;
        };
        let Some(before) = kept.before() else { return };
        self.may_fall_back = false;
        tracing::warn!(resource = %self.params.resource, objects = before.items.len(), "no server answers: what was kept counts");
        for LeftOut { key, .. } in &self.left_out {
            tracing::warn!(resource = %self.params.resource, %key, "too large to be kept: it waits for the API");
        }
        for item in before.items {
            self.apply(item, StreamPosition::AmidList);
        }
        self.ready.push_back((StreamPosition::EndOfList, InformerEvent::Synced(before.version)));
    }

    /// Nothing of it is kept from now on.
    pub fn forget_kept(&self) {
        if let Some(kept) = &self.kept {
            kept.forget();
        }
    }

    fn too_many(&mut self) -> State {
        let message = format!("there are more than {} objects", self.params.objects_max);
        self.failed("list", &Error::Decode(message), Then::List)
    }

    fn connected(&mut self, watch: Result<Watch, Error>) -> State {
        match watch {
            Ok(watch) => {
                self.failing = None;
                let until = Duration::from_secs(u64::from(WATCH_SECONDS) * 2) + WATCH_GRACE;
                State::Watching { watch, until: Box::pin(tokio::time::sleep_until(Instant::now() + until)) }
            }
            Err(error) if error.is_expired() => self.failed("watch", &error, Then::List),
            Err(error) => self.failed("watch", &error, self.after_failure()),
        }
    }

    fn after_failure(&self) -> Then {
        if self.params.lists_after_failure { Then::List } else { Then::Connect }
    }

    /// One event of a watch, or its end. Gives no state while the watch goes on.
    fn watched(&mut self, event: Option<Result<WatchEvent, Error>>) -> Option<State> {
        match event {
            Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                self.apply(object, StreamPosition::Watch);
            }
            Some(Ok(WatchEvent::Deleted(object))) => self.deleted(&object),
            Some(Ok(WatchEvent::Bookmark(object))) => {
                if let Ok(bookmark) = crate::decode::<OnlyMeta>(&object) {
                    self.advance(&bookmark.metadata.resource_version);
                    self.ready.push_back((StreamPosition::Watch, InformerEvent::Synced(self.from.clone())));
                }
            }
            Some(Ok(WatchEvent::Error(status))) => {
                let then = if status.code == 410 { Then::List } else { self.after_failure() };
                return Some(self.failed("watch", &Error::Status(status), then));
            }
            Some(Err(error)) => return Some(self.failed("watch", &error, self.after_failure())),
            None => return Some(self.wait(Then::Connect)),
        }
        if self.known.len() > self.params.objects_max {
            return Some(self.too_many());
        }
        self.backoff.reset();
        None
    }

    // ---- into the states ----

    fn connect(&mut self) -> State {
        let (client, resource) = (self.client.clone(), self.params.resource.clone());
        let jitter = u32::try_from(self.backoff.draw() % u64::from(WATCH_SECONDS)).expect("a remainder fits");
        let params = WatchParams {
            namespace: self.params.namespace.clone(),
            label_selector: self.params.label_selector.clone(),
            field_selector: self.params.field_selector.clone(),
            resource_version: self.from.clone(),
            bookmarks: true,
            progress: self.params.progress,
            timeout_seconds: WATCH_SECONDS + jitter,
        };
        if self.params.metadata_only {
            return State::Connecting(Box::pin(async move { client.watch_metadata(&resource, &params).await }));
        }
        State::Connecting(Box::pin(async move { client.watch(&resource, &params).await }))
    }

    fn failed(&mut self, verb: &str, error: &Error, then: Then) -> State {
        // A forgotten version is the ordinary fate of a slow watch; anything else is worth a line.
        if error.is_expired() {
            tracing::debug!(resource = %self.params.resource, %error, "the watch is too old, listing again");
        } else {
            let (code, failures) = (error.status().map(|it| it.code), self.backoff.failures() + 1);
            tracing::warn!(resource = %self.params.resource, code, %error, failures, "cannot {verb}");
            self.failing = Some(Failing::of(self.failing.as_ref(), verb, error));
        }
        let mut state = self.wait(then);
        if let (State::Waiting { returned, .. }, Error::Transport(_)) = (&mut state, error) {
            *returned = Some(Box::pin(self.client.reach().returned()));
        }
        state
    }

    fn wait(&mut self, then: Then) -> State {
        State::waiting(self.backoff.delay(), then)
    }

    // ---- the contents ----

    /// Takes a state of an object in if it is news; gives its key either way.
    fn apply(&mut self, object: Bytes, place: StreamPosition) -> Option<Key> {
        let whole = self.kept.is_some().then(|| object.clone());
        let (identity, value) = match (self.decode)(object) {
            Ok(decoded) => decoded,
            Err(error) => {
                tracing::warn!(resource = %self.params.resource, %error, "an object is left out of the cache");
                return None;
            }
        };
        let key = identity.key.clone();
        let new = ObjectVersion { uid: identity.uid.clone(), version: identity.version.clone() };
        match self.known.entry(key.clone()) {
            Entry::Vacant(room) => drop(room.insert(new)),
            Entry::Occupied(mut known) => {
                // A list is the truth even where its versions are older: the store may have been restored from a backup.
                let is_news = match place {
                    StreamPosition::Watch => is_newer(&new.version, &known.get().version),
                    StreamPosition::AmidList | StreamPosition::EndOfList => new.version != known.get().version,
                };
                if !is_news {
                    return Some(key);
                }
                let old = known.insert(new);
                if old.uid != identity.uid {
                    self.ready.push_back(ended(&key, old));
                }
            }
        }
        if place == StreamPosition::Watch {
            self.advance(&identity.version);
        }
        if let (Some(kept), Some(object)) = (&self.kept, whole) {
            kept.apply(&key, &object);
        }
        self.ready.push_back((place, InformerEvent::Applied(value, identity)));
        Some(key)
    }

    fn deleted(&mut self, object: &Bytes) {
        let meta = match crate::decode_projection::<OnlyMeta>(object) {
            Ok(object) => object.metadata,
            Err(error) => {
                tracing::warn!(resource = %self.params.resource, %error, "a deletion cannot be read, listing again");
                self.relist();
                return;
            }
        };
        self.advance(&meta.resource_version);
        let key = meta.key();
        // A deletion that is older than what is known came twice, or is not about this object.
        if self.known.get(&key).is_some_and(|it| is_newer(&meta.resource_version, &it.version)) {
            self.known.remove(&key);
            if let Some(kept) = &self.kept {
                kept.remove(&key);
            }
            self.ready.push_back((StreamPosition::Watch, InformerEvent::Deleted(meta)));
        }
    }

    /// Reports the end of an object whose deletion was not seen.
    fn forget(&mut self, key: &Key) {
        let Some(known) = self.known.remove(key) else { return };
        if let Some(kept) = &self.kept {
            kept.remove(key);
        }
        self.ready.push_back(ended(key, known));
    }

    fn advance(&mut self, version: &str) {
        if is_newer(version, &self.from) {
            version.clone_into(&mut self.from);
        }
    }
}

fn ended<T>(key: &Key, known: ObjectVersion) -> (StreamPosition, InformerEvent<T>) {
    let meta = ObjectMeta {
        name: key.name.clone(),
        namespace: key.namespace.clone(),
        uid: known.uid,
        resource_version: known.version,
        ..ObjectMeta::default()
    };
    (StreamPosition::AmidList, InformerEvent::Deleted(meta))
}

impl<T> Stream for Informer<T>
where
    Self: Unpin,
{
    type Item = InformerEvent<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(context).map(Some)
    }
}

/// Versions of one server grow; ones that are no numbers can only be told apart.
fn is_newer(version: &str, than: &str) -> bool {
    match (version_number(version), version_number(than)) {
        (Some(version), Some(than)) => version > than,
        _ => version != than,
    }
}

#[cfg(test)]
mod tests;
