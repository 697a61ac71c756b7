//! One step of the rolling update: old pods go within `maxUnavailable`, or new ones come beside them within `maxSurge`.

use super::{daemons::Daemons, eligible::Verdict};
use crate::{int_or_percent, projections::Pod};

/// A node's pods by version.
enum OnNode<'a> {
    Nothing,
    New(&'a Pod),
    Old(&'a Pod),
    Both {
        new: &'a Pod,
        old: &'a Pod,
    },
    /// More than one of a version: others must sort that out first.
    Unclear,
}

pub(super) fn run(daemons: &mut Daemons<'_>) {
    let surge_max = surge(daemons);
    if surge_max == 0 { replace(daemons) } else { surpass(daemons, surge_max) }
}

fn n_desired(daemons: &Daemons<'_>) -> i64 {
    let n = daemons.nodes.iter().filter(|it| it.1 == Verdict::ShouldRun).count();
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// How many nodes may have two pods at once.
pub(super) fn surge(daemons: &Daemons<'_>) -> i64 {
    let strategy = &daemons.set.spec.update_strategy;
    if strategy.r#type != "RollingUpdate" {
        return 0;
    }
    int_or_percent::rounded_up(&strategy.rolling_update.max_surge, n_desired(daemons))
}

/// As in `updatedDesiredNodeCounts`: where nothing could move, one pod may be missing.
fn unavailable_max(daemons: &Daemons<'_>) -> i64 {
    let desired = n_desired(daemons);
    let rule = &daemons.set.spec.update_strategy.rolling_update.max_unavailable;
    let unavailable = if rule.is_null() { 1 } else { int_or_percent::rounded_up(rule, desired) };
    if desired > 0 && unavailable == 0 { 1 } else { unavailable }
}

fn versions<'a>(daemons: &Daemons<'a>, pods: &[&'a Pod]) -> OnNode<'a> {
    let live = pods.iter().copied().filter(|it| !it.metadata.is_deleting());
    let (new, old): (Vec<&Pod>, Vec<&Pod>) = live.partition(|it| daemons.is_updated(it));
    match (&*new, &*old) {
        ([], []) => OnNode::Nothing,
        ([new], []) => OnNode::New(new),
        ([], [old]) => OnNode::Old(old),
        ([new], [old]) => OnNode::Both { new, old },
        _ => OnNode::Unclear,
    }
}

fn replace(daemons: &mut Daemons<'_>) {
    let mut n_unavailable = 0;
    let (mut free, mut candidates) = (Vec::new(), Vec::new());
    for pods in daemons.on_node.values() {
        match versions(daemons, pods) {
            OnNode::Nothing | OnNode::Both { .. } | OnNode::Unclear => n_unavailable += 1,
            OnNode::New(pod) => n_unavailable += i64::from(!daemons.is_available(pod)),
            OnNode::Old(pod) if daemons.is_available(pod) => candidates.push(pod),
            OnNode::Old(pod) => {
                n_unavailable += 1;
                free.push(pod);
            }
        }
    }
    let n_old = free.len() + candidates.len();
    let budget = usize::try_from(unavailable_max(daemons) - n_unavailable).unwrap_or(0);
    candidates.truncate(budget);
    for pod in free.into_iter().chain(candidates) {
        daemons.delete(pod);
    }
    wait_for_old(daemons, n_old);
}

fn surpass(daemons: &mut Daemons<'_>, surge_max: i64) {
    let mut n_surge = 0;
    let (mut done, mut free, mut candidates) = (Vec::new(), Vec::new(), Vec::new());
    for (node, pods) in &daemons.on_node {
        match versions(daemons, pods) {
            OnNode::Nothing | OnNode::New(_) => {}
            OnNode::Unclear => n_surge += 1,
            OnNode::Both { new, old } if daemons.is_available(new) => done.push((*node, old)),
            OnNode::Both { .. } => n_surge += 1,
            // As in `rollingUpdate`: where no new pod is to run, none comes beside the old one.
            OnNode::Old(_) if !should_run(daemons, node) => {}
            OnNode::Old(pod) if daemons.is_available(pod) => candidates.push((*node, 0)),
            OnNode::Old(_) => {
                n_surge += 1;
                free.push((*node, 0));
            }
        }
    }
    let n_old = done.len() + free.len() + candidates.len();
    let budget = usize::try_from(surge_max - n_surge).unwrap_or(0);
    candidates.truncate(budget);
    free.extend(candidates);
    for (_, pod) in done {
        daemons.delete(pod);
    }
    daemons.make_each(&free);
    wait_for_old(daemons, n_old);
}

fn should_run(daemons: &Daemons<'_>, node: &str) -> bool {
    let at = daemons.nodes.binary_search_by(|it| (*it.0.metadata.name).cmp(node));
    at.is_ok_and(|at| daemons.nodes[at].1 == Verdict::ShouldRun)
}

fn wait_for_old(daemons: &mut Daemons<'_>, n_old: usize) {
    if n_old > 0 {
        daemons.wait("OldPodsRemain", format!("{n_old} pods are of an older version"));
    }
}
