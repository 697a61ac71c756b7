//! The times of a Lease whose holder leads, and what must hold between them: `LeaderElectionConfiguration` of k8s.io/component-base.

use std::time::Duration;

/// client-go's `JitterFactor`: a retry may come so much later.
const JITTER: f64 = 1.2;
const DURATION_MIN: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimes {
    /// How long after the last renewal others wait.
    pub duration: Duration,
    /// How long after the last renewal the holder goes on.
    pub renew_deadline: Duration,
    /// How often the lease is tried for, or renewed.
    pub retry_period: Duration,
}

/// Why a holder could not renew its lease before another takes it (`NewLeaderElector`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WrongTimes {
    /// The lease lasts less than a second.
    DurationTooShort,
    /// The holder would not try at all.
    NoRetryPeriod,
    /// Others may hold the lease while its holder still tries to renew it. A Lease counts whole seconds.
    DurationWithinRenewal,
    /// No second try fits into the time in which the holder renews.
    RenewalWithinRetry,
}

impl LeaseTimes {
    /// All that is wrong with them.
    pub fn wrong(&self) -> Vec<WrongTimes> {
        let counted = Duration::from_secs(self.duration.as_secs());
        let rules = [
            (self.duration < DURATION_MIN, WrongTimes::DurationTooShort),
            (self.retry_period.is_zero(), WrongTimes::NoRetryPeriod),
            (counted <= self.renew_deadline, WrongTimes::DurationWithinRenewal),
            (self.renew_deadline <= self.retry_period.mul_f64(JITTER), WrongTimes::RenewalWithinRetry),
        ];
        rules.into_iter().filter(|it| it.0).map(|it| it.1).collect()
    }
}

impl Default for LeaseTimes {
    fn default() -> Self {
        let of = Duration::from_secs;
        Self { duration: of(15), renew_deadline: of(10), retry_period: of(2) }
    }
}

#[cfg(test)]
mod tests {
    use super::{WrongTimes::*, *};

    #[test]
    fn a_holder_renews_in_time_or_the_times_are_wrong() {
        for (duration, renewal, retry, wrong) in [
            (15_000, 10_000, 2_000, vec![]),
            (999, 400, 100, vec![DurationTooShort, DurationWithinRenewal]),
            (10_900, 10_000, 2_000, vec![DurationWithinRenewal]),
            (15_000, 10_000, 0, vec![NoRetryPeriod]),
            (15_000, 2_400, 2_000, vec![RenewalWithinRetry]),
            (15_000, 2_401, 2_000, vec![]),
        ] {
            let of = Duration::from_millis;
            let times = LeaseTimes { duration: of(duration), renew_deadline: of(renewal), retry_period: of(retry) };
            assert_eq!(times.wrong(), wrong, "{times:?}");
        }
        assert_eq!(LeaseTimes::default().wrong(), []);
    }
}
