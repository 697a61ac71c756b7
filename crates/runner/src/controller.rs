//! Runs one controller: its sight feeds one view, its keys are asked about one after another, their plans carried out.
//!
//! ```text
//! sight ------> view --+                                    +--> parked until the caches show it --+
//!                      v                                    |                                      |
//! queue --> key --> reconcile --> plan --> effects (8 keys) +--> failed: back-off                  |
//!   ^                                                                                              |
//!   +----------------------------------------------------------------------------------------------+
//! ```
//! Everything happens in one task, so nothing is locked and a view never changes while a mind looks at it.

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use corten_client::{BoxFuture, Client};
use corten_meta::{Key, Resource, Retry, Time};
use corten_reconcile::{self as reconcile, Controller, Decision, Effect, Plan};
use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::time::{Instant, Sleep};

use crate::{
    Clock, EventRecorder, JournalBook,
    barrier::{Barrier, Need, listed_anew},
    declared::refusal,
    effects::{Failure, Outcome, WhatNow, perform},
    feed::{Feeds, News},
    queue::Queue,
    sight::Sight,
};

/// Keys whose effects are under way at once.
const CONCURRENT_KEYS: usize = 8;
/// Every key is looked at this often even if nothing happens: it heals what an edge that was lost left behind.
const RESYNC: Duration = Duration::from_secs(600);
/// How long effects that are under way may take at shutdown.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);
/// Of one plan's effects the journal shows this many, each cut at this length.
const JOURNAL_LINES: usize = 20;
const JOURNAL_LINE_CHARS: usize = 300;

/// Runs until `shutdown` is ready; effects that are under way then get a moment to end. It writes through `client` and sees
/// through `sight`, which many controllers share and which somebody runs.
pub async fn run_controller(
    controller: Arc<dyn Controller>,
    client: Client,
    sight: &Sight,
    clock: Clock,
    journal: Arc<JournalBook>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let mut shutdown = pin!(shutdown);
    let mut running = Running::new(controller, client, sight, clock, journal);
    loop {
        let mut happened = Happened::default();
        std::future::poll_fn(|context| {
            if shutdown.as_mut().poll(context).is_ready() {
                happened.is_shutdown = true;
                return Poll::Ready(());
            }
            running.poll(context, &mut happened)
        })
        .await;
        if happened.is_shutdown {
            break;
        }
        running.take_in(happened);
        running.go_on();
        // Other tasks get their turn however much there is to do.
        tokio::task::yield_now().await;
    }
    running.finish().await;
}

struct Running {
    controller: Arc<dyn Controller>,
    client: Client,
    clock: Clock,
    journal: Arc<JournalBook>,
    /// Whose journals the decisions go into.
    about: Option<Resource>,
    feeds: Feeds,
    queue: Queue,
    /// The plans under way, each with where the view stood when it was made.
    plans: FuturesUnordered<BoxFuture<'static, Done>>,
    parked: BTreeMap<Key, Barrier>,
    events: EventRecorder,
    next_resync: Instant,
    alarm: Pin<Box<Sleep>>,
}

/// What one wait brought.
#[derive(Default)]
struct Happened {
    is_shutdown: bool,
    news: News,
    done: Vec<Done>,
}

struct Done {
    key: Key,
    /// Where the view stood at the resources that the plan patched.
    seen: BTreeMap<Resource, u64>,
    outcome: Outcome,
}

impl Running {
    fn new(
        controller: Arc<dyn Controller>,
        client: Client,
        sight: &Sight,
        clock: Clock,
        journal: Arc<JournalBook>,
    ) -> Self {
        let mut feeds = Feeds::new(sight, &*controller);
        feeds.view.begin(clock());
        let events = EventRecorder::new(client.clone(), controller.component());
        let next_resync = Instant::now() + RESYNC;
        let queue = Queue::counted(journal.queue(controller.name()));
        Self {
            about: controller.about(),
            controller,
            client,
            clock,
            journal,
            feeds,
            queue,
            plans: FuturesUnordered::new(),
            parked: BTreeMap::new(),
            events,
            next_resync,
            alarm: Box::pin(tokio::time::sleep_until(next_resync)),
        }
    }

