//! How many want to commit at once: who is alone saves two wake-ups by writing at once, a crowd saves syncs by queueing.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};

/// So many must have come one after the other, each alone, before the next counts as lonely.
const STREAK: u32 = 8;

/// Hints only: whoever holds the writer's lock may write, whatever was counted.
#[derive(Default)]
pub(super) struct Contention {
    present: AtomicUsize,
    streak: AtomicU32,
}

pub(super) struct Contender<'a> {
    crowd: &'a Contention,
    lonely: bool,
}

impl Contention {
    pub(super) fn enter(&self) -> Contender<'_> {
        let alone = self.present.fetch_add(1, Relaxed) == 0;
        let streak = if alone { self.streak.load(Relaxed).saturating_add(1).min(STREAK) } else { 0 };
        self.streak.store(streak, Relaxed);
        Contender { crowd: self, lonely: streak == STREAK }
    }
}

impl Contender<'_> {
    /// It came after many that were each alone.
    pub(super) fn is_lonely(&self) -> bool {
        self.lonely
    }

    /// Nobody else is here now.
    pub(super) fn is_alone(&self) -> bool {
        self.crowd.present.load(Relaxed) == 1
    }
}

impl Drop for Contender<'_> {
    fn drop(&mut self) {
        self.crowd.present.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_was_long_alone_is_lonely() {
        let crowd = Contention::default();
        let alone: Vec<bool> = (0..10).map(|_| crowd.enter().is_lonely()).collect();
        assert_eq!(alone, [false, false, false, false, false, false, false, true, true, true]);
        let (first, second) = (crowd.enter(), crowd.enter());
        assert!(first.is_lonely() && !second.is_lonely());
        assert!(!first.is_alone(), "company came");
        drop((first, second));
        assert!(!crowd.enter().is_lonely(), "company was there a moment ago");
    }
}
