//! Times, counted into buckets without a lock.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

/// The first bound, in nanoseconds; each is ten times the one before it, as `workqueue` has them upstream: 10 ns to 1,000 s.
const FIRST: u64 = 10;
const N_BOUNDS: usize = 12;

#[derive(Debug, Default)]
pub struct Durations {
    /// Up to each bound, and above the last.
    counts: [AtomicU64; N_BOUNDS + 1],
    nanoseconds: AtomicU64,
}

/// What was counted so far.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CountedDurations {
    /// So many took no longer than so many seconds, in the order of the bounds.
    pub up_to: Vec<(f64, u64)>,
    pub n: u64,
    pub seconds: f64,
}

impl Durations {
    pub(crate) fn count(&self, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let bucket = bounds().take_while(|it| *it < nanoseconds).count();
        self.counts[bucket].fetch_add(1, Relaxed);
        self.nanoseconds.fetch_add(nanoseconds, Relaxed);
    }

    pub fn counted(&self) -> CountedDurations {
        let mut n = 0;
        let mut counts = self.counts.iter().map(|it| {
            n += it.load(Relaxed);
            n
        });
        let up_to = bounds().map(seconds).zip(&mut counts).collect();
        let n = counts.next().unwrap_or_default();
        CountedDurations { up_to, n, seconds: seconds(self.nanoseconds.load(Relaxed)) }
    }
}

fn bounds() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(FIRST), |it| it.checked_mul(10)).take(N_BOUNDS)
}

fn seconds(nanoseconds: u64) -> f64 {
    Duration::from_nanos(nanoseconds).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_counted_up_to_the_first_bound_that_holds_it() {
        let durations = Durations::default();
        let times = [Duration::ZERO, Duration::from_nanos(10), Duration::from_millis(2), Duration::from_secs(2_000)];
        times.into_iter().for_each(|it| durations.count(it));
        let counted = durations.counted();
        assert_eq!(counted.n, 4);
        assert!((counted.seconds - 2000.002).abs() < 1e-3, "{counted:?}");
        let up_to: Vec<u64> = counted.up_to.iter().map(|it| it.1).collect();
        assert_eq!(up_to, [2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3]);
        assert_eq!(counted.up_to.last().map(|it| it.0), Some(1000.0));
    }
}
