//! Where a task runs: beside all others, or on the lane of wide answers, and back.
//!
//! Whether an answer is wide is known only when its request has been read, in the midst of the task that reads it. So the task moves:
//! the runtime it leaves keeps its owner, which waits for it, and the other one polls it. What it reads from and writes to goes with it.
//! A connection that is asked for one list after the other stays where it is until it is asked for something narrow.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http_body::{Body, Frame, SizeHint};
use tokio::{runtime::Handle, task::JoinSet};

use crate::{busy_poll::Others, unattended::joined};

/// To read, check and write so much takes milliseconds, and what is larger up to a second.
const LIGHT_BYTES_MAX: u64 = 64 * 1024;

/// Where one task shall run, and where it does.
pub struct Placement {
    wide_answers: Arc<WideAnswers>,
    /// What it works on now is wide.
    is_wide: AtomicBool,
    /// Wide answers that it sends.
    n_sent: AtomicUsize,
    is_on_wide_lane: AtomicBool,
    /// It has come there for what it does now, and goes on there.
    stays: AtomicBool,
    waits: AtomicWaker,
}

/// The wide answers that are made and sent. As long as they leave a core to all others they are best where their connections are: the way
/// to another thread costs each wait for its reader some time.
struct WideAnswers {
    n: AtomicUsize,
    n_max: usize,
    /// Who would stay awake while one is sent would take the core that is left.
    others: Arc<Others>,
}

impl Placement {
    fn new(wide_answers: Arc<WideAnswers>) -> Self {
        let no = || AtomicBool::new(false);
        let (is_wide, is_on_wide_lane, stays) = (no(), no(), no());
        Self { wide_answers, is_wide, n_sent: AtomicUsize::new(0), is_on_wide_lane, stays, waits: AtomicWaker::new() }
    }

    /// What the task works on from now on is wide, or not. It moves before it is polled next but one.
    pub fn set_wide(&self, is_wide: bool) {
        self.stays.store(false, SeqCst);
        self.is_wide.store(is_wide, SeqCst);
    }

    fn wants_wide_lane(&self) -> bool {
        let is_wide = self.is_wide.load(SeqCst) || self.n_sent.load(SeqCst) > 0;
        is_wide && (self.stays.load(SeqCst) || self.wide_answers.n.load(SeqCst) > self.wide_answers.n_max)
    }

    fn is_in_place(&self) -> bool {
        self.is_on_wide_lane.load(SeqCst) == self.wants_wide_lane()
    }

    fn arrive(&self, is_on_wide_lane: bool) {
        self.is_on_wide_lane.store(is_on_wide_lane, SeqCst);
        self.stays.store(is_on_wide_lane, SeqCst);
        self.waits.wake();
    }
}

/// Where a request is worked on and where its answer is sent: the same task, or one for each.
#[derive(Clone)]
pub struct RequestPlacement {
    work: Arc<Placement>,
    connection: Arc<Placement>,
}

impl RequestPlacement {
    /// Of a request that the task of its connection works on.
    pub fn of_connection(connection: Arc<Placement>) -> Self {
        Self { work: connection.clone(), connection }
    }

    /// Of one that has a task of its own.
    pub fn of_stream(work: Arc<Placement>, connection: Arc<Placement>) -> Self {
        Self { work, connection }
    }

    /// Goes on where such work is done. To be awaited in the task that was placed by this, and in no other.
    pub async fn take_place(&self, is_wide: bool) -> Option<WideAnswer> {
        let answer = is_wide.then(|| WideAnswer::begin(self.connection.clone()));
        self.work.set_wide(is_wide);
        poll_fn(|cx| {
            if self.work.is_in_place() {
                return Poll::Ready(());
            }
            self.work.waits.register(cx.waker());
            Poll::Pending
        })
        .await;
        answer
    }
}

/// It is counted from the moment it is worked on until it is sent.
pub struct WideAnswer(Arc<Placement>);

impl WideAnswer {
    fn begin(connection: Arc<Placement>) -> Self {
        connection.wide_answers.n.fetch_add(1, SeqCst);
        connection.wide_answers.others.begin_work();
        connection.n_sent.fetch_add(1, SeqCst);
        Self(connection)
    }

    pub fn with<B>(self, body: B) -> WideBody<B> {
        WideBody { body, _counted: self }
    }
}

impl Drop for WideAnswer {
    fn drop(&mut self) {
        self.0.n_sent.fetch_sub(1, SeqCst);
        self.0.wide_answers.n.fetch_sub(1, SeqCst);
        self.0.wide_answers.others.end_work();
    }
}

/// The body of a wide answer.
pub struct WideBody<B> {
    body: B,
    _counted: WideAnswer,
}

