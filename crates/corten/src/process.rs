//! What a process gives its components: the clock, random names, logs, and the signal to end.

use std::{io::IsTerminal, sync::Arc};

use anyhow::{Context, Result};
use corten_meta::Time;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::EnvFilter;

pub(crate) type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

pub(crate) fn clock() -> Clock {
    Arc::new(|| Time(jiff::Timestamp::now()))
}

pub(crate) fn uids() -> Arc<dyn Fn() -> String + Send + Sync> {
    Arc::new(|| uuid::Uuid::new_v4().to_string())
}

/// Logs go to standard error; `CORTEN_LOG` chooses what is logged (`info`, `corten_runner=debug`).
pub(crate) fn log() {
    let filter = EnvFilter::try_from_env("CORTEN_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let colour = std::io::stderr().is_terminal();
    // A second call (never in the program) would find the first one's subscriber: harmless.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colour).try_init();
}

/// Runs `work` on a runtime of its own.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("starting the runtime")?;
    runtime.block_on(work)
}

/// SIGTERM and SIGINT, listened for from the moment this is made: a signal during the start counts, too.
pub(crate) struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate()).context("listening for SIGTERM")?,
            int: signal(SignalKind::interrupt()).context("listening for SIGINT")?,
        })
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
