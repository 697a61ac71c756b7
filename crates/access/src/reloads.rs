//! How often the file was read anew, for `/metrics`.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use corten_files::Refusal;
use parking_lot::Mutex;
use tokio::time::Instant;

#[derive(Default)]
pub struct Reloads {
    successes: AtomicU64,
    failures: AtomicU64,
    succeeded_at: Mutex<Option<Instant>>,
    failed_at: Mutex<Option<Instant>>,
    pub(crate) refusal: Refusal,
}

impl Reloads {
    pub fn successes(&self) -> u64 {
        self.successes.load(Relaxed)
    }

    pub fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    /// How long ago the last one that succeeded was.
    pub fn since_success(&self) -> Option<Duration> {
        self.succeeded_at.lock().map(|it| it.elapsed())
    }

    pub fn since_failure(&self) -> Option<Duration> {
        self.failed_at.lock().map(|it| it.elapsed())
    }

    pub(crate) fn succeeded(&self) {
        self.nothing_new();
        self.successes.fetch_add(1, Relaxed);
        *self.succeeded_at.lock() = Some(Instant::now());
    }

    pub(crate) fn nothing_new(&self) {
        self.refusal.end();
    }

    /// False where it failed for the same reason before.
    pub(crate) fn failed(&self, reason: &str) -> bool {
        let is_new = self.refusal.refuse(reason);
        if is_new {
            self.failures.fetch_add(1, Relaxed);
            *self.failed_at.lock() = Some(Instant::now());
        }
        is_new
    }
}
