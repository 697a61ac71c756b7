//! Keeps nodes usable: their resources should fill up at the same pace.

use crate::{
    Plugin, PodInfo,
    arguments::Arguments,
    framework::{Normalize, Points, SCORE_MAX, Score, real, whole},
    snapshot::Row,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "NodeResourcesBalancedAllocation",
    score: Some(Score { weight: 1, points: Points::Each { raw, normalize: Normalize::Keep } }),
    ..Plugin::NONE
};

/// What the pod changes of the node's balance counts, not how balanced the node is: 75 where it changes nothing, 50 where it
/// spoils a perfect balance, 100 where it makes one (`balancedResourceScorer`). A pod that asks for none of the resources has no
/// say (`isBestEffortPod`).
fn raw(pod: &PodInfo, row: &Row<'_>, arguments: &Arguments) -> i64 {
    let resources = &arguments.balanced.resources.0;
    if resources.iter().all(|(resource, _)| pod.requested.of_resource(resource) == 0) {
        return 0;
    }
    let uses = || resources.iter().filter_map(|(it, _)| row.use_of(it, pod, &pod.requested, row.requested));
    let with = balance(|| uses().map(|it| share(it.after, it.total)));
    let without = balance(|| uses().map(|it| share(it.before, it.total)));
    SCORE_MAX / 2 + (SCORE_MAX / 2 + with - without) / 2
}

fn share(used: i64, total: i64) -> f64 {
    (real(used) / real(total)).min(1.0)
}

/// 100 less the standard deviation of the used shares, which for two of them is half their difference
/// (`balancedResourceScore`).
fn balance<I: Iterator<Item = f64>>(shares: impl Fn() -> I) -> i64 {
    let (mut count, mut sum, mut ends) = (0_u32, 0.0, None);
    for share in shares() {
        count += 1;
        sum += share;
        ends = Some((ends.map_or(share, |it: (f64, f64)| it.0), share));
    }
    let deviation = match (count, ends) {
        (2, Some((one, other))) => ((one - other) / 2.0).abs(),
        (0 | 1, _) | (_, None) => 0.0,
        _ => {
            let mean = sum / f64::from(count);
            (shares().map(|it| (it - mean) * (it - mean)).sum::<f64>() / f64::from(count)).sqrt()
        }
    };
    whole((1.0 - deviation) * real(SCORE_MAX))
}