    /// Ready once anything has happened: news in the caches, a plan carried out, an alarm.
    fn poll(&mut self, context: &mut Context<'_>, happened: &mut Happened) -> Poll<()> {
        let mut poll = self.feeds.poll(context, &mut happened.news);
        while let Poll::Ready(Some(done)) = self.plans.poll_next_unpin(context) {
            happened.done.push(done);
            poll = Poll::Ready(());
        }
        if self.alarm.as_mut().poll(context).is_ready() {
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
        // Whoever speaks of objects of many kinds may have spoken of any of them.
        let is_spoken_of = |it: &Resource| self.about.as_ref().is_none_or(|about| about == it);
        for (resource, key) in happened.news.gone.iter().filter(|it| is_spoken_of(&it.0)) {
            self.journal.forget(resource, key);
        }
        for done in happened.done {
            self.done(done);
        }
    }

    /// Does all that can be done now, and sets the alarm for what comes next.
    fn go_on(&mut self) {
        let now = Instant::now();
        self.queue.ring(now);
        if now >= self.next_resync {
            self.next_resync = now + RESYNC;
            self.feeds.view.forget_answers();
            for key in self.feeds.all_keys() {
                self.queue.wake(key);
            }
        }
        self.unpark(now);
        // A view that lacks a resource altogether would say that everything of it is gone.
        while self.feeds.is_synced() && self.plans.len() < CONCURRENT_KEYS {
            let Some(key) = self.queue.pop() else { break };
            self.ask(key);
        }
        let parked = self.parked.values().map(Barrier::alarm);
        let alarms = parked.chain(self.queue.next_alarm()).chain([self.next_resync]);
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

    /// Asks the mind about one key and begins to carry out its plan.
    fn ask(&mut self, key: Key) {
        let now = (self.clock)();
        let asked = catch_unwind(AssertUnwindSafe(|| self.controller.reconcile(&self.feeds.view, &key, now)));
        let Ok(plan) = asked else {
            let name = self.controller.name();
            tracing::error!(controller = name, %key, "the controller panicked");
            self.record(&key, now, &Plan::default(), Some("the controller panicked, see the log"));
            self.retry_later(key, Duration::ZERO);
            return;
        };
        if let Some(refusal) = plan.effects.iter().find_map(|it| refusal(it, self.controller.writes())) {
            tracing::error!(controller = self.controller.name(), %key, refusal, "a plan is refused");
            self.record(&key, now, &plan, Some(&refusal));
            self.retry_later(key, Duration::ZERO);
            return;
        }
        self.record(&key, now, &plan, None);
        if let Some(at) = plan.wake_at {
            let delay = at.since(now);
            self.queue.wake_at(key.clone(), Instant::now() + delay.min(RESYNC));
        }
        self.begin(key, plan.effects, now);
    }

    fn begin(&mut self, key: Key, effects: Vec<Effect>, now: Time) {
        let mut seen = BTreeMap::new();
        for effect in &effects {
            if let Effect::Patch { resource, .. } | Effect::StrategicPatch { resource, .. } = effect {
                seen.insert(resource.clone(), self.feeds.version(resource).unwrap_or(0));
            }
        }
        if effects.iter().all(|it| matches!(it, Effect::Event { .. })) {
            effects.iter().for_each(|it| self.tell(it, now));
            self.succeeded(&key);
            self.queue.done(key);
            return;
        }
        let client = self.client.clone();
        self.plans.push(Box::pin(async move {
            let outcome = perform(&client, effects).await;
            Done { key, seen, outcome }
        }));
    }

    fn tell(&mut self, effect: &Effect, at: Time) {
        if let Effect::Event { about, event_type, reason, message } = effect {
            self.events.record(about, *event_type, reason, message, at);
        }
    }

    /// Parks the key of a plan that has been carried out, as far as it went.
    fn done(&mut self, Done { key, seen, outcome }: Done) {
        let now = Instant::now();
        let has_answers = !outcome.answers.is_empty();
        for (resource, key, answer) in outcome.answers {
            self.feeds.view.record_answer_at(resource, key, answer, (self.clock)());
        }
        let at = (self.clock)();
        outcome.told.iter().for_each(|it| self.tell(it, at));
        let mut needs = outcome.needs;
        let mut not_before = now;
        for failure in &outcome.failures {
            needs.extend(self.needs_after(failure, &seen));
        }
        match outcome.failures.into_iter().next() {
            None => {
                self.succeeded(&key);
                if let Some(moot) = outcome.moot.first() {
                    self.record_failure(&key, moot);
                }
                if has_answers {
                    self.queue.wake(key.clone());
                }
            }
            Some(failure) => {
                let delay = self.queue.failed(&key);
                not_before = now + delay.max(failure.error.retry_after().unwrap_or_default());
                self.record_failure(&key, &failure);
                let seen = reconcile::Failure { message: failure.error.to_string(), effect: failure.effect };
                self.feeds.view.record_failure(&key, Some(seen));
                self.queue.wake(key.clone());
            }
        }
        let mut barrier = Barrier::new(needs, not_before, now);
        if barrier.is_open(&self.feeds, now) {
            self.queue.done(key);
        } else {
            self.parked.insert(key, barrier);
        }
    }

    fn succeeded(&mut self, key: &Key) {
        self.queue.succeeded(key);
        self.feeds.view.record_failure(key, None);
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
        let delay = self.queue.failed(&key).max(at_least);
        self.queue.wake(key.clone());
        self.parked.insert(key, Barrier::new(Vec::new(), now + delay, now));
    }

    // ---- the journal ----

    fn record(&self, key: &Key, now: Time, plan: &Plan, error: Option<&str>) {
        let Some((about, of)) = self.controller.subject(&self.feeds.view, key) else { return };
        if self.feeds.view.meta(&about, &of).is_none() {
            return;
        }
        let mut effects: Vec<String> = plan.effects.iter().take(JOURNAL_LINES).map(line).collect();
        if plan.effects.len() > JOURNAL_LINES {
            effects.push(format!("and {} more", plan.effects.len() - JOURNAL_LINES));
        }
        let decision = Decision {
            by: self.controller.name().into(),
            at: Some(now),
            effects,
            waits: plan.waits.clone(),
            steps: Vec::new(),
            error: error.map(str::to_owned),
            retries: self.queue.failures(key),
        };
        self.journal.record(&about, &of, decision);
    }

    fn record_failure(&self, key: &Key, failure: &Failure) {
        let (name, error) = (self.controller.name(), &failure.error);
        // Conflicts are how optimistic writers meet, as are writes to what has gone and creates in a namespace that goes;
        // anything else is worth a line.
        let is_patch = matches!(failure.effect, Effect::Patch { .. } | Effect::StrategicPatch { .. });
        let is_gone = is_patch && error.is_not_found() || error.is_namespace_terminating();
        if error.retry() == Retry::Now || is_gone {
            tracing::debug!(controller = name, %key, %error, "cannot {}", failure.effect);
        } else {
            tracing::warn!(controller = name, %key, %error, "cannot {}", failure.effect);
        }
        let Some((about, of)) = self.controller.subject(&self.feeds.view, key) else { return };
        let decisions = self.journal.decisions(&about, &of);
        let Some(mut decision) = decisions.into_iter().find(|it| it.by == name) else { return };
        decision.at = Some((self.clock)());
        decision.error = Some(format!("cannot {}: {error}", line(&failure.effect)));
        decision.retries = self.queue.failures(key);
        self.journal.record(&about, &of, decision);
    }

    /// Lets the plans under way come to an end, for a while.
    async fn finish(mut self) {
        let rest = async { while self.plans.next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_PATIENCE, rest).await.is_err() {
            tracing::warn!(controller = self.controller.name(), "effects are given up at shutdown");
        }
    }
}

fn line(effect: &Effect) -> String {
    cut(&effect.to_string())
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(JOURNAL_LINE_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
