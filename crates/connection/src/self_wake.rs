//! A connection that wakes itself goes on in the same turn.
//!
//! hyper hands a request's body from one half of a connection to the other through a channel, so the task of the
//! connection is woken by itself while it moves. Left alone the runtime puts such a task at the end of its queue, wakes
//! another thread for it, and the request goes on there, with none of its memory in that core's cache.
//! A task that is polled though nothing has woken its future does not move it: it only keeps awake.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::task::AtomicWaker;

use crate::busy_poll::BusyPoll;

/// After so many moves of one turn others are let in.
const MOVES_MAX: usize = 16;

/// Moves on as long as it wakes itself.
pub struct InOneTurn<F> {
    future: Pin<Box<F>>,
    turn: Arc<SelfWaker>,
    busy_poll: BusyPoll,
}

impl<F> InOneTurn<F> {
    pub fn new(future: F, busy_poll: BusyPoll) -> Self {
        // The first poll moves it.
        let turn = Arc::new(SelfWaker { is_woken: AtomicBool::new(true), ..SelfWaker::default() });
        Self { future: Box::pin(future), turn, busy_poll }
    }
}

impl<F: Future> Future for InOneTurn<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { future, turn, busy_poll } = &mut *self;
        if turn.is_due(cx)
            && let Poll::Ready(done) = turn.take(cx, MOVES_MAX, |cx| future.as_mut().poll(cx))
        {
            return Poll::Ready(done);
        }
        busy_poll.keep(cx);
        Poll::Pending
    }
}

/// The waker: while the future moves, its own turn takes care of what wakes it.
#[derive(Default)]
pub struct SelfWaker {
    is_moving: AtomicBool,
    is_woken: AtomicBool,
    task: AtomicWaker,
}

impl Wake for SelfWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::SeqCst);
        // Whoever has seen it move has left word before it looks for that.
        if !self.is_moving.load(Ordering::SeqCst) {
            self.task.wake();
        }
    }
}

impl SelfWaker {
    /// Has anything woken it since its last move?
    fn is_due(&self, cx: &Context<'_>) -> bool {
        // First who is to be woken, then the look: the one before may have been used up by a wake that came late.
        self.task.register(cx.waker());
        self.is_woken.load(Ordering::SeqCst)
    }

    /// Moves until it is done, or nothing has woken it meanwhile, or it has moved `n_max` times: then its task is woken.
    pub fn take<T>(
        self: &Arc<Self>,
        cx: &Context<'_>,
        n_max: usize,
        mut move_on: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.task.register(cx.waker());
        let waker = Waker::from(self.clone());
        for _ in 0..n_max {
            self.is_moving.store(true, Ordering::SeqCst);
            self.is_woken.swap(false, Ordering::SeqCst);
            let moved = move_on(&mut Context::from_waker(&waker));
            self.is_moving.store(false, Ordering::SeqCst);
            if moved.is_ready() || !self.is_woken.load(Ordering::SeqCst) {
                return moved;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::{future::poll_fn, sync::atomic::AtomicUsize};

    use super::*;
    use crate::busy_poll::{Others, RequestPace};

    fn busy_poll() -> BusyPoll {
        BusyPoll::new(RequestPace::new(Others::new()))
    }

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Polls something that wakes itself `n` times; how often it moved, how often its task was woken, whether it is done.
    fn polled(n: usize) -> (usize, usize, bool) {
        let mut moves = 0;
        let count = Arc::new(Count::default());
        let done = {
            let waker = Waker::from(count.clone());
            let mut future = InOneTurn::new(
                poll_fn(|cx| {
                    moves += 1;
                    if moves > n {
                        return Poll::Ready(());
                    }
                    cx.waker().wake_by_ref();
                    Poll::Pending
                }),
                busy_poll(),
            );
            Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_ready()
        };
        (moves, count.0.load(Ordering::SeqCst), done)
    }

    #[test]
    fn who_wakes_itself_moves_on_at_once_but_not_for_ever() {
        assert_eq!(polled(0), (1, 0, true));
        assert_eq!(polled(3), (4, 0, true));
        assert_eq!(polled(1000), (MOVES_MAX, 1, false));
    }

    #[test]
    fn who_is_woken_between_turns_has_its_task_woken() {
        let count = Arc::new(Count::default());
        let waker = Waker::from(count.clone());
        let mut inner = None;
        let mut future = InOneTurn::new(
            poll_fn(|cx| {
                inner = Some(cx.waker().clone());
                Poll::<()>::Pending
            }),
            busy_poll(),
        );
        assert!(Pin::new(&mut future).poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(count.0.load(Ordering::SeqCst), 0);
        drop(future);
        inner.expect("it moved").wake();
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn nothing_that_happens_on_another_thread_is_missed() {
        // Each answer asks for the next: one that is missed would end the talk. The one who answers stays awake meanwhile.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let (ask, mut asked) = tokio::sync::mpsc::channel::<u32>(1);
            let (answer, mut answered) = tokio::sync::mpsc::channel::<u32>(1);
            let pace = RequestPace::new(Others::new());
            let busy_poll = BusyPoll::new(pace.clone());
            let answers = async move {
                while let Some(n) = asked.recv().await {
                    drop(pace.begin());
                    answer.send(n + 1).await.expect("somebody listens");
                }
            };
            let one = tokio::spawn(InOneTurn::new(answers, busy_poll));
            let talk = async {
                let mut n = 0;
                while n < 100_000 {
                    ask.send(n).await.expect("somebody listens");
                    n = answered.recv().await.expect("an answer");
                }
            };
            tokio::time::timeout(std::time::Duration::from_secs(60), talk).await.expect("an answer to each");
            drop(ask);
            one.await.expect("it ends");
        });
    }
}
