//! From requests and limits to what a cgroup is told.

use std::collections::BTreeMap;

use corten_api::{
    apimachinery::pkg::api::resource::Quantity as ApiQuantity,
    core::v1::{Container, Pod},
};
use corten_meta::Quantity;

use crate::{
    NodeFacts, Qos, Resources,
    spec::{
        downward::quantity,
        pod::{all_containers, is_sidecar, spec_of},
        requests::amount,
        sandbox::qos,
    },
};

const PERIOD_MICROS: i64 = 100_000;

pub(crate) fn of_container(container: &Container, pod: &Pod, facts: Option<&NodeFacts>) -> Resources {
    let millis = |limit| quantity(container, limit, "cpu").map_or(0, |it| it.milli_value());
    let memory = |limit| quantity(container, limit, "memory").map_or(0, |it| it.value());
    Resources {
        cpu_shares: shares(millis(false)),
        cpu_quota: quota(millis(true)),
        cpu_period: if millis(true) > 0 { PERIOD_MICROS } else { 0 },
        memory_limit_bytes: memory(true),
        oom_score_adj: oom_score_adj(pod, memory(false).saturating_add(unclaimed_memory(pod)), facts),
    }
}

/// The pod's cgroup: what the pod as a whole is given; else what its containers come to, limits only where every one has
/// one.
pub(crate) fn of_pod(pod: &Pod) -> Resources {
    let is_limited = |name| all_containers(pod).all(|it| quantity(it, true, name).is_some_and(|it| !it.is_zero()));
    let of = |limit: bool, name: &'static str| match own(pod, limit, name) {
        Some(own) => amount(name, own),
        None if limit && !is_limited(name) => 0,
        None => at_most(pod, |it| quantity(it, limit, name).map_or(0, |it| amount(name, it))),
    };
    let cpu_quota = quota(of(true, "cpu"));
    Resources {
        cpu_shares: shares(of(false, "cpu")),
        cpu_quota,
        cpu_period: if cpu_quota > 0 { PERIOD_MICROS } else { 0 },
        memory_limit_bytes: of(true, "memory"),
        oom_score_adj: 0,
    }
}

/// The most that is in use at one time: each init container runs beside the sidecars before it only, all others beside
/// each other.
fn at_most(pod: &Pod, of: impl Fn(&Container) -> i64) -> i64 {
    let spec = spec_of(pod);
    let (mut sidecars, mut most) = (0_i64, 0_i64);
    for container in spec.init_containers.iter().flatten() {
        let now = sidecars.saturating_add(of(container));
        most = most.max(now);
        if is_sidecar(container) {
            sidecars = now;
        }
    }
    most.max(spec.containers.iter().map(of).fold(sidecars, i64::saturating_add))
}

/// What the pod as a whole asks for; a limit stands in for a missing request.
fn own(pod: &Pod, limit: bool, name: &str) -> Option<Quantity> {
    let resources = spec_of(pod).resources.as_ref()?;
    let read = |map: &Option<BTreeMap<String, ApiQuantity>>| map.as_ref()?.get(name)?.0.parse().ok();
    if limit { read(&resources.limits) } else { read(&resources.requests).or_else(|| read(&resources.limits)) }
}

/// As KEP-2837 has it: of the memory the pod as a whole asks for, what no container asks for itself is everyone's in equal parts.
fn unclaimed_memory(pod: &Pod) -> i64 {
    let Some(of_pod) = own(pod, false, "memory") else { return 0 };
    let containers = &spec_of(pod).containers;
    let claimed = containers.iter().filter_map(|it| quantity(it, false, "memory")).map(Quantity::value);
    let claimed = claimed.fold(0_i64, i64::saturating_add);
    let n_containers = i64::try_from(containers.len()).unwrap_or(1).max(1);
    of_pod.value().saturating_sub(claimed).max(0) / n_containers
}

/// Of each size of huge pages that the machine has, how much: nothing where the container asks for nothing.
pub(crate) fn hugepages(container: &Container, facts: Option<&NodeFacts>) -> Vec<(String, u64)> {
    let sizes = facts.into_iter().flat_map(|it| &it.hugepages).filter(|it| *it.1 > 0).map(|it| it.0);
    let limit = |size: &String| {
        let bytes = quantity(container, true, &format!("hugepages-{size}")).map_or(0, Quantity::value);
        // The kernel's word has no `i`: 2MB.
        (size.replace('i', "B"), u64::try_from(bytes).unwrap_or(0))
    };
    sizes.map(limit).collect()
}

fn shares(millis: i64) -> i64 {
    (millis.saturating_mul(1024) / 1000).clamp(2, 262_144)
}

fn quota(millis: i64) -> i64 {
    if millis <= 0 { 0 } else { (millis.saturating_mul(PERIOD_MICROS) / 1000).max(1000) }
}

/// As in `GetContainerOOMScoreAdjust`: who asked for more memory is killed later; best effort first, guaranteed last.
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
