//! What the controllers of one process see together: one informer and one table per projection, however many look at it.
//!
//! ```text
//! informer --> what has come --+                       +--> inbox of a controller --> its view, and the keys that wakes
//! informer --> what has come --+--> (one revision) -->-+
//! informer --> what has come --+    tables             +--> inbox of another
//! ```
//! An object is decoded once and held once. A controller that is slow loses nothing: its inbox holds what changed since it
//! last looked, and where that grows too long it looks at everything. What comes right after news waits a moment for more:
//! a stream of single events would wake every controller for each.
//!
//! All tables are moved on together, to a revision up to which every stream has delivered: streams reach this place apart,
//! and a view made of them as they come shows states that never were (the Pod gone, its ReplicaSet, deleted before it, still
//! there). The store has one order, and the server tells how far it has come, and which resources have changed on the way
//! ([`Progress`]).
//! A stream that does not come along is not waited for without end: the others go on, and whoever looks at its table is asked
//! nothing until it is back.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use corten_client::{
    Client, Error, Identity, Informer, InformerEvent, InformerParams, Listed, Progress, ProgressPlace, version_number,
};
use corten_meta::{Key, ObjectMeta};
use corten_reconcile::{Object, Origin, Subject, Table, Watch};
use futures_util::task::AtomicWaker;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

/// Events of one source that are taken in before another one's turn.
const BATCH: usize = 256;
/// How long a source rests after it had news. The first event after a quiet time is told at once.
pub(crate) const REST: Duration = Duration::from_millis(5);
/// Changes an inbox holds before it only says that everything may have changed.
const INBOX_MAX: usize = 4096;
/// How long all others wait for a stream that has not come as far as they have.
const HOLD: Duration = Duration::from_secs(2);
/// How often what cannot be watched is listed.
const POLL: Duration = Duration::from_secs(10);
/// Of one resource of another server so many objects are kept, and one of its answers is so long: others do not use up what
/// this process has. Where it holds more, that is logged, and it is as if it could not be listed.
const ELSEWHERE_OBJECTS_MAX: usize = 100_000;
const ELSEWHERE_BYTES_MAX: usize = 64 << 20;
/// A stream that has not come along for this long is suspected, and listed again; then after twice as long, and so on.
const SUSPECTED_AFTER: Duration = Duration::from_secs(10);
const SUSPECTED_STEP_MAX: Duration = Duration::from_secs(300);

/// See the module's documentation. Clones are the same informers.
#[derive(Clone)]
pub struct SharedInformers(Arc<Inner>);

struct Inner {
    client: Client,
    sources: Mutex<Vec<Arc<Source>>>,
    progress: Mutex<Progress>,
    /// A source was added, or one was told to list again.
    stirred: Notify,
    /// Of the task that runs it.
    waker: Arc<AtomicWaker>,
    /// The revision that everybody sees. Locked while the tables move on, so that nobody sees some of them moved.
    shown: RwLock<u64>,
    clock_set: watch::Sender<()>,
}

/// One informer and all who look at its table.
struct Source {
    subject: Subject,
    held: Mutex<Held>,
    bell: Arc<Bell>,
}

/// Rings when its source may have something to say. There is a source for each kind, and most have nothing to say most of
/// the time: they are not asked.
struct Bell {
    is_ringing: AtomicBool,
    informers: Arc<AtomicWaker>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if !self.is_ringing.swap(true, Ordering::AcqRel) {
            self.informers.wake();
        }
    }
}

struct Held {
    informer: Informer<Object>,
    /// Of its resource.
    place: ProgressPlace,
    /// Up to where everything has come; nothing before the first list.
    version: Option<u64>,
    /// What everybody sees.
    state: State,
    /// What has come and is not shown yet, in the order of versions.
    coming: VecDeque<Coming>,
    /// Events without a version of their own: they count once the one after them has come.
    open: Vec<InformerEvent<Object>>,
    /// Since when others have come further, where they have.
    lag: Option<Lag>,
    /// It is not waited for.
    is_late: bool,
    /// Everybody was told that it cannot be listed.
    cannot_be_listed: bool,
    /// Its objects are chosen by a selector.
    is_partial: bool,
    /// Its revisions are another server's: what comes is shown at once, and nobody waits for it.
    is_elsewhere: bool,
    /// It is here for what a definition describes: when nobody looks at it any more, it goes.
    is_led_to: bool,
    inboxes: Vec<Weak<Mutex<Inbox>>>,
    /// It is not asked before.
    rests_until: Option<Instant>,
}

