//! The recent events of a resource, or of one scope of it: a bounded window that watchers read with cursors.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{
            AtomicU64, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
    },
};

use corten_store::Revision;
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::sync::{Notify, futures::Notified};

use super::event::Event;

/// How much a window keeps. A watcher that falls further behind is told to list again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub events: usize,
    pub bytes: usize,
}

pub(crate) const WINDOW: Window = Window { events: 16 * 1024, bytes: 64 * 1024 * 1024 };

/// So many of the newest events keep their frames.
const FRAMES: usize = 256;

/// A watcher that keeps up is told of one or two at a time.
pub type Few<T> = SmallVec<[T; 2]>;

/// Locked for pushes and for copying out references, never longer.
pub(crate) struct Log {
    ring: Mutex<Ring>,
    /// Woken watchers read on from their own place. First come, first woken: simulations repeat exactly.
    wake: Notify,
    /// The place after the last event, for those who only want to know whether there is something new.
    end: AtomicU64,
    /// How many watchers there are.
    n_watchers: AtomicUsize,
    window: Window,
}

struct Ring {
    events: VecDeque<Arc<Event>>,
    /// The place of the first event that is kept.
    start: u64,
    /// Every later event is kept.
    since: Revision,
    bytes: usize,
    /// There are events nobody was woken for yet.
    is_unheard: bool,
}

/// The window has moved past the cursor.
#[derive(Debug)]
pub(crate) struct Gone;

impl Log {
    pub(crate) fn new(since: Revision, window: Window) -> Self {
        let ring = Ring { events: VecDeque::new(), start: 0, since, bytes: 0, is_unheard: false };
        Self {
            ring: Mutex::new(ring),
            wake: Notify::new(),
            end: AtomicU64::new(0),
            n_watchers: AtomicUsize::new(0),
            window,
        }
    }

    /// Appends an event and wakes nobody; true where it is the first since the last [`Log::wake`].
    pub(crate) fn push(&self, event: Arc<Event>) -> bool {
        let mut ring = self.ring.lock();
        ring.bytes += event.bytes();
        ring.events.push_back(event);
        self.end.store(ring.end(), Release);
        while ring.events.len() > self.window.events || (ring.bytes > self.window.bytes && ring.events.len() > 1) {
            ring.drop_first();
        }
        if let Some(aged) = ring.events.len().checked_sub(FRAMES + 1) {
            ring.events[aged].grow_old();
        }
        !std::mem::replace(&mut ring.is_unheard, true)
    }

    /// Wakes every watcher, so that it looks for events and whether the server stops.
    pub(crate) fn wake(&self) {
        self.ring.lock().is_unheard = false;
        self.wake.notify_waiters();
    }

    /// Forgets events up to `revision`.
    pub(crate) fn trim(&self, revision: Revision) {
        let mut ring = self.ring.lock();
        while ring.events.front().is_some_and(|it| it.revision <= revision) {
            ring.drop_first();
        }
    }

    /// Whoever has not gone on from `revision` or later lists again: watchers that are here, too.
    pub(crate) fn break_off(&self, revision: Revision) {
        let mut ring = self.ring.lock();
        // A place that nobody can be at.
        ring.start = ring.end() + 1;
        ring.events.clear();
        ring.bytes = 0;
        ring.since = revision;
        self.end.store(ring.end(), Release);
    }

    /// What came before `revision` was never here.
    pub(crate) fn begin_at(&self, revision: Revision) {
        self.ring.lock().since = revision;
    }

    pub(crate) fn since(&self) -> Revision {
        self.ring.lock().since
    }

    pub(crate) fn n_watchers(&self) -> usize {
        self.n_watchers.load(Relaxed)
    }

    pub(crate) fn watcher_comes(&self) {
        self.n_watchers.fetch_add(1, Relaxed);
    }

    pub(crate) fn watcher_goes(&self) {
        self.n_watchers.fetch_sub(1, Relaxed);
    }

    pub(crate) fn end(&self) -> u64 {
        self.end.load(Acquire)
    }

    pub(crate) fn woken(&self) -> Notified<'_> {
        self.wake.notified()
    }

    /// At most `max` events from `place` on.
    pub(crate) fn read(&self, place: u64, max: usize) -> Result<Few<Arc<Event>>, Gone> {
        if place == self.end() {
            return Ok(Few::new());
        }
        let ring = self.ring.lock();
        let skip = place.checked_sub(ring.start).ok_or(Gone)?;
        let skip = usize::try_from(skip).map_err(|_| Gone)?;
        Ok(ring.events.iter().skip(skip).take(max).cloned().collect())
    }

    /// The place of the first event after `revision`; `Gone` with the oldest revision to go on from.
    pub(crate) fn place_after(&self, revision: Revision) -> Result<u64, Revision> {
        let ring = self.ring.lock();
        if revision < ring.since {
            return Err(ring.since);
        }
        let before = ring.events.partition_point(|it| it.revision <= revision);
        Ok(ring.start + before as u64)
    }
}

impl Ring {
    fn end(&self) -> u64 {
        self.start + self.events.len() as u64
    }

    fn drop_first(&mut self) {
        if let Some(first) = self.events.pop_front() {
            self.start += 1;
            self.bytes -= first.bytes();
            self.since = first.revision;
        }
    }
}
