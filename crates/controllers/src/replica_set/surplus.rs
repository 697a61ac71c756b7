//! Which pods go first when there are too many, in upstream's order.

use std::{cmp::Ordering, collections::BTreeMap};

use corten_meta::Time;
use corten_reconcile::View;

use super::Replicated;
use crate::projections::Pod;

const COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// The first `count` of `pods` in the order in which they are missed least.
pub(super) fn choose<'a, T: Replicated>(
    view: &View,
    set: &T,
    pods: &[&'a Pod],
    count: usize,
    now: Time,
) -> Vec<&'a Pod> {
    let mut ranked = pods.to_vec();
    if count < pods.len() {
        let crowds = crowds(view, set, pods);
        let crowd = |pod: &Pod| crowds.get(&*pod.spec.node_name).copied().unwrap_or(0);
        ranked.sort_by(|a, b| order(a, b, crowd(a), crowd(b), now));
    }
    ranked.truncate(count);
    ranked
}

/// How many active pods of this set and its siblings (the other sets of its deployment) are on each node.
fn crowds<'a, T: Replicated>(view: &'a View, set: &'a T, pods: &[&'a Pod]) -> BTreeMap<&'a str, usize> {
    let mut crowds = BTreeMap::new();
    let mut count = |pod: &'a Pod| *crowds.entry(&*pod.spec.node_name).or_default() += 1;
    let Some(owner) = set.meta().controller() else {
        pods.iter().for_each(|it| count(it));
        return crowds;
    };
    for sibling in view.owned_by::<T>(&owner.uid) {
        view.owned_by::<Pod>(&sibling.meta().uid).filter(|it| it.is_active()).for_each(&mut count);
    }
    crowds
}

/// Sorts active pods so that those that are missed least come first, without regard to how crowded their nodes are.
pub(crate) fn sort_active(pods: &mut [&Pod], now: Time) {
    pods.sort_by(|a, b| order(a, b, 0, 0, now));
}

/// `Less`: `a` goes before `b`.
fn order(a: &Pod, b: &Pod, crowd_a: usize, crowd_b: usize, now: Time) -> Ordering {
    let by_ready_time = || match (a.is_ready(), b.is_ready()) {
        (true, true) => younger_first(a.ready_since(), b.ready_since(), a, b, now),
        _ => Ordering::Equal,
    };
    let (made_a, made_b) = (a.metadata.creation_timestamp, b.metadata.creation_timestamp);
    (!a.spec.node_name.is_empty())
        .cmp(&!b.spec.node_name.is_empty())
        .then_with(|| phase(a).cmp(&phase(b)))
        .then_with(|| a.is_ready().cmp(&b.is_ready()))
        .then_with(|| cost(a).cmp(&cost(b)))
        .then_with(|| crowd_b.cmp(&crowd_a))
        .then_with(by_ready_time)
        .then_with(|| b.restarts_most().cmp(&a.restarts_most()))
        .then_with(|| younger_first(made_a, made_b, a, b, now))
        .then_with(|| a.metadata.uid.cmp(&b.metadata.uid))
}

fn phase(pod: &Pod) -> u8 {
    match &*pod.status.phase {
        "Pending" | "" => 0,
        "Unknown" => 1,
        _ => 2,
    }
}

fn cost(pod: &Pod) -> i32 {
    pod.metadata.annotations.get(COST).and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// As in `ActivePodsWithRanks`: ages that have the same order of magnitude count as equal, and the uid decides; so it is
/// not always the newest pods, which one rollout put on one zone, that go.
fn younger_first(since_a: Option<Time>, since_b: Option<Time>, a: &Pod, b: &Pod, now: Time) -> Ordering {
    if since_a == since_b {
        return Ordering::Equal;
    }
    let magnitude = |since: Option<Time>| since.map_or(0, |it| now.since(it).as_nanos().max(1).ilog2());
    match (since_a, since_b) {
        // A time that is not known counts as the youngest.
        (None, Some(_)) => Ordering::Less,
        (Some(_), None) => Ordering::Greater,
        _ => magnitude(since_a).cmp(&magnitude(since_b)).then_with(|| a.metadata.uid.cmp(&b.metadata.uid)),
    }
}