/// An event, up to which version it brings its table, and how many lists were whole with it.
struct Coming {
    event: InformerEvent<Object>,
    version: u64,
    n_lists: u64,
}

/// A stream behind the others.
struct Lag {
    /// How far the foremost had come then.
    target: u64,
    since: Instant,
    suspected_after: Duration,
}

impl Lag {
    /// When it is next to be looked at, though nothing happens.
    fn look_at(&self, now: Instant) -> Instant {
        let late = self.since + HOLD;
        if now < late { late } else { self.since + self.suspected_after }
    }
}

/// A table after `n_lists` whole lists.
#[derive(Clone, Default)]
pub(crate) struct State {
    pub(crate) table: Table,
    pub(crate) n_lists: u64,
    /// The others have gone on without it: it is not of the revision that is shown.
    pub(crate) is_behind: bool,
}

/// One key at which the table is another; at least one of both is there.
#[derive(Clone)]
pub(crate) struct Change {
    pub(crate) old: Option<Object>,
    pub(crate) new: Option<Object>,
}

impl Change {
    pub(crate) fn meta(&self) -> &ObjectMeta {
        self.new.as_ref().or(self.old.as_ref()).expect("something is there, before or after").meta()
    }
}

/// What one controller has not looked at yet.
struct Inbox {
    changes: Vec<Change>,
    /// There were too many changes to keep.
    is_everything: bool,
    is_news: bool,
    state: State,
    waker: Option<Waker>,
}

/// What is new since the last look.
pub(crate) struct News {
    pub(crate) state: State,
    /// `None`: anything may have changed.
    pub(crate) changes: Option<Vec<Change>>,
}

/// One controller's look at one source.
pub(crate) struct Subscription {
    informers: Arc<Inner>,
    source: Arc<Source>,
    inbox: Arc<Mutex<Inbox>>,
}

impl SharedInformers {
    /// Sees through `client`, with its permissions.
    pub fn new(client: Client) -> Self {
        Self(Arc::new(Inner {
            progress: Mutex::new(Progress::new(client.clone())),
            client,
            sources: Mutex::default(),
            stirred: Notify::new(),
            waker: Arc::default(),
            shown: RwLock::default(),
            clock_set: watch::Sender::new(()),
        }))
    }

    /// The machine's clock was set, or it slept: what a controller waits for may be due, however long it meant to sleep.
    pub fn clock_was_set(&self) {
        self.0.clock_set.send_replace(());
    }

    /// Tells of it.
    pub(crate) fn clock_sets(&self) -> watch::Receiver<()> {
        self.0.clock_set.subscribe()
    }

