//! Runs one controller: its informers feed one view, its keys are asked about one after another, their plans carried out.
//!
//! ```text
//! informers --> view --+                                    +--> parked until the caches show it --+
//!                      v                                    |                                      |
//! queue --> key --> reconcile --> plan --> effects (8 keys) +--> failed: back-off                  |
//!   ^                                                                                              |
//!   +----------------------------------------------------------------------------------------------+
//! ```
//! One thread at a time does all of it. While its mind thinks nothing is locked, and the view is held as it is: where the
//! mind does not come back, another thread goes on with the other keys, and what it comes back with late still counts.

mod fetched;
mod told;
mod unlisted;

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use corten_client::{BoxFuture, Client};
use corten_meta::{Key, Resource, Time, shortened};
use corten_reconcile::{self as reconcile, Actor, Controller, CountedLook, Effect, Plan, View, Wait};
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, Sleep},
};
use tracing::Instrument;

use crate::{
    Clock, EventRecorder, GivenUp, JournalBook, Loop, QueueCounts,
    barrier::{Barrier, Need, listed_anew},
    declared::refusal,
    effects::{Failure, Outcome, WhatNow, perform},
    feed::{FeedChanges, Feeds},
    queue::Queue,
    shared_informers::SharedInformers,
};
use unlisted::Unlisted;

/// Keys whose effects are under way at once.
const CONCURRENT_KEYS: usize = 8;
/// Where the mind has not come back from so many keys it is asked about no other: each of them takes a thread.
const SET_ASIDE_MAX: usize = 4;
/// Every key is looked at this often even if nothing happens: it heals what an edge that was lost left behind.
const RESYNC: Duration = Duration::from_secs(600);
/// How long effects that are under way may take at shutdown.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// Runs until `shutdown` is ready; effects that are under way then get a moment to end. It writes through `client` and sees
/// through `informers`, which many controllers share and which somebody runs. In one thread: nobody takes it over.
pub async fn run_controller(
    controller: Arc<dyn Controller>,
    client: Client,
    informers: &SharedInformers,
    clock: Clock,
    journal: Arc<JournalBook>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) {
    let loop_ = ControllerLoop::new(controller, client, informers, clock, journal, shutdown);
    std::future::poll_fn(|context| loop_.poll(context)).await;
}

/// As [`run_controller`], for many threads.
pub struct ControllerLoop {
    controller: Arc<dyn Controller>,
    counts: Arc<QueueCounts>,
    /// Not locked while the mind thinks.
    running: Mutex<LoopState>,
}

impl ControllerLoop {
    pub fn new(
        controller: Arc<dyn Controller>,
        client: Client,
        informers: &SharedInformers,
        clock: Clock,
        journal: Arc<JournalBook>,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let counts = journal.queue(controller.name());
        let running = LoopState::new(controller.clone(), client, informers, clock, journal, Box::pin(shutdown));
        Self { controller, counts, running: Mutex::new(running) }
    }

    /// Asks the mind about one key; nothing is locked.
    fn think(&self, question: Question) -> Answer {
        let Question { key, view, now } = question;
        let _entered = span(self.controller.name(), &key).entered();
        let begun = self.counts.thinking.begin(Some(key.clone()));
        let id = begun.id();
        let asked = catch_unwind(AssertUnwindSafe(|| {
            let subject = self.controller.subject(&view, &key);
            let subject = subject.filter(|(about, of)| view.meta(about, of).is_some());
            begun.about(Some(key.clone()), subject.clone());
            (subject, self.controller.reconcile(&view, &key, now))
        }));
        let subject = self.counts.thinking.subject(id);
        let plan = asked.ok().map(|it| it.1);
        Answer { key, subject, plan, now }
    }
}

