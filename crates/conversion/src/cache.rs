//! How much of what was converted is kept beside the stored objects, and for how long.

use std::{
    collections::VecDeque,
    sync::{Arc, Weak},
    time::Duration,
};

use corten_cacher::{
    sweeps::Sweeps,
    watch_cache::{Slot, Stored},
};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Of all custom resources together. What is beyond is converted again for who asks.
const BYTES_MAX: usize = 128 << 20;
/// Nobody tells that a webhook answers otherwise from now on: after this long it is asked again. Upstream asks it for each read
/// that its watch cache does not answer.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// Of an entry, beside the text of the object.
const OVERHEAD: usize = 512;

#[derive(Default)]
pub(crate) struct ConversionCache(Mutex<Ring<Stored>>);

/// What is kept beside objects, the oldest first.
struct Ring<O> {
    entries: VecDeque<Entry<O>>,
    bytes: usize,
    sweeps: Sweeps,
}

struct Entry<O> {
    stored: Weak<O>,
    version: String,
    bytes: usize,
    since: Instant,
}

impl ConversionCache {
    pub(crate) fn keep(&self, stored: &Arc<Stored>, version: &str, converted: Arc<Stored>) {
        let bytes = converted.value().len() + OVERHEAD;
        // Of all who waited for the same answer the first keeps it.
        if let Some(Slot::Done(_)) = stored.converted.set(version, Slot::Done(converted)) {
            return;
        }
        let entry = Entry { stored: Arc::downgrade(stored), version: version.to_owned(), bytes, since: Instant::now() };
        let gone = self.0.lock().add(entry, BYTES_MAX);
        forget(gone);
    }

    /// Lets go of what is to be asked again.
    pub(crate) fn forget_old(&self) {
        let gone = self.0.lock().older_than(KEPT_FOR, Instant::now());
        forget(gone);
    }
}

fn forget(gone: Vec<Entry<Stored>>) {
    for Entry { stored, version, .. } in gone {
        if let Some(stored) = stored.upgrade() {
            stored.converted.forget(&version);
        }
    }
}

impl<O> Default for Ring<O> {
    fn default() -> Self {
        Self { entries: VecDeque::new(), bytes: 0, sweeps: Sweeps::default() }
    }
}

impl<O> Ring<O> {
    /// Gives what is too much, the oldest of it.
    fn add(&mut self, entry: Entry<O>, bytes_max: usize) -> Vec<Entry<O>> {
        self.bytes += entry.bytes;
        self.entries.push_back(entry);
        if self.sweeps.is_due(self.entries.len()) {
            self.sweep();
        }
        let mut gone = Vec::new();
        while self.bytes > bytes_max
            && let Some(oldest) = self.pop()
        {
            gone.push(oldest);
        }
        gone
    }

    fn older_than(&mut self, age: Duration, now: Instant) -> Vec<Entry<O>> {
        let mut gone = Vec::new();
        while self.entries.front().is_some_and(|it| now - it.since > age)
            && let Some(oldest) = self.pop()
        {
            gone.push(oldest);
        }
        gone
    }

    fn pop(&mut self) -> Option<Entry<O>> {
        let oldest = self.entries.pop_front()?;
        self.bytes -= oldest.bytes;
        Some(oldest)
    }

    /// What went with its stored object is no longer there, whatever the ring says.
    fn sweep(&mut self) {
        self.entries.retain(|it| it.stored.strong_count() > 0);
        self.bytes = self.entries.iter().map(|it| it.bytes).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(stored: &Arc<usize>) -> Entry<usize> {
        Entry { stored: Arc::downgrade(stored), version: "v2".into(), bytes: 10, since: Instant::now() }
    }

    #[test]
    fn what_went_with_its_object_takes_no_room_wherever_it_stands() {
        let (mut ring, oldest) = (Ring::default(), Arc::new(0));
        assert!(ring.add(entry(&oldest), 100).is_empty());
        for n in 1..1000 {
            // It is gone before the next one comes, and the oldest is not.
            let gone = ring.add(entry(&Arc::new(n)), 100);
            assert!(gone.is_empty(), "what is there is not pushed out by what is not");
            assert!(ring.entries.len() <= 4, "{}", ring.entries.len());
        }
        assert!(ring.entries[0].stored.ptr_eq(&Arc::downgrade(&oldest)));
    }

    #[test]
    fn what_is_old_goes() {
        let (mut ring, stored, now) = (Ring::default(), Arc::new(0), Instant::now());
        for seconds in [61, 60, 0] {
            ring.add(Entry { since: now - Duration::from_secs(seconds), ..entry(&stored) }, 100);
        }
        assert_eq!(ring.older_than(Duration::from_secs(60), now).len(), 1);
        assert_eq!((ring.entries.len(), ring.bytes), (2, 20));
    }

    #[test]
    fn of_what_is_there_the_oldest_go() {
        let (mut ring, all) = (Ring::default(), (0..20).map(Arc::new).collect::<Vec<_>>());
        let gone: Vec<Entry<usize>> = all.iter().flat_map(|it| ring.add(entry(it), 100)).collect();
        let numbers: Vec<usize> = gone.iter().filter_map(|it| it.stored.upgrade()).map(|it| *it).collect();
        assert_eq!(numbers, (0..10).collect::<Vec<_>>());
        assert_eq!((ring.entries.len(), ring.bytes), (10, 100));
    }
}