    /// The revision that every table is of which is not behind; as long as it is held they stay there.
    pub(crate) fn shown(&self) -> RwLockReadGuard<'_, u64> {
        self.0.shown.read()
    }

    /// As [`Self::subscribe`], to what another watch leads to.
    pub(crate) fn subscribe_led_to(&self, watch: &Watch) -> Subscription {
        let subscription = self.subscribe(watch);
        subscription.source.held.lock().is_led_to = true;
        subscription
    }

    pub(crate) fn subscribe(&self, watch: &Watch) -> Subscription {
        let source = self.source(watch);
        let inbox = {
            let mut held = source.held.lock();
            let is_everything = !held.state.table.is_empty();
            let state = held.state.clone();
            let inbox = Inbox { changes: Vec::new(), is_everything, is_news: state.n_lists > 0, state, waker: None };
            let inbox = Arc::new(Mutex::new(inbox));
            held.inboxes.push(Arc::downgrade(&inbox));
            inbox
        };
        Subscription { informers: self.0.clone(), source, inbox }
    }

    fn source(&self, watch: &Watch) -> Arc<Source> {
        let subject = watch.subject();
        let mut sources = self.0.sources.lock();
        if let Some(source) = sources.iter().find(|it| it.subject == subject) {
            return source.clone();
        }
        let informer = informer(self.0.client.clone(), watch.clone());
        let held = Held::new(informer, self.0.progress.lock().place(&watch.resource), watch);
        let bell = Arc::new(Bell { is_ringing: AtomicBool::new(true), informers: self.0.waker.clone() });
        let source = Arc::new(Source { subject, held: Mutex::new(held), bell });
        sources.push(source.clone());
        self.0.stirred.notify_one();
        source
    }

    /// Keeps all tables up until `shutdown` is ready.
    pub async fn run(self, shutdown: impl Future<Output = ()> + Send) {
        let mut shutdown = std::pin::pin!(shutdown);
        let mut alarm = std::pin::pin!(tokio::time::sleep(Duration::ZERO));
        loop {
            let stirred = self.0.stirred.notified();
            let mut stirred = std::pin::pin!(stirred);
            let is_over = std::future::poll_fn(|context| {
                if shutdown.as_mut().poll(context).is_ready() {
                    return Poll::Ready(true);
                }
                let is_stirred = stirred.as_mut().poll(context).is_ready();
                let round = self.poll(context);
                if is_stirred || round.has_news {
                    return Poll::Ready(false);
                }
                let Some(rested) = round.rested else { return Poll::Pending };
                alarm.as_mut().reset(rested);
                alarm.as_mut().poll(context).map(|()| false)
            });
            if is_over.await {
                return;
            }
            // Other tasks get their turn however much there is to take in.
            tokio::task::yield_now().await;
        }
    }

    fn poll(&self, context: &Context<'_>) -> Round {
        self.0.waker.register(context.waker());
        let has_moved = self.poll_progress(context);
        let mut round = Round { has_news: has_moved, ..Round::default() };
        let mut sources = self.0.sources.lock();
        // What a definition described that is gone: nobody looks at it any more.
        sources.retain(|it| it.held.lock().is_needed());
        let ringing: Vec<Arc<Source>> =
            sources.iter().filter(|it| it.bell.is_ringing.load(Ordering::Acquire)).cloned().collect();
        drop(sources);
        let now = Instant::now();
        for source in ringing {
            let mut held = source.held.lock();
            if let Some(until) = held.rests_until.filter(|it| *it > now) {
                // The bell goes on ringing.
                round.rested = Some(round.rested.map_or(until, |it| it.min(until)));
                continue;
            }
            source.bell.is_ringing.store(false, Ordering::Release);
            let waker = Waker::from(source.bell.clone());
            let (has_news, is_drained) = held.poll(&mut Context::from_waker(&waker));
            round.has_news |= has_news;
            if !is_drained {
                source.bell.is_ringing.store(true, Ordering::Release);
            } else if has_news {
                held.rests_until = Some(now + REST);
            }
        }
        if let Some(alarm) = self.move_on(now) {
            round.rested = Some(round.rested.map_or(alarm, |it| it.min(alarm)));
        }
        round
    }

    fn poll_progress(&self, context: &Context<'_>) -> bool {
        let mut context = Context::from_waker(context.waker());
        let mut progress = self.0.progress.lock();
        let mut has_moved = false;
        while progress.poll(&mut context).is_ready() {
            has_moved = true;
        }
        has_moved
    }

    /// Shows everybody the newest revision that all streams have reached. Gives when to look again at those that have not
    /// come as far as others.
    fn move_on(&self, now: Instant) -> Option<Instant> {
        let sources = self.0.sources.lock().clone();
        let progress = self.0.progress.lock();
        let foremost = sources.iter().filter_map(|it| it.held.lock().reached(&progress)).max()?;
        let shown = *self.0.shown.read();
        let (mut revision, mut alarm) = (foremost, None);
        let mut is_due = false;
        for source in &sources {
            let mut held = source.held.lock();
            let Some(reached) = held.reached(&progress) else { continue };
            if held.is_suspected(reached, foremost.max(shown), now) {
                tracing::warn!(
                    resource = %source.subject.resource,
                    "a watch does not come as far as the others: controllers that look at it wait; it is listed again"
                );
                held.informer.relist();
                source.bell.is_ringing.store(true, Ordering::Release);
                alarm = Some(now);
            }
            alarm = alarm.into_iter().chain(held.lag.as_ref().map(|it| it.look_at(now))).min();
            held.is_late = reached < shown || held.lag.as_ref().is_some_and(|it| now >= it.since + HOLD);
            if !held.is_late {
                revision = revision.min(reached);
            }
        }
        for source in &sources {
            let mut held = source.held.lock();
            if held.jumps_over(revision) {
                held.is_late = true;
            }
            is_due |= held.is_late != held.state.is_behind;
        }
        is_due |= revision != shown || sources.iter().any(|it| it.held.lock().has_come(revision));
        if is_due {
            let mut shown = self.0.shown.write();
            *shown = revision;
            for source in &sources {
                source.held.lock().show(revision);
            }
        }
        alarm
    }
}

