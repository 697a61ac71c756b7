//! What the controllers of one process see together: one informer and one table per projection, however many look at it.
//!
//! ```text
//! informer --> table --+--> inbox of a controller --> its view, and the keys that wakes
//!                      +--> inbox of another
//! ```
//! An object is decoded once and held once. A controller that is slow loses nothing: its inbox holds what changed since it
//! last looked, and where that grows too long it looks at everything. What comes right after news waits a moment for more:
//! a stream of single events would wake every controller for each.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use corten_client::{Client, Error, Identity, Informer, InformerEvent, InformerParams, version_number};
use corten_meta::{Key, ObjectMeta};
use corten_reconcile::{Object, Subject, Table, Watch};
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
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

/// See the module's documentation. Clones are the same sight.
#[derive(Clone)]
pub struct Sight(Arc<Inner>);

struct Inner {
    client: Client,
    sources: Mutex<Vec<Arc<Source>>>,
    /// A source was added, or one was told to list again.
    stirred: Notify,
    /// Of the task that runs it.
    waker: Arc<AtomicWaker>,
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
    sight: Arc<AtomicWaker>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if !self.is_ringing.swap(true, Ordering::AcqRel) {
            self.sight.wake();
        }
    }
}

struct Held {
    informer: Informer<Object>,
    state: State,
    inboxes: Vec<Weak<Mutex<Inbox>>>,
    /// It is not asked before.
    rests_until: Option<Instant>,
}

/// Everything up to `version`, after `n_lists` whole lists.
#[derive(Clone, Default)]
pub(crate) struct State {
    pub(crate) table: Table,
    pub(crate) version: u64,
    pub(crate) n_lists: u64,
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
    sight: Arc<Inner>,
    source: Arc<Source>,
    inbox: Arc<Mutex<Inbox>>,
}

impl Sight {
    /// Sees through `client`, with its permissions.
    pub fn new(client: Client) -> Self {
        let (stirred, clock_set) = (Notify::new(), watch::Sender::new(()));
        Self(Arc::new(Inner { client, sources: Mutex::default(), stirred, waker: Arc::default(), clock_set }))
    }

    /// The machine's clock was set, or it slept: what a controller waits for may be due, however long it meant to sleep.
    pub fn clock_was_set(&self) {
        self.0.clock_set.send_replace(());
    }

    /// Tells of it.
    pub(crate) fn clock_sets(&self) -> watch::Receiver<()> {
        self.0.clock_set.subscribe()
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
        Subscription { sight: self.0.clone(), source, inbox }
    }

    fn source(&self, watch: &Watch) -> Arc<Source> {
        let subject = watch.subject();
        let mut sources = self.0.sources.lock();
        if let Some(source) = sources.iter().find(|it| it.subject == subject) {
            return source.clone();
        }
        let informer = informer(self.0.client.clone(), watch.clone());
        let held = Held { informer, state: State::default(), inboxes: Vec::new(), rests_until: None };
        let bell = Arc::new(Bell { is_ringing: AtomicBool::new(true), sight: self.0.waker.clone() });
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
        let sources = self.0.sources.lock();
        let ringing: Vec<Arc<Source>> =
            sources.iter().filter(|it| it.bell.is_ringing.load(Ordering::Acquire)).cloned().collect();
        drop(sources);
        let mut round = Round::default();
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
        round
    }
}

/// What one round through the sources brought.
#[derive(Default)]
struct Round {
    has_news: bool,
    /// When the first of those that rest can be asked.
    rested: Option<Instant>,
}

fn informer(client: Client, watch: Watch) -> Informer<Object> {
    let params =
        InformerParams { field_selector: watch.field_selector.clone(), ..InformerParams::all(watch.resource.clone()) };
    Informer::decoding(client, params.seeded_by("sight"), move |bytes| {
        let object = watch.decode(&bytes).map_err(|error| Error::Decode(error.to_string()))?;
        Ok((Identity::of(object.meta()), object))
    })
}

impl Held {
    /// Takes in what the informer has and passes it on. Was there anything, and is there nothing more?
    fn poll(&mut self, context: &mut Context<'_>) -> (bool, bool) {
        let mut changes = Vec::new();
        let (mut has_news, mut is_drained) = (false, false);
        for _ in 0..BATCH {
            let Poll::Ready(event) = self.informer.poll_event(context) else {
                is_drained = true;
                break;
            };
            has_news = true;
            changes.extend(self.state.table.take(event));
        }
        if has_news {
            self.state.version = version_number(self.informer.version()).unwrap_or(0);
            self.state.n_lists = self.informer.n_lists();
            self.inboxes.retain(|it| it.upgrade().map(|it| it.lock().put(&changes, &self.state)).is_some());
        }
        (has_news, is_drained)
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

    /// Lists again. Gives the number of lists at which the table holds one that was begun after this call.
    pub(crate) fn relist(&self) -> u64 {
        let lists = self.source.held.lock().informer.relist();
        self.source.bell.is_ringing.store(true, Ordering::Release);
        self.sight.stirred.notify_one();
        lists
    }
}
