//! How long a server that has answered may fail before it counts as unavailable.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::condition::Condition;

/// It is asked again after these: it may be starting anew.
const PATIENCE: [Duration; 3] = [Duration::from_millis(100), Duration::from_millis(200), Duration::from_millis(400)];

/// Whether it answers. Meanwhile requests go there, each to fail by itself.
pub(crate) async fn found<F>(was_available: bool, mut check: impl FnMut() -> F) -> Condition
where
    F: Future<Output = Condition>,
{
    for patience in PATIENCE {
        let begun = Instant::now();
        let condition = check().await;
        // Who has hung for long already has had that patience.
        let is_slow = begun.elapsed() > patience * 2;
        if condition.is_available || !was_available || !condition.is_of_its_answer() || is_slow {
            return condition;
        }
        sleep(patience).await;
    }
    check().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_that_answered_is_asked_four_times() {
        let (failed, nobody) = ("FailedDiscoveryCheck", "EndpointsNotFound");
        for (was_available, reason, n_failing, each_takes_ms, expected) in [
            (true, failed, 0, 0, (true, 1, 0)),
            (true, failed, 1, 0, (true, 2, 100)),
            (true, failed, 3, 0, (true, 4, 700)),
            (true, failed, 4, 0, (false, 4, 700)),
            // Each as quick as a refusal; and one that keeps still.
            (true, failed, 3, 10, (true, 4, 740)),
            (true, failed, 4, 5_000, (false, 1, 5_000)),
            (true, nobody, 4, 0, (false, 1, 0)),
            (false, failed, 3, 0, (false, 1, 0)),
        ] {
            let (begun, mut n) = (Instant::now(), 0);
            let found = found(was_available, || {
                n += 1;
                let is_available = n > n_failing;
                async move {
                    sleep(Duration::from_millis(each_takes_ms)).await;
                    let reason = if is_available { "Passed" } else { reason };
                    Condition { is_available, reason, message: String::new() }
                }
            });
            let found = found.await.is_available;
            let took = begun.elapsed().as_millis();
            assert_eq!((found, n, took), expected, "{was_available} {reason} {n_failing} {each_takes_ms}");
        }
    }
}
