//! What a loop thinks about now, and since when: for the watchdog, and for whoever measures.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use corten_meta::{Key, Resource};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Of one loop. It has one thought at a time, and beside that those its watchdog gave up and that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Thinking {
    thoughts: Mutex<Vec<Thought>>,
    /// Goes up whenever a thought begins or ends: a loop that stands still has the same number.
    n_steps: AtomicU64,
}

#[derive(Clone, Debug)]
pub(crate) struct Thought {
    pub(crate) id: u64,
    /// What it is about, where it is about one key; and the object whose journal tells of it.
    pub(crate) key: Option<Key>,
    pub(crate) subject: Option<(Resource, Key)>,
    pub(crate) since: Instant,
}

/// Ends a thought when it is dropped.
pub(crate) struct ThoughtGuard<'a> {
    thinking: &'a Thinking,
    id: u64,
}

impl Thinking {
    pub(crate) fn begin(&self, key: Option<Key>) -> ThoughtGuard<'_> {
        let id = self.n_steps.fetch_add(1, Relaxed);
        self.thoughts.lock().push(Thought { id, key, subject: None, since: Instant::now() });
        ThoughtGuard { thinking: self, id }
    }

    pub(crate) fn n_steps(&self) -> u64 {
        self.n_steps.load(Relaxed)
    }

    /// The one it began last, if that has not ended.
    pub(crate) fn current(&self) -> Option<Thought> {
        self.thoughts.lock().last().cloned()
    }

    /// What a thought that has not ended is said to be about.
    pub(crate) fn subject(&self, id: u64) -> Option<(Resource, Key)> {
        self.thoughts.lock().iter().find(|it| it.id == id)?.subject.clone()
    }

    /// How long the longest has taken so far, and all of them together.
    pub(crate) fn lengths(&self) -> (Duration, Duration) {
        let thoughts = self.thoughts.lock();
        let lengths = thoughts.iter().map(|it| it.since.elapsed());
        lengths.fold((Duration::ZERO, Duration::ZERO), |(longest, sum), it| (longest.max(it), sum.saturating_add(it)))
    }
}

impl ThoughtGuard<'_> {
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Says what the thought is about, or is about now.
    pub(crate) fn about(&self, key: Option<Key>, subject: Option<(Resource, Key)>) {
        self.thinking.n_steps.fetch_add(1, Relaxed);
        if let Some(thought) = self.thinking.thoughts.lock().iter_mut().find(|it| it.id == self.id) {
            (thought.key, thought.subject) = (key, subject);
        }
    }
}

impl Drop for ThoughtGuard<'_> {
    fn drop(&mut self) {
        self.thinking.n_steps.fetch_add(1, Relaxed);
        self.thinking.thoughts.lock().retain(|it| it.id != self.id);
    }
}