impl Loop for ControllerLoop {
    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        if let Poll::Ready(is_over) = self.running.lock().advance(context) {
            if is_over {
                return Poll::Ready(());
            }
        } else {
            return Poll::Pending;
        }
        loop {
            let question = self.running.lock().question();
            let Some(question) = question else { break };
            let answer = self.think(question);
            let is_late = self.running.lock().take_answer(answer);
            if is_late {
                // Another thread has gone on with this loop: it looks at what this one has brought.
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
        self.running.lock().set_alarm();
        // Other loops get their turn however much there is to do.
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Sets the key aside of which its mind does not come back.
    fn give_up(&self) -> GivenUp {
        // Locked it stands still amid the news: nobody could go on.
        self.running.try_lock().map_or(GivenUp::Whole, |mut it| it.set_aside())
    }
}

/// What is logged while a key is thought about, and while its plan is carried out, names both.
fn span(controller: &str, key: &Key) -> tracing::Span {
    tracing::debug_span!("reconcile", controller, %key)
}

/// What the mind is asked.
struct Question {
    key: Key,
    view: Arc<View>,
    now: Time,
}

struct Answer {
    key: Key,
    /// In whose journal it stands.
    subject: Option<(Resource, Key)>,
    /// Nothing where the mind broke.
    plan: Option<Plan>,
    now: Time,
}

struct LoopState {
    controller: Arc<dyn Controller>,
    client: Client,
    clock: Clock,
    journal: Arc<JournalBook>,
    shutdown: BoxFuture<'static, ()>,
    /// Until when effects may end, once it is told to.
    ends_at: Option<Pin<Box<Sleep>>>,
    /// Whose journals the decisions go into.
    about: Option<Resource>,
    feeds: Feeds,
    queue: Queue,
    /// What the mind is asked now, and since when.
    asked: Option<(Key, Instant)>,
    /// Keys from which the mind has not come back, each with when it was asked.
    aside: BTreeMap<Key, Instant>,
    /// There may be something to think about, though nothing was heard of.
    is_stirred: bool,
    /// The plans under way, each with where the view stood when it was made.
    plans: FuturesUnordered<BoxFuture<'static, Done>>,
    parked: BTreeMap<Key, Barrier>,
    /// By key what it last could not delete, in whose journal that stands.
    undeleted: BTreeMap<Key, (Resource, Key)>,
    unlisted: Unlisted,
    events: EventRecorder,
    next_resync: Instant,
    /// Ready once the machine's clock was set.
    clock_set: BoxFuture<'static, watch::Receiver<()>>,
    alarm: Pin<Box<Sleep>>,
}

/// What one wait brought.
#[derive(Default)]
struct Happened {
    news: FeedChanges,
    done: Vec<Done>,
}

struct Done {
    key: Key,
    /// In whose journal it stands.
    subject: Option<(Resource, Key)>,
    /// How long the key is left alone after that.
    rest: Duration,
    /// It only looked: whether what failed before goes well now is not known.
    is_look: bool,
    /// Where the view stood at the resources that the plan patched.
    seen: BTreeMap<Resource, u64>,
    look: Option<CountedLook>,
    outcome: Outcome,
}

impl LoopState {
    fn new(
        controller: Arc<dyn Controller>,
        client: Client,
        informers: &SharedInformers,
        clock: Clock,
        journal: Arc<JournalBook>,
        shutdown: BoxFuture<'static, ()>,
    ) -> Self {
        let mut feeds = Feeds::new(informers, &*controller);
        feeds.view_mut().begin(clock());
        let events = EventRecorder::new(client.clone(), controller.component());
        let next_resync = Instant::now() + RESYNC;
        let queue = Queue::counted(journal.queue(controller.name()));
        Self {
            about: controller.about(),
            controller,
            client,
            clock,
            journal,
            shutdown,
            ends_at: None,
            feeds,
            queue,
            asked: None,
            aside: BTreeMap::new(),
            is_stirred: false,
            plans: FuturesUnordered::new(),
            parked: BTreeMap::new(),
            undeleted: BTreeMap::new(),
            unlisted: Unlisted::default(),
            events,
            next_resync,
            clock_set: after_change(informers.clock_sets()),
            alarm: Box::pin(tokio::time::sleep_until(next_resync)),
        }
    }

    /// Ready once there may be something to think about; true: once it is over.
    fn advance(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        if self.ends_at.is_none() && self.shutdown.poll_unpin(context).is_ready() {
            self.ends_at = Some(Box::pin(tokio::time::sleep(SHUTDOWN_PATIENCE)));
        }
        if let Some(ends_at) = &mut self.ends_at {
            return finish(&mut self.plans, ends_at, self.controller.name(), context).map(|()| true);
        }
        let mut happened = Happened::default();
        std::task::ready!(self.poll(context, &mut happened));
        self.take_in(happened);
        self.go_on();
        Poll::Ready(false)
    }

    /// Ready once anything has happened: news in the caches, a plan carried out, an alarm.
    fn poll(&mut self, context: &mut Context<'_>, happened: &mut Happened) -> Poll<()> {
        let mut poll = self.feeds.poll(context, &mut happened.news);
        while let Poll::Ready(Some(done)) = self.plans.poll_next_unpin(context) {
            happened.done.push(done);
            poll = Poll::Ready(());
        }
        if let Poll::Ready(told) = self.clock_set.poll_unpin(context) {
            self.clock_set = after_change(told);
            // Nothing is concluded from what seems to have been silent since before.
            self.feeds.view_mut().begin((self.clock)());
            // Alarms count time that passes: whoever waits for a time of day is asked again.
            self.next_resync = Instant::now();
            poll = Poll::Ready(());
        }
        if self.alarm.as_mut().poll(context).is_ready() || std::mem::take(&mut self.is_stirred) {
            poll = Poll::Ready(());
        }
        // Never ready: it only sends.
        let _pending = self.events.poll(context);
        poll
    }

    fn take_in(&mut self, happened: Happened) {
        for key in happened.news.woken {
            self.queue.wake(key);
        }
        for (resource, key) in &happened.news.gone {
            let is_its_own = self.about.as_ref() == Some(resource);
            // Whoever speaks of objects of many kinds may have spoken of any of them.
            if is_its_own || self.about.is_none() {
                self.journal.forget(resource, key);
            }
            if is_its_own {
                self.forget_failures(key);
                self.forget_what_is_gone(key);
            }
        }
        for done in happened.done {
            self.done(done);
        }
    }

    /// Does all that can be done without the mind.
    fn go_on(&mut self) {
        let now = Instant::now();
        self.queue.ring(now);
        if now >= self.next_resync {
            self.next_resync = now + RESYNC;
            self.feeds.view_mut().forget_answers();
            for key in self.feeds.all_keys() {
                self.queue.wake(key);
            }
        }
        self.unpark(now);
    }

    /// The next key the mind is to be asked about.
    fn question(&mut self) -> Option<Question> {
        self.feeds.outdate_answers((self.clock)());
        // A view that lacks a resource altogether would say that everything of it is gone.
        let Some(view) = self.feeds.whole_view() else {
            self.tell_unlisted();
            return None;
        };
        self.take_unlisted_back();
        let may_ask = self.plans.len() < CONCURRENT_KEYS && self.asked.is_none();
        if !may_ask || self.ends_at.is_some() || self.aside.len() >= SET_ASIDE_MAX {
            return None;
        }
        let key = self.queue.pop()?;
        self.asked = Some((key.clone(), Instant::now()));
        Some(Question { key, view, now: (self.clock)() })
    }

    fn set_alarm(&mut self) {
        let parked = self.parked.values().map(Barrier::alarm);
        let alarms = parked.chain(self.queue.next_alarm()).chain(self.unlisted.alarm()).chain([self.next_resync]);
        let next = alarms.min().unwrap_or(self.next_resync);
        if self.alarm.deadline() != next || self.alarm.is_elapsed() {
            self.alarm.as_mut().reset(next);
        }
    }

    fn unpark(&mut self, now: Instant) {
        let feeds = &self.feeds;
        let open: Vec<Key> =
            self.parked.iter_mut().filter_map(|(key, it)| it.is_open(feeds, now).then(|| key.clone())).collect();
        for key in open {
            self.parked.remove(&key);
            self.queue.done(key);
        }
    }

    /// The mind does not come back from the key it was asked about: others are asked about meanwhile.
    fn set_aside(&mut self) -> GivenUp {
        let Some((key, since)) = self.asked.take() else { return GivenUp::Whole };
        self.aside.insert(key, since);
        self.is_stirred = true;
        if self.aside.len() < SET_ASIDE_MAX { GivenUp::OneKey } else { GivenUp::OneTooMany }
    }

    /// Takes in what the mind says, and begins to carry out its plan. Says whether that came late.
    fn take_answer(&mut self, answer: Answer) -> bool {
        let Answer { key, subject, plan, now } = answer;
        // As long as it took is it left alone: it has half of a thread at most.
        let rest = self.aside.remove(&key).map(|since| since.elapsed());
        match rest {
            None => self.asked = None,
            Some(_) => self.is_stirred = true,
        }
        self.take_plan(key, subject, plan, now, rest.unwrap_or_default());
        rest.is_some()
    }

    fn take_plan(&mut self, key: Key, subject: Option<(Resource, Key)>, plan: Option<Plan>, now: Time, rest: Duration) {
        let name = self.controller.name();
        let Some(plan) = plan else {
            tracing::error!(controller = name, %key, "the controller panicked");
            let message =
                format!("the loop {name} panicked at it and tries again with a back-off: a defect of the program");
            let plan = Plan { waits: vec![Wait::new("LoopPanicked", message, Actor::Operator)], ..Plan::default() };
            self.record(&key, subject.as_ref(), now, &plan, Some("the controller panicked, see the log"));
            return self.retry_later(key, rest);
        };
        if let Some(refusal) = plan.effects.iter().find_map(|it| refusal(it, self.controller.writes())) {
            tracing::error!(controller = name, %key, refusal, "a plan is refused");
            self.record(&key, subject.as_ref(), now, &plan, Some(&refusal));
            return self.retry_later(key, rest);
        }
        // Who only looks has decided nothing: what was decided before stands.
        let is_look = plan.effects.iter().any(Effect::is_fetch);
        if !is_look {
            self.record(&key, subject.as_ref(), now, &plan, None);
            self.forget_fetched(&key);
        }
        if let Some(at) = plan.wake_at {
            let delay = at.since(now);
            self.queue.wake_at(key.clone(), Instant::now() + delay.min(RESYNC));
        }
        self.begin(key, subject, plan, now, rest);
    }

    fn begin(&mut self, key: Key, subject: Option<(Resource, Key)>, plan: Plan, now: Time, rest: Duration) {
        let Plan { effects, look, .. } = plan;
        let mut seen = BTreeMap::new();
        for effect in effects.iter().flat_map(Effect::parts) {
            if let Effect::Patch { resource, .. } | Effect::StrategicPatch { resource, .. } = effect {
                seen.insert(resource.clone(), self.feeds.version(resource).unwrap_or(0));
            }
        }
        let mut parts = effects.iter().flat_map(Effect::parts);
        if parts.all(|it| matches!(it, Effect::Event { .. } | Effect::Remember { .. } | Effect::Count(_))) {
            effects.iter().flat_map(Effect::parts).for_each(|it| self.tell(it, now));
            self.take_fetched(&key, Vec::new(), fetched::last_note(effects));
            self.succeeded(&key);
            self.count_look(&key, look.as_ref(), false);
            return self.park(key, Vec::new(), Instant::now() + rest);
        }
        let client = self.client.clone();
        let span = span(self.controller.name(), &key);
        let is_look = effects.iter().any(Effect::is_fetch);
        let carried_out = async move {
            let outcome = perform(&client, effects).await;
            Done { key, subject, rest, is_look, seen, look, outcome }
        };
        self.plans.push(Box::pin(carried_out.instrument(span)));
    }

    fn tell(&mut self, effect: &Effect, at: Time) {
        match effect {
            Effect::Event { about, event_type, reason, message } => {
                self.events.record(about, *event_type, reason, message, at);
            }
            Effect::Count(count) => self.journal.count(count),
            _ => {}
        }
    }

    fn count_look(&self, key: &Key, look: Option<&CountedLook>, has_failed: bool) {
        let Some(look) = look else { return };
        let seconds = self.queue.busy_for(key).as_secs_f64();
        look.counts(seconds, has_failed).iter().for_each(|it| self.journal.count(it));
    }

    /// Parks the key of a plan that has been carried out, as far as it went.
    fn done(&mut self, Done { key, subject, rest, is_look, seen, look, outcome }: Done) {
        let now = Instant::now();
        let has_answers = outcome.has_answers();
        self.take_fetched_for_all(&key, outcome.fetched_for_all);
        self.take_fetched(&key, outcome.fetched, outcome.note);
        for (resource, key, answer) in outcome.answers {
            self.feeds.view_mut().record_answer_at(resource, key, answer, (self.clock)());
        }
        self.count_look(&key, look.as_ref(), !outcome.failures.is_empty());
        let at = (self.clock)();
        outcome.told.iter().for_each(|it| self.tell(it, at));
        let mut needs = outcome.needs;
        let mut not_before = now + rest;
        for failure in &outcome.failures {
            needs.extend(self.needs_after(failure, &seen));
        }
        match outcome.failures.into_iter().next() {
            None => {
                if !is_look {
                    self.succeeded(&key);
                }
                if let Some(moot) = outcome.moot.first() {
                    self.record_failure(&key, subject.as_ref(), moot);
                }
                if has_answers {
                    self.queue.wake(key.clone());
                }
            }
            Some(failure) => {
                let delay = self.queue.failed(&key);
                not_before = now + delay.max(failure.error.retry_after().unwrap_or_default()).max(rest);
                self.record_failure(&key, subject.as_ref(), &failure);
                let seen = reconcile::Failure {
                    message: shortened(&failure.error.to_string()).into_owned(),
                    is_final: failure.error.is_final(),
                    effect: failure.effect,
                };
                self.feeds.view_mut().record_failure(&key, Some(seen));
                self.queue.wake(key.clone());
            }
        }
        self.park(key, needs, not_before);
    }

    fn park(&mut self, key: Key, needs: Vec<Need>, not_before: Instant) {
        self.queue.worked(&key);
        let now = Instant::now();
        let mut barrier = Barrier::new(needs, not_before, now);
        if barrier.is_open(&self.feeds, now) {
            self.queue.done(key);
        } else {
            self.parked.insert(key, barrier);
        }
    }

    fn succeeded(&mut self, key: &Key) {
        self.queue.succeeded(key);
        // Most have never failed: nobody's view is another for that.
        if self.feeds.view.failure(key).is_some() {
            self.feeds.view_mut().record_failure(key, None);
        }
    }

    /// Another object of the same name has not failed yet, and does not wait for what this one failed with.
    fn forget_failures(&mut self, key: &Key) {
        self.succeeded(key);
        if let Some(barrier) = self.parked.get_mut(key) {
            barrier.end_rest(Instant::now());
        }
    }

    fn needs_after(&self, failure: &Failure, seen: &BTreeMap<Resource, u64>) -> Option<Need> {
        match &failure.what_now {
            WhatNow::BackOff => None,
            WhatNow::AwaitChange(resource) => {
                let past = seen.get(resource).copied().unwrap_or(0);
                Some(Need::Moved { resource: resource.clone(), past })
            }
            WhatNow::AwaitPresence(resource, key) => {
                Some(Need::Present { resource: resource.clone(), key: key.clone() })
            }
            WhatNow::ListAgain(resource) => Some(listed_anew(&self.feeds, resource.clone())),
        }
    }

    fn retry_later(&mut self, key: Key, at_least: Duration) {
        let now = Instant::now();
        self.queue.worked(&key);
        let delay = self.queue.failed(&key).max(at_least);
        self.queue.wake(key.clone());
        self.parked.insert(key, Barrier::new(Vec::new(), now + delay, now));
    }
}

/// Lets the plans under way come to an end, for a while.
fn finish(
    plans: &mut FuturesUnordered<BoxFuture<'static, Done>>,
    ends_at: &mut Pin<Box<Sleep>>,
    name: &str,
    context: &mut Context<'_>,
) -> Poll<()> {
    while let Poll::Ready(done) = plans.poll_next_unpin(context) {
        if done.is_none() {
            return Poll::Ready(());
        }
    }
    std::task::ready!(ends_at.as_mut().poll(context));
    tracing::warn!(controller = name, "effects are given up at shutdown");
    Poll::Ready(())
}

fn after_change(mut told: watch::Receiver<()>) -> BoxFuture<'static, watch::Receiver<()>> {
    Box::pin(async move {
        // An error says that nobody can tell any more.
        if told.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
        told
    })
}

#[cfg(test)]
mod tests;
