//! The threads that loops run on, and the watchdog over them.
//!
//! A mind cannot be interrupted: one that thinks for ever keeps its thread. The watchdog notices, names what it thinks
//! about, and starts another thread in that one's place, so that the other loops go on; and the loop itself, where it let go
//! of its state while it was thinking. A loop that breaks is begun anew, after a back-off.
//!
//! ```text
//! wake --> ready --> a thread polls --> idle
//!                         |
//!                         +-- stands still --> given up: named, ready for another thread, this one ends with its thought
//! ```

#[cfg(test)]
mod tests;
mod watchdog;

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
    thread::JoinHandle,
    time::Duration,
};

use corten_client::BoxFuture;
use parking_lot::{Condvar, Mutex};
use tokio::{runtime::Handle, sync::oneshot, time::Instant};

use crate::{Clock, JournalBook, QueueCounts};

/// Documents may be 128 levels deep, and each level takes some frames. Only what is used of it becomes memory.
const STACK_BYTES: usize = 8 * 1024 * 1024;
/// A loop that broke is begun anew after so long; twice as long each time, up to the most.
const REST_FIRST: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(60);

/// What runs on the threads: as a future, but that another thread may go on with it while one stands still in it.
pub trait Loop: Send + Sync + 'static {
    fn poll(&self, context: &mut Context<'_>) -> Poll<()>;

    /// A thread stands still in it. What the first thread comes back with counts, late, where another goes on meanwhile.
    fn give_up(&self) -> GivenUp {
        GivenUp::Whole
    }
}

/// What a loop does while a thread stands still in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// Nothing: nobody else may poll it.
    Whole,
    /// All it does, but for the key it was thinking about, which is set aside.
    OneKey,
    /// What it has begun, and nothing new: that was one key too many.
    OneTooMany,
}

/// A loop that nobody can take over: its future is its state.
struct Whole(Mutex<BoxFuture<'static, ()>>);

impl Loop for Whole {
    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        self.0.lock().as_mut().poll(context)
    }
}

/// A future as a loop.
pub fn whole(future: impl Future<Output = ()> + Send + 'static) -> Arc<dyn Loop> {
    Arc::new(Whole(Mutex::new(Box::pin(future))))
}

type Make = Box<dyn Fn() -> Arc<dyn Loop> + Send + Sync>;

/// See the module's documentation.
pub struct Loops {
    inner: Arc<Inner>,
    watchdog: Mutex<Option<watchdog::WatchdogThread>>,
}

struct Inner {
    ready: Mutex<VecDeque<Arc<Task>>>,
    bell: Condvar,
    /// Whose timers and sockets the loops use.
    runtime: Handle,
    journal: Arc<JournalBook>,
    threads: Mutex<Vec<Arc<Thread>>>,
    /// Those that are not over.
    tasks: Mutex<Vec<Arc<Task>>>,
    clock: Clock,
    /// Nobody waits any more for what cannot end.
    is_stopping: AtomicBool,
    /// The threads end.
    is_stopped: AtomicBool,
}

/// One of the threads, as the watchdog sees it.
#[derive(Default)]
struct Thread {
    handle: Mutex<Option<JoinHandle<()>>>,
    /// What it polls. Whoever takes it out while it does gives the thread up: it ends as soon as it comes back.
    doing: Mutex<Option<Arc<Task>>>,
    n_polls: AtomicU64,
    /// It stands still and another thread is in its place.
    is_stuck: AtomicBool,
    has_ended: AtomicBool,
    kernel_id: Mutex<Option<rustix::process::Pid>>,
}

struct Task {
    name: String,
    /// The same for every poll: who holds it already takes no other.
    waker: Waker,
    counts: Arc<QueueCounts>,
    inner: Weak<Inner>,
    /// Nothing once it is over: whoever drops the last waker must not end what it was made of.
    make: Mutex<Option<Make>>,
    now: Mutex<Arc<dyn Loop>>,
    state: Mutex<State>,
    breaks: Mutex<Breaks>,
    /// Told once it is over, or given up for good.
    over: Mutex<Option<oneshot::Sender<()>>>,
}

/// How often it broke in a row, and since when it has run.
struct Breaks {
    n: u32,
    begun: Instant,
}