/// What one round through the sources brought.
#[derive(Default)]
struct Round {
    has_news: bool,
    /// When the first of those that rest can be asked, or one that is late is to be looked at.
    rested: Option<Instant>,
}

fn informer(client: Client, watch: Watch) -> Informer<Object> {
    let is_elsewhere = watch.origin != Origin::Here;
    let params = InformerParams {
        field_selector: watch.field_selector.clone(),
        progress: !watch.field_selector.is_empty(),
        metadata_only: watch.metadata_only,
        listed: if watch.origin == Origin::Discovery { Listed::Groups } else { Listed::Objects },
        polled: matches!(watch.origin, Origin::Discovery | Origin::Elsewhere { is_watched: false }).then_some(POLL),
        lists_after_failure: is_elsewhere,
        objects_max: if is_elsewhere { ELSEWHERE_OBJECTS_MAX } else { usize::MAX },
        ..InformerParams::all(watch.resource.clone())
    };
    let client = if is_elsewhere { client.with_answers_up_to(ELSEWHERE_BYTES_MAX) } else { client };
    Informer::decoding(client, params.seeded_by("informers"), move |bytes| {
        let object = watch.decode(&bytes).map_err(|error| Error::Decode(error.to_string()))?;
        let mut identity = Identity::of(object.meta());
        if watch.origin == Origin::Discovery {
            identity.version = version_of(&bytes);
        }
        Ok((identity, object))
    })
}

