//! What a process gives its components: the clock, random names, and the signal to end.

use std::sync::Arc;

use anyhow::{Context, Result};
use corten_meta::Time;
use corten_runner::{JournalBook, Loops};
use tokio::{
    runtime::Handle,
    signal::unix::{Signal, SignalKind, signal},
};

pub(crate) type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

pub(crate) fn clock() -> Clock {
    Arc::new(|| Time(jiff::Timestamp::now()))
}

pub(crate) fn uids() -> Arc<dyn Fn() -> String + Send + Sync> {
    Arc::new(|| uuid::Uuid::new_v4().to_string())
}

/// What the machine calls itself.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// What this process is called by whoever leads one at a time: unlike any other, also of this machine.
pub(crate) fn candidate_name() -> String {
    format!("{}_{}", host_name(), uids()())
}

/// Documents may be 128 levels deep, and each level takes some frames. Only what is used of it becomes memory.
const STACK_BYTES: usize = 8 * 1024 * 1024;

/// Runs `work` on a runtime of its own.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = runtime("requests").build().context("starting the runtime")?;
    runtime.block_on(work)
}

/// Threads for loops: of their own, so that no request waits behind them. The kernel shares the cores out.
pub(crate) fn loops(journal: Arc<JournalBook>, clock: Clock) -> Result<Arc<Loops>> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let loops = Loops::start((cores / 2).max(1), Handle::current(), journal, clock);
    Ok(Arc::new(loops.context("starting the threads of the loops")?))
}

fn runtime(name: &str) -> tokio::runtime::Builder {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.thread_name(name).thread_stack_size(STACK_BYTES).enable_all();
    runtime
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShutdownSignal {
    End,
    Drain,
}

/// SIGTERM and SIGINT, and SIGUSR1, which asks to end the Pods first; listened for from the moment this is made: a signal
/// during the start counts, too.
pub(crate) struct Signals {
    term: Signal,
    int: Signal,
    drain: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate()).context("listening for SIGTERM")?,
            int: signal(SignalKind::interrupt()).context("listening for SIGINT")?,
            drain: signal(SignalKind::user_defined1()).context("listening for SIGUSR1")?,
        })
    }

    /// Waits for either, or for the wish that Pods be ended first.
    pub(crate) async fn told(&mut self) -> ShutdownSignal {
        tokio::select! {
            biased;
            _ = self.term.recv() => ShutdownSignal::End,
            _ = self.int.recv() => ShutdownSignal::End,
            _ = self.drain.recv() => ShutdownSignal::Drain,
        }
    }

    /// Waits for either.
    pub(crate) async fn told_to_end(&mut self) {
        tokio::select! {
            biased;
            _ = self.term.recv() => {}
            _ = self.int.recv() => {}
        }
    }
}
