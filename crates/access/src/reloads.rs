//! How often the file was read anew, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

#[derive(Default)]
pub struct Reloads {
    successes: AtomicU64,
    failures: AtomicU64,
    /// Why the file as it is now was refused.
    reason: Mutex<String>,
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
        self.reason.lock().clear();
    }

    /// False where it failed for the same reason before.
    pub(crate) fn failed(&self, reason: &str) -> bool {
        let mut last = self.reason.lock();
        if *last == reason {
            return false;
        }
        reason.clone_into(&mut last);
        self.failures.fetch_add(1, Relaxed);
        true
    }
}
