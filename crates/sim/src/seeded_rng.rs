//! Chance from a seed: the same seed throws the same dice, on every machine and in every run.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

/// Shared by its clones: every throw moves all of them on.
#[derive(Clone)]
pub(crate) struct SeededRng(Arc<Mutex<u64>>);

impl SeededRng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(seed)))
    }

    /// Dice of one's own, so that one component's throws do not move another's.
    pub(crate) fn of(seed: u64, name: &str) -> Self {
        Self::new(corten_meta::stable_hash_from(seed, name.as_bytes()))
    }

    /// The next number (splitmix64).
    pub(crate) fn throw(&self) -> u64 {
        let mut state = self.0.lock();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.throw() % bound
    }

    pub(crate) fn percent(&self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<'a, T>(&self, from: &'a [T]) -> Option<&'a T> {
        let bound = u64::try_from(from.len()).ok().filter(|it| *it > 0)?;
        from.get(usize::try_from(self.below(bound)).ok()?)
    }

    pub(crate) fn millis(&self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from + 1))
    }

    /// A UUID of version 4, as the API server gives to objects.
    pub(crate) fn uuid(&self) -> String {
        let (high, low) = (self.throw(), self.throw());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            (low >> 48) & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff
        )
    }
}
