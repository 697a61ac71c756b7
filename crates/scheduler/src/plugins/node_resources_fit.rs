//! A node must have left, of everything a pod asks for, at least as much as it asks for. It is scored by what it then has left,
//! or has not, as `scoringStrategy` says.

use corten_meta::Quantity;
use corten_reconcile::Actor;

use crate::{
    Plugin, PodInfo,
    arguments::{Arguments, FitArguments, Shape, Strategy},
    devices,
    framework::{Normalize, Points, Reason, Rejection, SCORE_MAX, Score, Shortfall},
    requests::{self, Lack},
    snapshot::Row,
};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "NodeResourcesFit",
    filter: Some(filter),
    shortfall: Some(Shortfall { size: shortfall, text: shortfall_text }),
    score: Some(Score { weight: 1, points: Points::Each { raw, normalize: Normalize::Keep } }),
    actor: Actor::Operator,
    wait: "InsufficientResources",
    ..Plugin::NONE
};

fn filter<'p>(pod: &'p PodInfo, row: &Row<'_>, arguments: &Arguments, rejection: &mut Rejection<'p>) {
    if row.n_pods + 1 > row.pods_max {
        rejection.because(Reason::Text("Too many pods"));
    }
    for_each_lack(pod, row, &arguments.fit, |it| match it.is_final {
        true => rejection.finally_because(Reason::Insufficient(it.resource)),
        false => rejection.because(Reason::Insufficient(it.resource)),
    });
}

/// Calls `found` with each resource of which too little is left.
fn for_each_lack<'p>(pod: &'p PodInfo, row: &Row<'_>, arguments: &FitArguments, found: impl FnMut(Lack<'p>)) {
    // A claim for devices may be made for it: see DynamicResources.
    let is_counted =
        |name: &str| !arguments.ignores(name) && devices::class_on(name, row.allocatable, row.classes).is_none();
    requests::for_each_lack(&pod.requested, row.allocatable, row.requested, is_counted, found);
}

/// What is missing, in thousandths of what is asked for, all resources together.
fn shortfall(pod: &PodInfo, row: &Row<'_>, arguments: &Arguments) -> i64 {
    let mut sum = i64::from(row.n_pods + 1 > row.pods_max) * 1000;
    for_each_lack(pod, row, &arguments.fit, |it| {
        let share = i128::from(it.missing) * 1000 / i128::from(it.wanted);
        sum = sum.saturating_add(i64::try_from(share).unwrap_or(i64::MAX));
    });
    sum
}

fn shortfall_text(pod: &PodInfo, row: &Row<'_>, arguments: &Arguments) -> String {
    let mut parts = Vec::new();
    if row.n_pods + 1 > row.pods_max {
        parts.push(format!("runs its {} pods already", row.pods_max));
    }
    for_each_lack(pod, row, &arguments.fit, |it| {
        let missing = match it.resource {
            "cpu" => Quantity::millis(it.missing),
            "memory" | "ephemeral-storage" => Quantity::bytes(it.missing),
            _ => Quantity::units(it.missing),
        };
        parts.push(format!("lacks {missing} {}", it.resource));
    });
    parts.join(", ")
}

/// As in `resourceAllocationScorer`: cpu and memory count with a guess for containers that ask for nothing, and a resource that
/// a node has none of does not count.
fn raw(pod: &PodInfo, row: &Row<'_>, arguments: &Arguments) -> i64 {
    let (mut sum, mut weights) = (0_i128, 0_i128);
    for (resource, weight) in &arguments.fit.resources.0 {
        let Some(of) = row.use_of(resource, pod, &pod.guessed, row.guessed) else { continue };
        let (total, used) = (of.total, of.after);
        let points = match &arguments.fit.strategy {
            Strategy::LeastAllocated => least(used, total),
            Strategy::MostAllocated => most(used, total),
            Strategy::RequestedToCapacityRatio(shape) => match by_ratio(shape, used, total) {
                // `buildRequestedToCapacityRatioScorerFunction`: what has no points has no weight.
                0 => continue,
                points => points,
            },
        };
        sum += i128::from(points) * i128::from(*weight);
        weights += i128::from(*weight);
    }
    if weights == 0 {
        return 0;
    }
    let is_ratio = matches!(arguments.fit.strategy, Strategy::RequestedToCapacityRatio(_));
    // A ratio is rounded, the others are cut off.
    let mean = if is_ratio { (2 * sum + weights) / (2 * weights) } else { sum / weights };
    i64::try_from(mean).unwrap_or(SCORE_MAX)
}

fn percent(part: i64, total: i64) -> i64 {
    let share = i128::from(part) * i128::from(SCORE_MAX) / i128::from(total);
    i64::try_from(share).unwrap_or(SCORE_MAX).min(SCORE_MAX)
}

fn least(used: i64, total: i64) -> i64 {
    if used > total { 0 } else { percent(total.saturating_sub(used), total) }
}

/// Guesses may be more than there is.
fn most(used: i64, total: i64) -> i64 {
    percent(used.min(total), total)
}

fn by_ratio(shape: &Shape, used: i64, total: i64) -> i64 {
    shape.at(if used > total { SCORE_MAX } else { percent(used, total) })
}
