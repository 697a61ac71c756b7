//! How long a job waits before it makes a pod in a failed one's place: 10 s, doubled with each failure in a row.

use std::time::Duration;

use corten_meta::Time;

use super::pods;
use crate::projections::{Job, Pod};

const FIRST: Duration = Duration::from_secs(10);
/// `MaxJobPodFailureBackOff` is this; Kubernetes's documentation says six minutes.
const LONGEST: Duration = Duration::from_secs(600);

/// Until when no pod is made, counting the failures since the last success. `n_failed`: all that the status knows of, since
/// the pods themselves may be gone.
pub(super) fn of_job(job: &Job, pods: &[&Pod], n_failed: i64) -> Option<Time> {
    let succeeded_at = pods.iter().filter(|it| it.has_succeeded()).filter_map(|it| pods::finished_at(it)).max();
    let failed = pods.iter().filter(|it| pods::has_failed(job, it)).filter_map(|it| pods::finished_at(it));
    let since: Vec<Time> = failed.filter(|it| succeeded_at.is_none_or(|success| *it > success)).collect();
    let last = since.iter().max().copied()?;
    let n_seen = i64::try_from(since.len()).unwrap_or(i64::MAX);
    let n_failures = if succeeded_at.is_none() && job.status.succeeded == 0 { n_seen.max(n_failed) } else { n_seen };
    Some(last.after(after(n_failures)))
}

/// Until when no pod is made of the index in which this one failed.
pub(super) fn of_index(failed: &Pod) -> Option<Time> {
    let (counted, ignored) = pods::failures_before(failed);
    Some(pods::finished_at(failed)?.after(after(counted.saturating_add(ignored).saturating_add(1))))
}

fn after(n_failures: i64) -> Duration {
    let doublings = u32::try_from(n_failures.clamp(1, 20) - 1).unwrap_or(0);
    FIRST.saturating_mul(1 << doublings).min(LONGEST)
}
