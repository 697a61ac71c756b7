//! A watcher: a cursor into a log, and the selectors that decide what of it is sent.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Acquire},
    },
};

use corten_store::Revision;
use parking_lot::Mutex;

use super::{
    Matcher, Snapshot,
    event::{Event, EventType},
    log::{Few, Log},
    matcher::Scope,
    resource::Lanes,
};

/// How many events are taken out of the log at once.
const BATCH: usize = 64;

/// Where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the state as it is, as events, then what follows.
    State,
    /// With what follows.
    Now,
    /// With what follows this revision.
    After(Revision),
}

pub struct Started {
    pub watcher: Watcher,
    /// The state the watcher starts from, where it starts from the newest.
    pub snapshot: Arc<Snapshot>,
}

/// The watcher was too slow: events it has not seen are gone.
#[derive(Debug)]
pub struct FellBehind;

pub struct Watcher {
    log: Arc<Log>,
    place: u64,
    pub matcher: Matcher,
    /// Events from before the lane existed; references, the log may forget them.
    backlog: VecDeque<Arc<Event>>,
    lane: Option<(Arc<Mutex<Lanes>>, Scope)>,
    /// It is told what comes after this revision, which may lie in the future.
    after: Revision,
    /// Nothing will come any more.
    is_closed: Arc<AtomicBool>,
}

impl Watcher {
    pub(super) fn new(
        log: Arc<Log>,
        place: u64,
        matcher: Matcher,
        backlog: Vec<Arc<Event>>,
        lane: Option<(Arc<Mutex<Lanes>>, Scope)>,
    ) -> Self {
        log.watcher_comes();
        Self { log, place, matcher, backlog: backlog.into(), lane, after: 0, is_closed: Arc::default() }
    }

    pub(super) fn after(mut self, revision: Revision) -> Self {
        self.after = revision;
        self
    }

    pub(super) fn until(mut self, is_closed: Arc<AtomicBool>) -> Self {
        self.is_closed = is_closed;
        self
    }

    /// Is what it watches no longer served? Ask before [`Self::ready`]: what that gives then is the last.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Acquire)
    }

    /// The next events it can see, without waiting; empty where there is none.
    pub fn ready(&mut self) -> Result<Few<(Arc<Event>, EventType)>, FellBehind> {
        loop {
            let events: Few<Arc<Event>> = if self.backlog.is_empty() {
                let events = self.log.read(self.place, BATCH).map_err(|_| FellBehind)?;
                self.place += events.len() as u64;
                events
            } else {
                let n = self.backlog.len().min(BATCH);
                self.backlog.drain(..n).collect()
            };
            if events.is_empty() {
                return Ok(Few::new());
            }
            let seen: Few<_> = events
                .into_iter()
                .filter(|it| it.revision > self.after)
                .filter_map(|it| it.seen_by(&self.matcher).map(|seen| (it, seen)))
                .collect();
            if !seen.is_empty() {
                return Ok(seen);
            }
        }
    }

    /// Waits until there may be more, or `stopping` holds. Safe to drop at any time.
    pub async fn changed(&self, stopping: impl Fn() -> bool) {
        let mut woken = pin!(self.log.woken());
        // From here on no wake is lost; what came before shows in the log's end.
        woken.as_mut().enable();
        if self.log.end() == self.place && !self.is_closed() && !stopping() {
            woken.await;
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.log.watcher_goes();
        let Some((lanes, scope)) = self.lane.take() else { return };
        let mut lanes = lanes.lock();
        if let Some(lane) = lanes.get_mut(&scope) {
            lane.watchers -= 1;
            if lane.watchers == 0 {
                lanes.remove(&scope);
            }
        }
    }
}
