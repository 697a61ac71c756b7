//! Keeps nodes usable: cpu and memory should fill up at the same pace.

use crate::{
    Plugin, PodInfo,
    framework::{Normalize, SCORE_MAX, Score},
    snapshot::Row,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "BalancedAllocation",
    score: Some(Score { weight: 1, raw, normalize: Normalize::Keep }),
    ..Plugin::NONE
};

/// 100 less the standard deviation of the used shares, which for two of them is half their difference. As in
/// `balancedResourceScorer`, a pod that asks for neither cpu nor memory has no say.
fn raw(pod: &PodInfo, row: &Row<'_>) -> i64 {
    if pod.requested.cpu_millis == 0 && pod.requested.memory_bytes == 0 {
        return 0;
    }
    let cpu = share(row.allocatable.cpu_millis, row.requested.cpu_millis.saturating_add(pod.requested.cpu_millis));
    let memory =
        share(row.allocatable.memory_bytes, row.requested.memory_bytes.saturating_add(pod.requested.memory_bytes));
    match (cpu, memory) {
        (Some(cpu), Some(memory)) => SCORE_MAX - (cpu - memory).abs() * SCORE_MAX / (2 * ONE),
        _ => SCORE_MAX,
    }
}

/// Shares are whole numbers of millionths: placements must not depend on how a machine rounds.
const ONE: i64 = 1_000_000;

fn share(total: i64, used: i64) -> Option<i64> {
    let share = i128::from(used) * i128::from(ONE) / i128::from((total > 0).then_some(total)?);
    Some(i64::try_from(share).unwrap_or(ONE).clamp(0, ONE))
}
