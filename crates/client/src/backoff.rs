//! Growing delays with jitter from a seed, so that a simulation repeats them exactly.

use std::time::Duration;

/// Doubles from `first` to `max`; each delay is shortened at random by up to a quarter, so that a herd spreads out.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    max: Duration,
    failures: u32,
    random: u64,
}

impl Backoff {
    pub fn new(first: Duration, max: Duration, seed: u64) -> Self {
        Self { first, max, failures: 0, random: seed }
    }

    /// The delay before the next try.
    pub fn delay(&mut self) -> Duration {
        let factor = 1_u32.checked_shl(self.failures.min(20)).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(1);
        let full = self.first.saturating_mul(factor).min(self.max);
        let permille = u32::try_from(self.draw() % 250).expect("a remainder below 250 fits");
        full - full.saturating_mul(permille) / 1000
    }

    /// The next failure is the first one again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// A number for other jitter of the same owner (splitmix64).
    pub fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// A seed from a name, the same in every run.
pub(crate) fn seed_of(name: &str) -> u64 {
    corten_meta::stable_hash(name.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_up_to_its_bound_and_repeats_with_its_seed() {
        let (first, max) = (Duration::from_millis(100), Duration::from_secs(2));
        let mut backoff = Backoff::new(first, max, 7);
        let delays: Vec<Duration> = (0..8).map(|_| backoff.delay()).collect();
        for (at, delay) in delays.iter().enumerate() {
            let full = first.saturating_mul(1 << at).min(max);
            assert!(*delay <= full && *delay >= full.mul_f64(0.75), "delay {at} is {delay:?} of {full:?}");
        }
        let mut again = Backoff::new(first, max, 7);
        assert_eq!(delays, (0..8).map(|_| again.delay()).collect::<Vec<_>>());
        again.reset();
        assert!(again.delay() <= first);
    }
}
