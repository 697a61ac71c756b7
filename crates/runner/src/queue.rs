//! Which key is looked at next: each once however often it is woken, in the order of their waking, later where it failed.
//!
//! ```text
//! wake --> ready --> pop (busy) --> done
//!            ^          |             |
//!            +--- at its time <-------+--- woken meanwhile: ready again
//! ```

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use corten_meta::Key;
use tokio::time::Instant;

use crate::{durations::Durations, thinking::Thinking};

const BACKOFF_FIRST: Duration = Duration::from_millis(5);
/// Upstream waits up to 1000 s; a cluster that has been repaired should not look broken for that long.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// How busy a queue is, for whoever measures.
#[derive(Debug, Default)]
pub struct QueueCounts {
    depth: AtomicU64,
    adds: AtomicU64,
    retries: AtomicU64,
    /// How long keys wait to be looked at.
    pub queued: Durations,
    /// How long it takes from a look at a key to the end of what it brought about.
    pub worked: Durations,
    pub(crate) thinking: Thinking,
}

impl QueueCounts {
    /// Keys that wait to be looked at.
    pub fn depth(&self) -> u64 {
        self.depth.load(Relaxed)
    }

    /// Keys that were ever queued.
    pub fn adds(&self) -> u64 {
        self.adds.load(Relaxed)
    }

    /// Failures after which a key was queued again.
    pub fn retries(&self) -> u64 {
        self.retries.load(Relaxed)
    }

    /// How long the loop has thought about what it thinks about longest, and about all it has not come to a plan for.
    pub fn thinking(&self) -> (Duration, Duration) {
        self.thinking.lengths()
    }

    /// For a loop with a queue of its own kind.
    pub(crate) fn count_adds(&self, n: usize) {
        self.adds.fetch_add(u64::try_from(n).unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn count_retry(&self) {
        self.retries.fetch_add(1, Relaxed);
    }
}

#[derive(Default)]
pub(crate) struct Queue {
    counts: Arc<QueueCounts>,
    /// With the time since when they wait.
    ready: VecDeque<(Key, Instant)>,
    queued: BTreeSet<Key>,
    /// Looked at now, or parked until the caches hold what it wrote.
    busy: BTreeMap<Key, Busy>,
    failures: BTreeMap<Key, u32>,
    alarms: BTreeSet<(Instant, Key)>,
    alarm_of: BTreeMap<Key, Instant>,
}

struct Busy {
    since: Instant,
    is_woken: bool,
}

impl Queue {
    pub(crate) fn counted(counts: Arc<QueueCounts>) -> Self {
        Self { counts, ..Self::default() }
    }

    pub(crate) fn wake(&mut self, key: Key) {
        if let Some(busy) = self.busy.get_mut(&key) {
            busy.is_woken = true;
        } else if self.queued.insert(key.clone()) {
            self.ready.push_back((key, Instant::now()));
            self.counts.adds.fetch_add(1, Relaxed);
            self.counts.depth.store(self.ready.len() as u64, Relaxed);
        }
    }

    /// Wakes the key at this time; it has one alarm, the earliest that was set since it was last looked at.
    pub(crate) fn wake_at(&mut self, key: Key, at: Instant) {
        match self.alarm_of.get(&key) {
            Some(set) if *set <= at => return,
            Some(set) => {
                self.alarms.remove(&(*set, key.clone()));
            }
            None => {}
        }
        self.alarm_of.insert(key.clone(), at);
        self.alarms.insert((at, key));
    }

    /// The keys that are to be looked at, in their order.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Key> {
        self.ready.iter().map(|it| &it.0)
    }

    /// The next key, which is then busy until it is [`Queue::done`].
    pub(crate) fn pop(&mut self) -> Option<Key> {
        let (key, since) = self.ready.pop_front()?;
        self.counts.queued.count(since.elapsed());
        self.counts.depth.store(self.ready.len() as u64, Relaxed);
        self.queued.remove(&key);
        self.busy.insert(key.clone(), Busy { since: Instant::now(), is_woken: false });
        if let Some(at) = self.alarm_of.remove(&key) {
            self.alarms.remove(&(at, key.clone()));
        }
        Some(key)
    }

    /// What it was looked at for has been done, or has failed.
    pub(crate) fn worked(&self, key: &Key) {
        if self.busy.contains_key(key) {
            self.counts.worked.count(self.busy_for(key));
        }
    }

    /// How long it has been looked at, and acted on, since it was its turn.
    pub(crate) fn busy_for(&self, key: &Key) -> Duration {
        self.busy.get(key).map_or(Duration::ZERO, |it| it.since.elapsed())
    }

    pub(crate) fn done(&mut self, key: Key) {
        if self.busy.remove(&key).is_some_and(|it| it.is_woken) {
            self.wake(key);
        }
    }

    /// Counts a failure and says how long to leave the key alone for.
    pub(crate) fn failed(&mut self, key: &Key) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        let delay = BACKOFF_FIRST.saturating_mul(1 << (*failures).min(20)).min(BACKOFF_MAX);
        *failures = failures.saturating_add(1);
        self.counts.retries.fetch_add(1, Relaxed);
        delay
    }

