//! How often the file was read anew, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use corten_files::Refusal;

#[derive(Default)]
pub struct Reloads {
    successes: AtomicU64,
    failures: AtomicU64,
    pub(crate) refusal: Refusal,
}

impl Reloads {
    pub fn successes(&self) -> u64 {
        self.successes.load(Relaxed)
    }

    pub fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    pub(crate) fn succeeded(&self) {
        self.nothing_new();
        self.successes.fetch_add(1, Relaxed);
    }

    pub(crate) fn nothing_new(&self) {
        self.refusal.end();
    }

    /// False where it failed for the same reason before.
    pub(crate) fn failed(&self, reason: &str) -> bool {
        let is_new = self.refusal.refuse(reason);
        if is_new {
            self.failures.fetch_add(1, Relaxed);
        }
        is_new
    }
}
