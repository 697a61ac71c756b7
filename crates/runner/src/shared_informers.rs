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
//!
//! A server that does not tell how far it has come ([`Progress::is_unserved`]) is upstream's: there each table is shown as its
//! stream comes, and nobody waits for another, as upstream's controllers see.

mod inbox;
mod source;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use corten_client::{Client, Failing, Progress};
use corten_meta::Resource;
use corten_reconcile::Watch;
use futures_util::task::AtomicWaker;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use inbox::Inbox;
pub(crate) use inbox::{Change, InboxChanges};
use source::{HOLD, HeldInformer, Source, SourceWaker, informer};

/// How long a source rests after it had news. The first event after a quiet time is told at once.
pub(crate) const REST: Duration = Duration::from_millis(5);

/// See the module's documentation. Clones are the same informers.
#[derive(Clone)]
pub struct SharedInformers(Arc<Inner>);

struct Inner {
    client: Client,
    /// The kinds that it serves. None where it is of this program's version, and serves every one.
    served: Option<Vec<Resource>>,
    sources: Mutex<Vec<Arc<Source>>>,
    progress: Mutex<Progress>,
    /// The server does not tell how resources compare: each table goes on by itself.
    are_apart: AtomicBool,
    /// A source was added, or one was told to list again.
    stirred: Notify,
    /// Of the task that runs it.
    waker: Arc<AtomicWaker>,
    /// The revision that everybody sees. Locked while the tables move on, so that nobody sees some of them moved.
    shown: RwLock<u64>,
    clock_set: watch::Sender<()>,
    /// When a stream that has not come as far as others is to be looked at, though nothing has come.
    look_at: Mutex<Option<Instant>>,
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
        Self::of(client, None)
    }

    /// As [`Self::new`], of a server that has said that it serves these kinds, and need not serve every other one that is watched: of one
    /// that it does not serve there is none. What it serves is waited for, however it answers, and so is what another watch leads to.
    pub fn of_any_server(client: Client, served: Vec<Resource>) -> Self {
        Self::of(client, Some(served))
    }

    fn of(client: Client, served: Option<Vec<Resource>>) -> Self {
        Self(Arc::new(Inner {
            progress: Mutex::new(Progress::new(client.clone())),
            client,
            served,
            are_apart: AtomicBool::new(false),
            sources: Mutex::default(),
            stirred: Notify::new(),
            waker: Arc::default(),
            shown: RwLock::default(),
            clock_set: watch::Sender::new(()),
            look_at: Mutex::default(),
        }))
    }

    /// Is each resource seen as it comes, since the server does not tell how they compare?
    pub(crate) fn are_apart(&self) -> bool {
        self.0.are_apart.load(Ordering::Acquire)
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
        let subscription = self.subscribe_to(self.source(watch, false));
        subscription.source.held.lock().is_led_to = true;
        subscription
    }

    pub(crate) fn subscribe(&self, watch: &Watch) -> Subscription {
        let is_optional = self.0.served.as_ref().is_some_and(|it| !it.contains(&watch.resource));
        self.subscribe_to(self.source(watch, is_optional))
    }

    fn subscribe_to(&self, source: Arc<Source>) -> Subscription {
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

    fn source(&self, watch: &Watch, is_optional: bool) -> Arc<Source> {
        let subject = watch.subject();
        let mut sources = self.0.sources.lock();
        if let Some(source) = sources.iter().find(|it| it.subject == subject) {
            return source.clone();
        }
        let informer = informer(self.0.client.clone(), watch.clone(), is_optional);
        let mut held = HeldInformer::new(informer, self.0.progress.lock().place(&watch.resource), watch);
        held.set_apart(self.0.are_apart.load(Ordering::Acquire));
        let waker = Arc::new(SourceWaker { is_woken: AtomicBool::new(true), informers: self.0.waker.clone() });
        let source = Arc::new(Source { subject, held: Mutex::new(held), waker });
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
        let mut round = Round { has_news: has_moved, has_moved, rested: None };
        let sources = self.0.sources.lock();
        let woken: Vec<Arc<Source>> =
            sources.iter().filter(|it| it.waker.is_woken.load(Ordering::Acquire)).cloned().collect();
        drop(sources);
        let now = Instant::now();
        for source in woken {
            self.poll_source(&source, now, &mut round);
        }
        // Most rounds bring nothing: somebody's stream was asked and had none.
        let mut look_at = self.0.look_at.lock();
        if round.has_moved || look_at.is_some_and(|it| it <= now) {
            *look_at = self.move_on(now);
        }
        round.rested = round.rested.into_iter().chain(*look_at).min();
        round
    }

    fn poll_source(&self, source: &Arc<Source>, now: Instant, round: &mut Round) {
        let mut held = source.held.lock();
        if let Some(until) = held.rests_until.filter(|it| *it > now) {
            // The source stays marked as woken.
            round.rested = Some(round.rested.map_or(until, |it| it.min(until)));
            return;
        }
        source.waker.is_woken.store(false, Ordering::Release);
        let waker = Waker::from(source.waker.clone());
        let polled = held.poll(&mut Context::from_waker(&waker));
        round.has_news |= polled.has_news;
        round.has_moved |= polled.has_moved;
        if !polled.is_drained {
            source.waker.is_woken.store(true, Ordering::Release);
        } else if polled.has_news {
            held.rests_until = Some(now + REST);
        }
    }

    fn poll_progress(&self, context: &Context<'_>) -> bool {
        let mut context = Context::from_waker(context.waker());
        let mut progress = self.0.progress.lock();
        let mut has_moved = false;
        while progress.poll(&mut context).is_ready() {
            has_moved = true;
        }
        let are_apart = progress.is_unserved();
        drop(progress);
        if self.0.are_apart.load(Ordering::Acquire) != are_apart {
            // Who adds a source meanwhile reads it before or after: all that are there now are told here.
            let sources = self.0.sources.lock();
            self.0.are_apart.store(are_apart, Ordering::Release);
            sources.iter().for_each(|it| it.held.lock().set_apart(are_apart));
        }
        has_moved
    }

    /// Shows everybody the newest revision that all streams have reached. Gives when to look again at those that have not
    /// come as far as others.
    fn move_on(&self, now: Instant) -> Option<Instant> {
        let sources = {
            let mut sources = self.0.sources.lock();
            // What a definition described that is gone: nobody looks at it any more.
            sources.retain(|it| it.held.lock().is_needed());
            sources.clone()
        };
        if self.0.are_apart.load(Ordering::Acquire) {
            self.show_apart(&sources);
            return None;
        }
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
                source.waker.is_woken.store(true, Ordering::Release);
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

    /// Shows of each table what has come.
    fn show_apart(&self, sources: &[Arc<Source>]) {
        let has_news: Vec<&Arc<Source>> = sources.iter().filter(|it| it.held.lock().has_own_news()).collect();
        if !has_news.is_empty() {
            let shown = self.0.shown.write();
            has_news.iter().for_each(|it| it.held.lock().show(*shown));
        }
    }
}

/// What one round through the sources brought.
#[derive(Default)]
struct Round {
    has_news: bool,
    /// A stream has come further, or is known to have.
    has_moved: bool,
    /// When the first of those that rest can be asked, or one that is late is to be looked at.
    rested: Option<Instant>,
}

impl Subscription {
    /// What is new; where nothing is, whoever asks is woken when there is.
    pub(crate) fn poll(&self, context: &Context<'_>) -> Poll<InboxChanges> {
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
        Poll::Ready(InboxChanges { state: inbox.state.clone(), changes: (!is_everything).then_some(changes) })
    }

    /// The server cannot list it now: its table is old, or empty.
    pub(crate) fn cannot_be_listed(&self) -> bool {
        self.source.held.lock().cannot_be_listed
    }

    /// Since when the server gives neither a list nor a watch of it, and what it says.
    pub(crate) fn failing(&self) -> Option<Failing> {
        self.source.held.lock().informer.failing().cloned()
    }

    /// Lists again. Gives the number of lists at which the table holds one that was begun after this call.
    pub(crate) fn relist(&self) -> u64 {
        let lists = self.source.held.lock().informer.relist();
        self.source.waker.is_woken.store(true, Ordering::Release);
        self.informers.stirred.notify_one();
        lists
    }
}