    pub(crate) fn succeeded(&mut self, key: &Key) {
        self.failures.remove(key);
    }

    /// How often the key has failed in a row.
    pub(crate) fn failures(&self, key: &Key) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }

    pub(crate) fn next_alarm(&self) -> Option<Instant> {
        self.alarms.first().map(|it| it.0)
    }

    /// Wakes every key whose time has come.
    pub(crate) fn ring(&mut self, now: Instant) {
        while self.next_alarm().is_some_and(|it| it <= now) {
            let Some((_, key)) = self.alarms.pop_first() else { return };
            self.alarm_of.remove(&key);
            self.wake(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key::cluster(name)
    }

    #[test]
    fn what_it_does_is_counted() {
        let counts = Arc::new(QueueCounts::default());
        let mut queue = Queue::counted(counts.clone());
        queue.wake(key("a"));
        queue.wake(key("a"));
        queue.wake(key("b"));
        assert_eq!((counts.depth(), counts.adds(), counts.retries()), (2, 2, 0));
        let first = queue.pop().expect("one is ready");
        queue.worked(&first);
        queue.worked(&key("b"));
        assert_eq!((counts.queued.counted().n, counts.worked.counted().n), (1, 1));
        queue.failed(&first);
        assert_eq!((counts.depth(), counts.adds(), counts.retries()), (1, 2, 1));
    }

    #[test]
    fn each_key_once_in_the_order_of_waking() {
        let mut queue = Queue::default();
        for name in ["b", "a", "b", "c", "a"] {
            queue.wake(key(name));
        }
        let order: Vec<String> = std::iter::from_fn(|| queue.pop()).map(|it| it.name).collect();
        assert_eq!(order, ["b", "a", "c"]);
        queue.wake(key("a"));
        assert_eq!(queue.pop(), None, "a is busy");
        queue.done(key("a"));
        queue.done(key("b"));
        assert_eq!(queue.pop(), Some(key("a")), "woken while it was busy");
        assert_eq!(queue.pop(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_back_off_up_to_a_bound_until_success() {
        let mut queue = Queue::default();
        let delays: Vec<u128> = (0..16).map(|_| queue.failed(&key("a")).as_millis()).collect();
        assert_eq!(delays[..5], [5, 10, 20, 40, 80]);
        assert_eq!(delays[15], 30_000);
        queue.succeeded(&key("a"));
        assert_eq!(queue.failed(&key("a")).as_millis(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn the_earliest_alarm_rings_once() {
        let (mut queue, now) = (Queue::default(), Instant::now());
        let after = |seconds| now + Duration::from_secs(seconds);
        queue.wake_at(key("a"), after(5));
        queue.wake_at(key("a"), after(9));
        queue.wake_at(key("a"), after(3));
        queue.wake_at(key("b"), after(4));
        assert_eq!(queue.next_alarm(), Some(after(3)));
        queue.ring(after(2));
        assert_eq!(queue.pop(), None);
        queue.ring(after(5));
        assert_eq!((queue.pop(), queue.pop(), queue.pop()), (Some(key("a")), Some(key("b")), None));
        assert_eq!(queue.next_alarm(), None);
    }
}
