//! From requests and limits to what a cgroup is told.

use corten_api::core::v1::{Container, Pod};

use crate::{NodeFacts, Qos, Resources, downward::quantity, pod::spec_of, sandbox::qos};

const PERIOD_MICROS: i64 = 100_000;

pub(crate) fn of_container(container: &Container, pod: &Pod, facts: Option<&NodeFacts>) -> Resources {
    let millis = |limit| quantity(container, limit, "cpu").map_or(0, |it| it.milli_value());
    let memory = |limit| quantity(container, limit, "memory").map_or(0, |it| it.value());
    Resources {
        cpu_shares: shares(millis(false)),
        cpu_quota: quota(millis(true)),
        cpu_period: if millis(true) > 0 { PERIOD_MICROS } else { 0 },
        memory_limit_bytes: memory(true),
        oom_score_adj: oom_score_adj(pod, memory(false), facts),
    }
}

/// The pod's cgroup: the sums, limits only where every container has one.
pub(crate) fn of_pod(pod: &Pod, facts: Option<&NodeFacts>) -> Resources {
    let each: Vec<Resources> = spec_of(pod).containers.iter().map(|it| of_container(it, pod, facts)).collect();
    let millis = |it: &Container| quantity(it, false, "cpu").map_or(0, |it| it.milli_value());
    let sum_if_all = |of: fn(&Resources) -> i64| {
        let all = !each.is_empty() && each.iter().all(|it| of(it) > 0);
        if all { each.iter().map(of).sum() } else { 0 }
    };
    let cpu_quota = sum_if_all(|it| it.cpu_quota);
    Resources {
        cpu_shares: shares(spec_of(pod).containers.iter().map(millis).sum()),
        cpu_quota,
        cpu_period: if cpu_quota > 0 { PERIOD_MICROS } else { 0 },
        memory_limit_bytes: sum_if_all(|it| it.memory_limit_bytes),
        oom_score_adj: 0,
    }
}

fn shares(millis: i64) -> i64 {
    (millis.saturating_mul(1024) / 1000).clamp(2, 262_144)
}

fn quota(millis: i64) -> i64 {
    if millis <= 0 { 0 } else { (millis.saturating_mul(PERIOD_MICROS) / 1000).max(1000) }
}

/// As upstream: who asked for more memory is killed later; best effort first, guaranteed last.
fn oom_score_adj(pod: &Pod, memory_request: i64, facts: Option<&NodeFacts>) -> i64 {
    const CRITICAL: i32 = 2_000_000_000;
    if spec_of(pod).priority.is_some_and(|it| it >= CRITICAL) {
        return -997;
    }
    match qos(pod) {
        Qos::Guaranteed => -997,
        Qos::BestEffort => 1000,
        Qos::Burstable => {
            let capacity = facts.map_or(0, |it| it.memory_bytes).max(1);
            let share = i128::from(memory_request) * 1000 / i128::from(capacity);
            i64::try_from(1000 - share).unwrap_or(0).clamp(3, 999)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_upstream() {
        for (millis, expected_shares, expected_quota) in
            [(0, 2, 0), (1, 2, 1000), (100, 102, 10_000), (1000, 1024, 100_000), (2500, 2560, 250_000)]
        {
            assert_eq!((shares(millis), quota(millis)), (expected_shares, expected_quota), "{millis}");
        }
    }
}
