//! Which pods leave so that the system's own have room (`CriticalPodAdmissionHandler`): as few as can be, first such as are promised
//! nothing, and of those that do the ones that ask for the least.

use std::cmp::Ordering;

use corten_api::core::v1::Pod;

use crate::{
    Qos,
    spec::{
        pod::{is_static, is_system_critical, spec_of},
        requests::requests,
        sandbox::qos,
    },
};

pub(crate) const PREEMPTING: &str = "Preempting";
pub(crate) const MESSAGE: &str = "Preempted in order to admit critical pod";

/// How much of what the node has too little.
pub(crate) type Shortage = Vec<(&'static str, i64)>;

/// `IsCriticalPod`.
pub(crate) fn is_critical(pod: &Pod) -> bool {
    is_static(pod) || is_system_critical(pod)
}

/// `Preemptable`.
fn may_preempt(preemptor: &Pod, other: &Pod) -> bool {
    let priority = |it: &Pod| spec_of(it).priority;
    (is_critical(preemptor) && !is_critical(other))
        || priority(preemptor).zip(priority(other)).is_some_and(|(own, other)| own > other)
}

/// The places among `running` of those that leave for `pod` (`getPodsToPreempt`).
///
/// # Errors
/// All of them together do not make enough room. In upstream's words.
pub(crate) fn to_preempt(pod: &Pod, running: &[&Pod], short: &Shortage) -> Result<Vec<usize>, String> {
    let of = |class: Qos| -> Vec<usize> {
        (0..running.len()).filter(|it| may_preempt(pod, running[*it]) && qos(running[*it]) == class).collect()
    };
    let (best_effort, burstable, guaranteed) = (of(Qos::BestEffort), of(Qos::Burstable), of(Qos::Guaranteed));
    let without = |gone: &[&[usize]]| left(short, gone.concat().iter().map(|it| running[*it]));
    let lacking = without(&[&best_effort, &burstable, &guaranteed]);
    if !lacking.is_empty() {
        return Err(none_found(&lacking));
    }
    let guaranteed = nearest(guaranteed, running, without(&[&best_effort, &burstable]))?;
    let burstable = nearest(burstable, running, without(&[&best_effort, &guaranteed]))?;
    let best_effort = nearest(best_effort, running, without(&[&burstable, &guaranteed]))?;
    Ok([best_effort, burstable, guaranteed].concat())
}

/// What is still short when these pods are gone.
fn left<'p>(short: &Shortage, gone: impl Iterator<Item = &'p Pod>) -> Shortage {
    let mut short = short.clone();
    for pod in gone {
        short.iter_mut().for_each(|(name, amount)| *amount = amount.saturating_sub(request(pod, name)));
        short.retain(|it| it.1 > 0);
    }
    short
}

/// One after the other that which comes nearest to what is short (`getPodsToPreemptByDistance`).
fn nearest(mut pods: Vec<usize>, running: &[&Pod], mut short: Shortage) -> Result<Vec<usize>, String> {
    let mut chosen = Vec::new();
    while !short.is_empty() {
        let rank = |at: &usize| (distance(running[*at], &short), running[*at]);
        let best = (0..pods.len()).reduce(|best, it| {
            let ((near, one), (other_near, other)) = (rank(&pods[best]), rank(&pods[it]));
            let order = other_near.total_cmp(&near).then_with(|| compare_requests(other, one));
            if order == Ordering::Less { it } else { best }
        });
        let Some(best) = best else { return Err(none_found(&short)) };
        let best = pods.remove(best);
        short = left(&short, std::iter::once(running[best]));
        chosen.push(best);
    }
    Ok(chosen)
}

/// How far the pod's end is from making room: each resource weighs the same.
#[expect(clippy::cast_precision_loss, reason = "as upstream reckons it")]
fn distance(pod: &Pod, short: &Shortage) -> f64 {
    let part = |(name, amount): &(&str, i64)| {
        let rest = amount.saturating_sub(request(pod, name)).max(0);
        (rest as f64 / *amount as f64).powi(2)
    };
    short.iter().map(part).sum()
}

fn compare_requests(one: &Pod, other: &Pod) -> Ordering {
    let of = |it: &Pod| ["memory", "cpu"].map(|name| request(it, name));
    of(one).cmp(&of(other))
}

fn request(pod: &Pod, name: &str) -> i64 {
    if name == "pods" { 1 } else { requests(pod).get(name).copied().unwrap_or(0) }
}

fn none_found(short: &Shortage) -> String {
    let short: String = short.iter().map(|(name, amount)| format!("(res: {name}, q: {amount}), ")).collect();
    format!(
        "preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [{short}]"
    )
}
