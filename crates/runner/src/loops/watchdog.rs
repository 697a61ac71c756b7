//! Looks at every thread a few times a second: one that still does the same thing for the same thought stands still.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    thread::JoinHandle,
    time::Duration,
};

use corten_meta::{Key, Resource};
use corten_reconcile::{Actor, Decision, Wait};
use parking_lot::{Condvar, Mutex};

use super::{GivenUp, Inner, State, Task, Thread};
use crate::thinking::Thought;

const PERIOD: Duration = Duration::from_millis(250);
/// A thread that has not moved for so many looks stands still: a second. The looks are counted, not the time, as a machine
/// that slept makes nobody slow.
pub(super) const LOOKS_MAX: u32 = 4;
/// So many threads may stand still, each of which takes what is left of a core. After that none is replaced.
pub(super) const STUCK_MAX: usize = 16;
/// The reason of a wait for a loop that stands still.
pub(super) const REASON: &str = "LoopStuck";
const LOWEST: i32 = 19;

/// The watchdog's own thread. Ends when it is dropped.
pub(super) struct WatchdogThread {
    stop: Arc<(Mutex<bool>, Condvar)>,
    handle: Option<JoinHandle<()>>,
}

impl WatchdogThread {
    pub(super) fn start(inner: Arc<Inner>) -> std::io::Result<Self> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let told = stop.clone();
        let run = move || {
            let mut watchdog = Watchdog::new(inner);
            let (is_over, bell) = &*told;
            let mut is_over = is_over.lock();
            while !*is_over {
                bell.wait_for(&mut is_over, PERIOD);
                watchdog.look();
            }
        };
        let handle = std::thread::Builder::new().name("watchdog".into()).spawn(run)?;
        Ok(Self { stop, handle: Some(handle) })
    }
}

impl Drop for WatchdogThread {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        if let Some(handle) = self.handle.take() {
            let _broken = handle.join();
        }
    }
}

pub(super) struct Watchdog {
    inner: Arc<Inner>,
    watched: Vec<WatchedThread>,
}

struct WatchedThread {
    thread: Arc<Thread>,
    /// The polls and thoughts it had begun when it moved last.
    place: (u64, u64),
    n_looks: u32,
    /// Whose journal tells that it stands still, and of which loop.
    told: Option<(Resource, Key, String)>,
}

impl Watchdog {
    pub(super) fn new(inner: Arc<Inner>) -> Self {
        Self { inner, watched: Vec::new() }
    }

    pub(super) fn look(&mut self) {
        let threads = self.inner.threads.lock().clone();
        for thread in &threads {
            if !self.watched.iter().any(|it| Arc::ptr_eq(&it.thread, thread)) {
                self.watched.push(WatchedThread { thread: thread.clone(), place: (0, 0), n_looks: 0, told: None });
            }
        }
        for watched in &mut self.watched {
            let Some(task) = watched.thread.doing.lock().clone() else { continue };
            let place = (watched.thread.n_polls.load(Relaxed), task.counts.thinking.n_steps());
            if place != watched.place {
                (watched.place, watched.n_looks) = (place, 0);
                continue;
            }
            watched.n_looks = watched.n_looks.saturating_add(1);
            if watched.n_looks >= LOOKS_MAX && !watched.thread.is_stuck.load(Relaxed) {
                self.inner.give_up(watched, &task);
            }
        }
        self.inner.threads.lock().retain(|it| !it.has_ended.load(Relaxed));
        let (ended, rest) =
            std::mem::take(&mut self.watched).into_iter().partition(|it| it.thread.has_ended.load(Relaxed));
        self.watched = rest;
        ended.into_iter().for_each(|it: WatchedThread| self.inner.take_back(it));
    }
}

impl Inner {
    fn give_up(self: &Arc<Self>, watched: &mut WatchedThread, task: &Arc<Task>) {
        let thread = &watched.thread;
        let mut doing = thread.doing.lock();
        let is_same = doing.as_ref().is_some_and(|it| Arc::ptr_eq(it, task));
        if !is_same || task.counts.thinking.n_steps() != watched.place.1 {
            return;
        }
        thread.is_stuck.store(true, Relaxed);
        let thought = task.counts.thinking.current();
        let now = task.now.lock().clone();
        let given_up = now.give_up();
        watched.told = self.tell(task, thought, given_up);
        if given_up != GivenUp::Whole {
            *doing = None;
            *task.state.lock() = State::Ready;
            task.clone().queue();
        } else if self.is_stopping.load(Relaxed) {
            task.tell_over();
        }
        drop(doing);
        // It may spin: others come first. That it cannot be said costs time and nothing else.
        let _refused = (*thread.kernel_id.lock()).map(|it| rustix::process::setpriority_process(Some(it), LOWEST));
        self.replace();
    }

    fn replace(self: &Arc<Self>) {
        let stuck = |it: &&Arc<Thread>| it.is_stuck.load(Relaxed) && !it.has_ended.load(Relaxed);
        let n_stuck = self.threads.lock().iter().filter(stuck).count();
        if n_stuck > STUCK_MAX {
            tracing::error!(
                n_stuck,
                "too many loops stand still: no thread takes this one's place, and loops may end altogether until a restart"
            );
        } else if let Err(error) = Self::start_thread(self) {
            tracing::error!(%error, "no thread takes the place of one that stands still");
        }
    }

    /// Names what stands still, in the log and in the journal of what it is about.
    fn tell(&self, task: &Task, thought: Option<Thought>, given_up: GivenUp) -> Option<(Resource, Key, String)> {
        let (key, subject) = thought.map_or((None, None), |it| (it.key, it.subject));
        let shown = key.as_ref().map(ToString::to_string).unwrap_or_default();
        let others = match given_up {
            GivenUp::Whole => "it does nothing else meanwhile",
            GivenUp::OneKey => "its other keys are looked after meanwhile",
            GivenUp::OneTooMany => "as of too many others, so it begins nothing new until it has, or until a restart",
        };
        tracing::error!(
            r#loop = task.name,
            key = shown,
            "the loop has thought about one thing for more than a second; {others}"
        );
        let (resource, key) = subject?;
        let message = format!(
            "the loop {} has thought about it for more than a second and come to no plan: {others}. This is a defect of \
             the program",
            task.name
        );
        let wait = Wait::new(REASON, message, Actor::Operator);
        let decision =
            Decision { by: task.name.clone(), at: Some((self.clock)()), waits: vec![wait], ..Decision::default() };
        self.journal.record(&resource, &key, decision);
        Some((resource, key, task.name.clone()))
    }

    /// A thread that stood still has come back.
    fn take_back(&self, watched: WatchedThread) {
        let Some((resource, key, by)) = watched.told else { return };
        tracing::warn!(r#loop = by, %key, "the loop goes on: it has come to the end of its thought");
        let decisions = self.journal.decisions(&resource, &key);
        let said = decisions.iter().find(|it| it.by == by);
        // Where it has decided about it since, that stands there now.
        if said.is_some_and(|it| it.waits.iter().any(|it| it.reason == REASON)) {
            self.journal.retract(&resource, &key, &by);
        }
    }
}
