//! How long a job waits before it makes a pod in a failed one's place: 10 s, doubled with each failure in a row.
//!
//! The failures since the last success are recorded in an annotation of the job, by the write that notes the pods' uids: each
//! pod is recorded once, and the delay holds though its object is gone, or the controller starts anew. Upstream has the same
//! record in memory (`backoffStore`).

use std::time::Duration;

use corten_meta::{ObjectMeta, Time};

use super::pods;
use crate::projections::Pod;

/// `DefaultJobPodFailureBackOff`.
const FIRST: Duration = Duration::from_secs(10);
/// `MaxJobPodFailureBackOff` is this; Kubernetes's documentation says six minutes.
const LONGEST: Duration = Duration::from_secs(600);

/// What is known of failures in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Record {
    n_failures: i64,
    last: Time,
}

impl Record {
    /// `3 2026-11-20T12:00:00Z`: how many pods have failed since the last success, and when the last of them did.
    pub(super) const ANNOTATION: &str = "corten.dev/job-pod-failures";

    /// What was recorded before. What somebody else wrote there and cannot be read is as if it were not there.
    pub(super) fn read(meta: &ObjectMeta) -> Option<Self> {
        let (n_failures, last) = meta.annotations.get(Self::ANNOTATION)?.split_once(' ')?;
        let n_failures = n_failures.parse::<i64>().ok().filter(|it| *it > 0)?;
        Some(Self { n_failures, last: last.parse().ok()? })
    }

    /// As in `newBackoffRecord`: a success ends the row, and failures after it begin the next one. The pods are those that
    /// the status did not know of.
    pub(super) fn with(before: Option<Self>, succeeded: &[&Pod], failed: &[&Pod], now: Time) -> Option<Self> {
        let success = succeeded.iter().filter_map(|it| pods::finished_at(it)).max();
        let is_later = |it: Time| success.is_none_or(|success| it > success);
        // A success that is told of late leaves what failed after it.
        let before = before.filter(|it| is_later(it.last));
        let since: Vec<Time> =
            failed.iter().filter_map(|it| pods::finished_at(it)).filter(|it| is_later(*it)).collect();
        let Some(last) = since.iter().max().copied() else { return before };
        let n_new = i64::try_from(since.len()).unwrap_or(i64::MAX);
        let n_failures = before.map_or(0, |it| it.n_failures).saturating_add(n_new);
        // A node's clock that is ahead does not make the delay longer.
        let last = before.map_or(last, |it| it.last.max(last)).min(now);
        Some(Self { n_failures, last })
    }

    /// What is of a time to come was copied from elsewhere, or written before the clock was set back: it would hold the job up
    /// for longer than any failure.
    pub(super) fn is_past(&self, now: Time) -> bool {
        self.last <= now
    }

    /// Until when no pod is made.
    pub(super) fn until(self) -> Time {
        self.last.after(after(self.n_failures))
    }
}

impl std::fmt::Display for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.n_failures, self.last)
    }
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