impl Breaks {
    /// How long it rests after one more. One that has run for longer than any rest begins to count again.
    fn rest(&mut self) -> Duration {
        if self.begun.elapsed() > REST_MAX {
            self.n = 0;
        }
        let rest = REST_FIRST.saturating_mul(1 << self.n.min(10)).min(REST_MAX);
        self.n = self.n.saturating_add(1);
        rest
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Ready,
    Polled,
    /// Polled, and woken meanwhile.
    PolledAgain,
    /// It broke, and rests.
    Resting,
    Over,
}

impl Loops {
    /// Starts so many threads, whose loops use the timers and sockets of `runtime`, and the watchdog.
    ///
    /// # Errors
    /// The system gives no threads.
    pub fn start(n_threads: usize, runtime: Handle, journal: Arc<JournalBook>, clock: Clock) -> std::io::Result<Self> {
        let this = Self::unwatched(n_threads, runtime, journal, clock)?;
        *this.watchdog.lock() = Some(watchdog::WatchdogThread::start(this.inner.clone())?);
        Ok(this)
    }

    fn unwatched(n_threads: usize, runtime: Handle, journal: Arc<JournalBook>, clock: Clock) -> std::io::Result<Self> {
        let inner = Inner {
            ready: Mutex::default(),
            bell: Condvar::new(),
            runtime,
            journal,
            threads: Mutex::default(),
            tasks: Mutex::default(),
            clock,
            is_stopping: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
        };
        let this = Self { inner: Arc::new(inner), watchdog: Mutex::default() };
        (0..n_threads).try_for_each(|_| Inner::start_thread(&this.inner))?;
        Ok(this)
    }

    /// Runs what `make` gives, and what it gives next where that breaks. Ready once it has ended; also where it cannot end,
    /// since a thread stands still in it, and [`Loops::begin_stop`] was called.
    pub fn spawn(
        &self,
        name: &str,
        make: impl Fn() -> Arc<dyn Loop> + Send + Sync + 'static,
    ) -> BoxFuture<'static, ()> {
        let (over, ended) = oneshot::channel();
        let task = Arc::new_cyclic(|task| Task {
            name: name.to_owned(),
            waker: Waker::from(Arc::new(TaskWaker(task.clone()))),
            counts: self.inner.journal.queue(name),
            inner: Arc::downgrade(&self.inner),
            now: Mutex::new(make()),
            make: Mutex::new(Some(Box::new(make))),
            state: Mutex::new(State::Idle),
            breaks: Mutex::new(Breaks { n: 0, begun: Instant::now() }),
            over: Mutex::new(Some(over)),
        });
        self.inner.tasks.lock().push(task.clone());
        task.wake();
        Box::pin(async move {
            let _either = ended.await;
        })
    }

    /// From now on nobody waits for loops that cannot end, and none that broke is begun anew.
    pub fn begin_stop(&self) {
        self.inner.is_stopping.store(true, Relaxed);
        self.inner.give_up_for_good();
        let tasks = self.inner.tasks.lock().clone();
        tasks.iter().filter(|it| *it.state.lock() == State::Resting).for_each(|it| it.end());
    }

    /// Ends the threads. Those that stand still are left to the end of the process.
    pub fn stop(&self) {
        self.begin_stop();
        drop(self.watchdog.lock().take());
        self.inner.is_stopped.store(true, Relaxed);
        {
            // Nobody is between looking at that and waiting for the bell.
            let _ready = self.inner.ready.lock();
            self.inner.bell.notify_all();
        }
        let threads = std::mem::take(&mut *self.inner.threads.lock());
        for thread in threads {
            let handle = thread.handle.lock().take();
            if let Some(handle) = handle.filter(|_| !thread.is_busy()) {
                let _broken = handle.join();
            }
        }
    }
}

impl Thread {
    fn is_busy(&self) -> bool {
        self.is_stuck.load(Relaxed) || self.doing.lock().is_some()
    }
}

impl Inner {
    fn start_thread(this: &Arc<Self>) -> std::io::Result<()> {
        let thread = Arc::new(Thread::default());
        let (inner, own) = (this.clone(), thread.clone());
        let run = move || {
            *own.kernel_id.lock() = Some(rustix::thread::gettid());
            let _context = inner.runtime.enter();
            while let Some(task) = inner.next() {
                if !inner.poll(&own, &task) {
                    break;
                }
            }
            own.has_ended.store(true, Relaxed);
        };
        let handle = std::thread::Builder::new().name("loops".into()).stack_size(STACK_BYTES).spawn(run)?;
        *thread.handle.lock() = Some(handle);
        this.threads.lock().push(thread);
        Ok(())
    }