impl<B: Body<Data = Bytes> + Unpin> Body for WideBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Is a request with this body much work? One that does not say how long it is may be.
fn is_heavy(body: &impl Body) -> bool {
    body.size_hint().upper().is_none_or(|it| it > LIGHT_BYTES_MAX)
}

/// The runtimes that a task may run on.
pub struct Lanes {
    /// Where connections are accepted.
    narrow: Handle,
    wide: Handle,
    large_bodies: Handle,
    wide_answers: Arc<WideAnswers>,
}

impl Lanes {
    /// Of connections that come here. Beside `n_wide_max` wide answers there is a core for all others.
    pub(crate) fn new(wide: Handle, large_bodies: Handle, n_wide_max: usize, others: Arc<Others>) -> Self {
        let wide_answers = Arc::new(WideAnswers { n: AtomicUsize::new(0), n_max: n_wide_max, others });
        Self { narrow: Handle::current(), wide, large_bodies, wide_answers }
    }

    /// Of a task that is begun.
    pub fn placement(&self) -> Arc<Placement> {
        Arc::new(Placement::new(self.wide_answers.clone()))
    }

    /// Runs a task where its placement wants it. It begins here, which is the narrow lane, and ends when this is dropped.
    pub async fn run<F>(&self, mut task: F, placement: Arc<Placement>) -> F::Output
    where
        F: Future + Unpin + Send + 'static,
        F::Output: Send + 'static,
    {
        loop {
            task = match Stay::new(task, &placement, false).await {
                Left::Done(output) => return output,
                Left::Moves(task) => task,
            };
            let mut there = JoinSet::new();
            there.spawn_on(Stay::new(task, &placement, true), &self.wide);
            task = match joined(&mut there).await {
                Left::Done(output) => return output,
                Left::Moves(task) => task,
            };
        }
    }

    /// Where a request with this body is answered: what is much work is done where no other request waits behind it.
    pub fn place_of(&self, body: &impl Body) -> &Handle {
        self.other_place_of(body).unwrap_or(&self.narrow)
    }

    /// The same, where it is not among all others.
    pub fn other_place_of(&self, body: &impl Body) -> Option<&Handle> {
        is_heavy(body).then_some(&self.large_bodies)
    }

    /// Works on a request beside its connection; dropping this ends the work.
    pub async fn aside<T: Send + 'static>(
        self: Arc<Self>,
        work: impl Future<Output = T> + Send + 'static,
        placement: Arc<Placement>,
    ) -> T {
        let (mut task, narrow) = (JoinSet::new(), self.narrow.clone());
        task.spawn_on(async move { self.run(Box::pin(work), placement).await }, &narrow);
        joined(&mut task).await
    }
}

/// A task while it is on one lane.
struct Stay<F> {
    task: Option<F>,
    placement: Arc<Placement>,
    is_on_wide_lane: bool,
    has_arrived: bool,
}

enum Left<F: Future> {
    Done(F::Output),
    Moves(F),
}

impl<F> Stay<F> {
    fn new(task: F, placement: &Arc<Placement>, is_on_wide_lane: bool) -> Self {
        Self { task: Some(task), placement: placement.clone(), is_on_wide_lane, has_arrived: false }
    }
}

impl<F: Future + Unpin> Future for Stay<F> {
    type Output = Left<F>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Left<F>> {
        let this = &mut *self;
        if !std::mem::replace(&mut this.has_arrived, true) {
            this.placement.arrive(this.is_on_wide_lane);
        }
        let task = this.task.as_mut().expect("it is polled until it has left");
        if let Poll::Ready(output) = Pin::new(task).poll(cx) {
            return Poll::Ready(Left::Done(output));
        }
        if this.placement.is_in_place() {
            // It may have become so since the task was told to wait: another answer has been sent meanwhile.
            this.placement.waits.wake();
            return Poll::Pending;
        }
        Poll::Ready(Left::Moves(this.task.take().expect("it was polled")))
    }
}

#[cfg(test)]
mod tests {
    use std::{io, thread};

    use http_body_util::{BodyExt, Empty, Full, StreamBody};
    use tokio::{
        runtime::{Builder, Runtime},
        sync::oneshot,
    };

    use super::*;

    fn thread_name() -> String {
        thread::current().name().unwrap_or_default().to_owned()
    }

    /// Is this thread one of the lane's?
    fn is_here() -> bool {
        thread_name() == "wide answers"
    }

    /// Runs tasks until it is dropped.
    struct WideLane(Option<Runtime>);

    impl Drop for WideLane {
        fn drop(&mut self) {
            self.0.take().expect("it is dropped once").shutdown_background();
        }
    }

    fn lanes(n_wide_max: usize) -> (WideLane, Arc<Lanes>) {
        let wide = Builder::new_multi_thread().worker_threads(1).thread_name("wide answers").build().expect("a thread");
        let lanes = Lanes::new(wide.handle().clone(), Handle::current(), n_wide_max, Others::new());
        (WideLane(Some(wide)), Arc::new(lanes))
    }

