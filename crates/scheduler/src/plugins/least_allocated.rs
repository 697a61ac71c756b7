//! Spreads load: the more of a node's cpu and memory is left with the pod on it, the better.

use crate::{
    Plugin, PodInfo,
    framework::{Normalize, SCORE_MAX, Score},
    snapshot::Row,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "LeastAllocated",
    score: Some(Score { weight: 1, raw, normalize: Normalize::Keep }),
    ..Plugin::NONE
};

/// As in `GetNonzeroRequests`: containers that ask for nothing count with a guess, and a resource a node has none of does
/// not count.
fn raw(pod: &PodInfo, row: &Row<'_>) -> i64 {
    let resources = [
        (row.allocatable.cpu_millis, row.guessed.cpu_millis.saturating_add(pod.guessed.cpu_millis)),
        (row.allocatable.memory_bytes, row.guessed.memory_bytes.saturating_add(pod.guessed.memory_bytes)),
    ];
    let counted = resources.iter().filter(|it| it.0 > 0);
    let (sum, count) = counted.fold((0, 0), |(sum, count), (total, used)| (sum + left(*total, *used), count + 1));
    if count == 0 { 0 } else { sum / count }
}

fn left(total: i64, used: i64) -> i64 {
    if used > total {
        return 0;
    }
    let share = i128::from(total.saturating_sub(used)) * i128::from(SCORE_MAX) / i128::from(total);
    i64::try_from(share).unwrap_or(SCORE_MAX).min(SCORE_MAX)
}