/// What discovery says has no version of its own.
fn version_of(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

impl Held {
    fn new(informer: Informer<Object>, place: ProgressPlace, watch: &Watch) -> Self {
        let (is_partial, is_elsewhere) = (!watch.field_selector.is_empty(), watch.origin != Origin::Here);
        let (state, coming) = (State::default(), VecDeque::new());
        Self {
            informer,
            place,
            version: None,
            state,
            coming,
            open: Vec::new(),
            lag: None,
            is_late: false,
            cannot_be_listed: false,
            is_partial,
            is_elsewhere,
            is_led_to: false,
            inboxes: Vec::new(),
            rests_until: None,
        }
    }

    /// What every controller watches that begins stays, though one that crashed has not begun again.
    fn is_needed(&self) -> bool {
        !self.is_led_to || self.inboxes.is_empty() || self.inboxes.iter().any(|it| it.strong_count() > 0)
    }

    /// Takes in what the informer has. Was there anything, and is there nothing more?
    fn poll(&mut self, context: &mut Context<'_>) -> (bool, bool) {
        let polled = self.poll_events(context);
        // Bookmarks move it on, too.
        self.version = (self.informer.n_lists() > 0).then(|| version_number(self.informer.version()).unwrap_or(0));
        polled
    }

    fn poll_events(&mut self, context: &mut Context<'_>) -> (bool, bool) {
        for n in 0..BATCH {
            let polled = self.informer.poll_event(context);
            self.tell_whether_listed();
            let Poll::Ready(event) = polled else { return (n > 0, true) };
            self.open.push(event);
            if self.informer.is_amid_list() {
                continue;
            }
            let version = version_number(self.informer.version()).unwrap_or(0);
            let n_lists = self.informer.n_lists();
            self.coming.extend(self.open.drain(..).map(|event| Coming { event, version, n_lists }));
        }
        (true, false)
    }

    /// Who can go on without is told, though there is no news to see.
    fn tell_whether_listed(&mut self) {
        if self.cannot_be_listed != self.informer.cannot_list() {
            self.cannot_be_listed = self.informer.cannot_list();
            self.inboxes.iter().filter_map(Weak::upgrade).for_each(|it| it.lock().put(&[], &self.state));
        }
    }

    /// Up to which revision everything has come; nothing before the first list, or where the revisions are others.
    fn reached(&self, progress: &Progress) -> Option<u64> {
        if self.is_elsewhere {
            return None;
        }
        let version = self.version?;
        // Of changes to what it is not about a stream of some objects tells nothing: it gets bookmarks of its own.
        Some(if self.is_partial { version } else { progress.of(self.place, version) })
    }

    /// Measures how long it has been behind the foremost. Is that so long that it is to be listed again?
    fn is_suspected(&mut self, reached: u64, foremost: u64, now: Instant) -> bool {
        let has_caught_up = |it: &Lag| reached >= if now < it.since + HOLD { it.target } else { foremost };
        if self.lag.as_ref().is_some_and(has_caught_up) {
            self.lag = None;
        }
        if reached >= foremost {
            return false;
        }
        let lag = self.lag.get_or_insert(Lag { target: foremost, since: now, suspected_after: SUSPECTED_AFTER });
        let is_suspected = now >= lag.since + lag.suspected_after;
        while now >= lag.since + lag.suspected_after {
            lag.suspected_after = lag.suspected_after.saturating_mul(2).min(lag.suspected_after + SUSPECTED_STEP_MAX);
        }
        is_suspected
    }

    /// Was it listed again at a later version? What the list brings may have come before `revision` or after it: between the
    /// last version of the table and that of the list nobody knows its state.
    fn jumps_over(&self, revision: u64) -> bool {
        let next = self.coming.front().filter(|_| !self.is_elsewhere);
        next.is_some_and(|it| it.n_lists > self.state.n_lists && it.version > revision && self.state.n_lists > 0)
    }

    fn has_come(&self, revision: u64) -> bool {
        self.coming.front().is_some_and(|it| self.is_elsewhere || it.version <= revision)
    }

    /// Moves the table on to `revision` and tells all who look at it.
    fn show(&mut self, revision: u64) {
        if !self.has_come(revision) && self.is_late == self.state.is_behind {
            return;
        }
        self.state.is_behind = self.is_late;
        let mut changes = Vec::new();
        while self.has_come(revision)
            && let Some(Coming { event, n_lists, .. }) = self.coming.pop_front()
        {
            changes.extend(self.state.table.take(event));
            self.state.n_lists = n_lists;
        }
        self.inboxes.retain(|it| it.upgrade().map(|it| it.lock().put(&changes, &self.state)).is_some());
    }
}

/// What an informer's event does to a table.
trait Take {
    fn take(&mut self, event: InformerEvent<Object>) -> Option<Change>;
}

impl Take for Table {
    fn take(&mut self, event: InformerEvent<Object>) -> Option<Change> {
        match event {
            InformerEvent::Applied(object, _) => Some(Change { old: self.insert(object.clone()), new: Some(object) }),
            InformerEvent::Deleted(meta) => {
                self.remove(&Key::new(&*meta.namespace, &*meta.name)).map(|it| Change { old: Some(it), new: None })
            }
            InformerEvent::Synced(_) => None,
        }
    }
}

impl Inbox {
    fn put(&mut self, changes: &[Change], state: &State) {
        if self.changes.len() + changes.len() > INBOX_MAX {
            self.is_everything = true;
            self.changes = Vec::new();
        }
        if !self.is_everything {
            self.changes.extend_from_slice(changes);
        }
        self.state = state.clone();
        self.is_news = true;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl Subscription {
    /// What is new; where nothing is, whoever asks is woken when there is.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<News> {
        let mut inbox = self.inbox.lock();
        if !inbox.is_news {
            if !inbox.waker.as_ref().is_some_and(|it| it.will_wake(context.waker())) {
                inbox.waker = Some(context.waker().clone());
            }
            return Poll::Pending;
        }
        inbox.is_news = false;
        let changes = std::mem::take(&mut inbox.changes);
        let is_everything = std::mem::take(&mut inbox.is_everything);
        Poll::Ready(News { state: inbox.state.clone(), changes: (!is_everything).then_some(changes) })
    }

    /// The server cannot list it now: its table is old, or empty.
    pub(crate) fn cannot_be_listed(&self) -> bool {
        self.source.held.lock().cannot_be_listed
    }

    /// Lists again. Gives the number of lists at which the table holds one that was begun after this call.
    pub(crate) fn relist(&self) -> u64 {
        let lists = self.source.held.lock().informer.relist();
        self.source.bell.is_ringing.store(true, Ordering::Release);
        self.informers.stirred.notify_one();
        lists
    }
}