    fn next(&self) -> Option<Arc<Task>> {
        let mut ready = self.ready.lock();
        loop {
            if let Some(task) = ready.pop_front() {
                return Some(task);
            }
            if self.is_stopped.load(Relaxed) {
                return None;
            }
            self.bell.wait(&mut ready);
        }
    }

    /// Whether the thread goes on: not where another took its place.
    fn poll(&self, thread: &Thread, task: &Arc<Task>) -> bool {
        *task.state.lock() = State::Polled;
        thread.n_polls.fetch_add(1, Relaxed);
        *thread.doing.lock() = Some(task.clone());
        let now = task.now.lock().clone();
        let polled = catch_unwind(AssertUnwindSafe(|| now.poll(&mut Context::from_waker(&task.waker))));
        drop(now);
        if thread.doing.lock().take().is_none() {
            return false;
        }
        match polled {
            Ok(Poll::Ready(())) => task.end(),
            Ok(Poll::Pending) => task.rest_or_go_on(),
            Err(_) => task.begin_anew(),
        }
        !thread.is_stuck.load(Relaxed)
    }

    /// Tells those who wait for a loop in which a thread stands still that it will not end.
    fn give_up_for_good(&self) {
        for thread in self.threads.lock().iter().filter(|it| it.is_stuck.load(Relaxed)) {
            if let Some(task) = &*thread.doing.lock() {
                tracing::warn!(r#loop = task.name, "it stands still, and is not waited for");
                task.tell_over();
            }
        }
    }
}

/// Wakes a loop's task. It does not own the task: the loop would end where the last waker is dropped.
struct TaskWaker(Weak<Task>);

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if let Some(task) = self.0.upgrade() {
            task.wake();
        }
    }
}

impl Task {
    fn wake(self: Arc<Self>) {
        {
            let mut state = self.state.lock();
            match *state {
                State::Idle => *state = State::Ready,
                State::Polled => {
                    *state = State::PolledAgain;
                    return;
                }
                State::Ready | State::PolledAgain | State::Resting | State::Over => return,
            }
        }
        self.queue();
    }

    fn queue(self: Arc<Self>) {
        let Some(inner) = self.inner.upgrade() else { return };
        inner.ready.lock().push_back(self);
        inner.bell.notify_one();
    }

    fn rest_or_go_on(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if *state == State::PolledAgain {
            *state = State::Ready;
            drop(state);
            return self.clone().queue();
        }
        *state = State::Idle;
    }

    fn end(&self) {
        *self.state.lock() = State::Over;
        self.drop_now();
        drop(self.make.lock().take());
        self.tell_over();
        if let Some(inner) = self.inner.upgrade() {
            inner.tasks.lock().retain(|it| !std::ptr::eq(&**it, self));
        }
    }

    fn drop_now(&self) {
        let now = std::mem::replace(&mut *self.now.lock(), whole(std::future::pending()));
        drop(now);
    }

    fn tell_over(&self) {
        if let Some(over) = self.over.lock().take() {
            let _gone = over.send(());
        }
    }

    fn begin_anew(self: &Arc<Self>) {
        let Some(inner) = self.inner.upgrade() else { return };
        // Who begins to stop ends what rests: either that is seen there, or the stop here.
        *self.state.lock() = State::Resting;
        if inner.is_stopping.load(Relaxed) {
            return self.end();
        }
        // What the broken one listened at must be free before the next one listens there.
        self.drop_now();
        let rest = self.breaks.lock().rest();
        tracing::error!(r#loop = self.name, ?rest, "the loop broke, and is begun anew after a rest");
        self.counts.count_retry();
        let task = self.clone();
        inner.runtime.spawn(async move {
            tokio::time::sleep(rest).await;
            task.end_rest();
        });
    }

    fn end_rest(self: &Arc<Self>) {
        let made = {
            let make = self.make.lock();
            // It was ended meanwhile.
            let Some(make) = &*make else { return };
            catch_unwind(AssertUnwindSafe(make))
        };
        let Ok(made) = made else { return self.begin_anew() };
        {
            let mut state = self.state.lock();
            if *state != State::Resting {
                return;
            }
            *self.now.lock() = made;
            *state = State::Ready;
        }
        self.breaks.lock().begun = Instant::now();
        self.clone().queue();
    }
}