    #[test]
    fn what_is_large_or_says_nothing_is_heavy() {
        let of = |n: usize| Full::new(Bytes::from(vec![b' '; n]));
        assert!(!is_heavy(&Empty::<Bytes>::new()) && !is_heavy(&of(64 * 1024)));
        assert!(is_heavy(&of(64 * 1024 + 1)));
        let endless = futures_util::stream::pending::<Result<http_body::Frame<Bytes>, io::Error>>();
        assert!(is_heavy(&StreamBody::new(endless).boxed_unsync()));
    }

    #[tokio::test]
    async fn a_task_moves_in_its_midst_and_back() {
        let (_wide, lanes) = lanes(0);
        let placement = lanes.placement();
        let request = RequestPlacement::of_connection(placement.clone());
        let task = Box::pin(async move {
            let mut seen = Vec::new();
            for is_wide in [false, true, true, false, true] {
                let _answer = request.take_place(is_wide).await;
                seen.push(is_here());
            }
            seen
        });
        assert_eq!(lanes.run(task, placement).await, [false, true, true, false, true]);
    }

    #[tokio::test]
    async fn one_that_leaves_a_core_to_others_stays_where_it_is() {
        let (_wide, lanes) = lanes(1);
        let (placement, other) = (lanes.placement(), lanes.placement());
        let request = RequestPlacement::of_connection(placement.clone());
        let task = Box::pin(async move {
            let mut seen = Vec::new();
            let first = request.take_place(true).await;
            seen.push(is_here());
            let beside = WideAnswer::begin(other);
            tokio::task::yield_now().await;
            seen.push(is_here());
            drop(beside);
            // What it has begun there goes on there, and what it begins now is alone.
            tokio::task::yield_now().await;
            seen.push(is_here());
            drop(first);
            let _second = request.take_place(true).await;
            seen.push(is_here());
            seen
        });
        assert_eq!(lanes.run(task, placement).await, [false, true, true, false]);
    }

    #[tokio::test]
    async fn one_that_was_to_move_goes_on_where_it_is_when_it_need_not_any_more() {
        let (_wide, lanes) = lanes(1);
        let (placement, mut beside) = (lanes.placement(), Some(WideAnswer::begin(lanes.placement())));
        let request = RequestPlacement::of_connection(placement.clone());
        let task = Box::pin(async move {
            let mut taking = Box::pin(request.take_place(true));
            // The other one is sent after this one was told to wait.
            let told = poll_fn(|cx| {
                let told = taking.as_mut().poll(cx);
                beside.take();
                told
            });
            let _answer = told.await;
            is_here()
        });
        assert!(!lanes.run(task, placement).await);
    }

    #[tokio::test]
    async fn a_connection_is_there_while_it_sends_what_is_wide() {
        let (_wide, lanes) = lanes(0);
        let connection = lanes.placement();
        let answer = |text: &'static str| WideAnswer::begin(connection.clone()).with(Full::new(Bytes::from(text)));
        let (first, second) = (answer("a"), answer("b"));
        let task = Box::pin(async move {
            let mut seen = Vec::new();
            tokio::task::yield_now().await;
            seen.push(is_here());
            assert_eq!(first.collect().await.expect("it has no errors").to_bytes(), "a");
            tokio::task::yield_now().await;
            seen.push(is_here());
            drop(second);
            tokio::task::yield_now().await;
            seen.push(is_here());
            seen
        });
        assert_eq!(lanes.run(task, connection.clone()).await, [true, true, false]);
    }

    #[tokio::test]
    async fn what_is_dropped_ends_on_the_lane_too() {
        let (_wide, lanes) = lanes(0);
        let placement = lanes.placement();
        let request = RequestPlacement::of_connection(placement.clone());
        let (begun, has_begun) = oneshot::channel();
        let (kept, is_dropped) = oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let work = Box::pin(async move {
                let _kept = kept;
                let _answer = request.take_place(true).await;
                begun.send(is_here()).expect("the test waits");
                std::future::pending::<()>().await;
            });
            lanes.run(work, placement).await;
        });
        assert_eq!(has_begun.await, Ok(true));
        task.abort();
        is_dropped.await.expect_err("the work was dropped");
    }

    #[tokio::test]
    async fn a_panic_on_the_lane_comes_back() {
        let (_wide, lanes) = lanes(0);
        let placement = lanes.placement();
        let request = RequestPlacement::of_stream(placement.clone(), lanes.placement());
        let work = async move {
            let _answer = request.take_place(true).await;
            panic!("in {}", thread_name());
        };
        let broken = tokio::spawn(lanes.aside(work, placement)).await.expect_err("it broke").into_panic();
        assert_eq!(broken.downcast_ref::<String>().map(String::as_str), Some("in wide answers"));
    }
}
