//! A client that asks again as soon as it is answered is awaited awake.
//!
//! A core that has gone to sleep needs tens of microseconds to wake: for a client that sends one request after the other
//! that is as long as a read takes. So after an answer to one whose last pause was short, its connection looks for the next
//! request a moment longer before it sleeps. One connection of all does so, and only while no request is worked on: where
//! there is other work there is no sleep to be saved.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::Context,
    thread,
    time::Duration,
};

use tokio::time::Instant;

/// A pause that is longer is slept through.
const SHORT: Duration = Duration::from_micros(100);

/// What the connections of one listener know of each other.
pub struct Others {
    n_in_work: AtomicUsize,
    /// Somebody is awake, or nobody may be.
    is_taken: AtomicBool,
}

impl Others {
    /// On a single core nobody stays awake: who is awaited could not run.
    pub fn new() -> Arc<Self> {
        Arc::new(Self::on(thread::available_parallelism().map_or(1, usize::from)))
    }

    /// Beside what is begun now nobody stays awake.
    pub(crate) fn begin_work(&self) {
        self.n_in_work.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn end_work(&self) {
        self.n_in_work.fetch_sub(1, Ordering::Relaxed);
    }

    fn on(n_cores: usize) -> Self {
        Self { n_in_work: AtomicUsize::new(0), is_taken: AtomicBool::new(n_cores < 2) }
    }
}

/// How fast one connection asks.
pub struct RequestPace {
    others: Arc<Others>,
    began: Instant,
    /// When the last answer was made, in nanoseconds after it began.
    answered_at: AtomicU64,
    is_fast: AtomicBool,
}

/// A request that is worked on, until this is dropped.
pub struct InWork(Arc<RequestPace>);

impl RequestPace {
    pub fn new(others: Arc<Others>) -> Arc<Self> {
        let (answered_at, is_fast) = (AtomicU64::new(0), AtomicBool::new(false));
        Arc::new(Self { others, began: Instant::now(), answered_at, is_fast })
    }

    pub fn begin(self: &Arc<Self>) -> InWork {
        self.is_fast.store(self.pause() < SHORT, Ordering::Relaxed);
        self.others.begin_work();
        InWork(self.clone())
    }

    fn pause(&self) -> Duration {
        self.began.elapsed().saturating_sub(Duration::from_nanos(self.answered_at.load(Ordering::Relaxed)))
    }

    fn expects_more(&self) -> bool {
        self.is_fast.load(Ordering::Relaxed)
            && self.others.n_in_work.load(Ordering::Relaxed) == 0
            && self.pause() < SHORT
    }
}

impl Drop for InWork {
    fn drop(&mut self) {
        let RequestPace { began, answered_at, others, .. } = &*self.0;
        answered_at.store(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        others.end_work();
    }
}

/// The staying awake of one connection.
pub struct BusyPoll {
    pace: Arc<RequestPace>,
    is_awake: bool,
}

impl BusyPoll {
    pub fn new(pace: Arc<RequestPace>) -> Self {
        Self { pace, is_awake: false }
    }

    /// While more is expected, has the task polled again, after all others and a look at what has arrived.
    pub fn keep(&mut self, cx: &mut Context<'_>) {
        if !self.pace.expects_more() {
            return self.end();
        }
        self.is_awake = self.is_awake || !self.pace.others.is_taken.swap(true, Ordering::Relaxed);
        if self.is_awake {
            let _pending = pin!(tokio::task::yield_now()).poll(cx);
        }
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.is_awake) {
            self.pace.others.is_taken.store(false, Ordering::Relaxed);
        }
    }
}

impl Drop for BusyPoll {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    struct One {
        pace: Arc<RequestPace>,
        busy_poll: BusyPoll,
    }

    impl One {
        fn new(others: &Arc<Others>) -> Self {
            let pace = RequestPace::new(others.clone());
            Self { busy_poll: BusyPoll::new(pace.clone()), pace }
        }

        /// A request after a pause, answered at once.
        async fn ask(&mut self, pause_micros: u64) {
            tokio::time::advance(Duration::from_micros(pause_micros)).await;
            drop(self.pace.begin());
        }

        fn is_awake(&mut self) -> bool {
            self.busy_poll.keep(&mut Context::from_waker(Waker::noop()));
            self.busy_poll.is_awake
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_again_at_once_is_awaited_for_a_moment() {
        let others = Arc::new(Others::on(2));
        for (pauses, expected) in [
            (&[][..], false),
            (&[5000], false),
            (&[5000, 60], true),
            (&[5000, 60, 140], false),
            (&[5000, 60, 140, 70], true),
        ] {
            let mut one = One::new(&others);
            for pause in pauses {
                one.ask(*pause).await;
            }
            assert_eq!(one.is_awake(), expected, "{pauses:?}");
            tokio::time::advance(SHORT).await;
            assert!(!one.is_awake(), "{pauses:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_stays_awake_and_nobody_while_there_is_work() {
        let others = Arc::new(Others::on(2));
        let (mut one, mut other) = (One::new(&others), One::new(&others));
        for pause in [5000, 20] {
            one.ask(pause).await;
            other.ask(0).await;
        }
        assert_eq!([one.is_awake(), other.is_awake(), one.is_awake()], [true, false, true]);
        drop(one);
        assert!(other.is_awake());
        let third = RequestPace::new(others.clone());
        let in_work = third.begin();
        assert!(!other.is_awake());
        drop(in_work);
        assert!(other.is_awake());
    }

    #[tokio::test(start_paused = true)]
    async fn on_one_core_nobody_stays_awake() {
        let mut one = One::new(&Arc::new(Others::on(1)));
        one.ask(5000).await;
        one.ask(20).await;
        assert!(!one.is_awake());
    }
}
