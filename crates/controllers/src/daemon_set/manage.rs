//! One pod on every node that should have one: makes what is missing, takes away what is surplus or has finished.

use std::time::Duration;

use corten_reconcile::{EFFECTS_MAX, Effect, EventType};

use super::{daemons::Daemons, eligible::Verdict, pods, rolling};
use crate::projections::Pod;

const FAILED_BACKOFF: Duration = Duration::from_secs(1);
const FAILED_BACKOFF_MAX: Duration = Duration::from_secs(15 * 60);

pub(super) fn run(daemons: &mut Daemons<'_>) {
    let mut lacking = Vec::new();
    let mut surplus = Vec::new();
    for (node, verdict) in daemons.nodes.clone() {
        let name = &*node.metadata.name;
        let pods = daemons.on_node.get(name).cloned();
        match (verdict, pods) {
            (Verdict::ShouldRun, None) => lacking.push((name, 0)),
            (Verdict::MustNot, Some(pods)) => surplus.extend(pods.into_iter().filter(|it| !it.metadata.is_deleting())),
            (_, Some(pods)) => {
                let running = take_finished(daemons, name, pods, &mut surplus, &mut lacking);
                surplus.extend(beyond_one(daemons, running));
            }
            (_, None) => {}
        }
    }
    surplus.extend(without_node(daemons));
    if !lacking.is_empty() {
        let message = format!("{} nodes have no pod yet", lacking.len());
        daemons.wait("PodsMissing", message);
    }
    if !surplus.is_empty() {
        let message = format!("{} pods are where none should be, or have finished", surplus.len());
        daemons.wait("PodsSurplus", message);
    }
    let deletes = surplus.into_iter().map(Step::Delete);
    let mut steps: Vec<Step<'_>> = deletes.chain(lacking.into_iter().map(|it| Step::Make(it.0, it.1))).collect();
    go_on_after_failed(&mut steps, daemons.failed_effect());
    carry_out(daemons, &steps);
}

enum Step<'a> {
    Delete(&'a Pod),
    /// For this node, where so many have failed before.
    Make(&'a str, u32),
}

impl Step<'_> {
    fn is(&self, effect: &Effect) -> bool {
        match (self, effect) {
            (Self::Delete(pod), Effect::Delete { key, .. }) => pod.metadata.key() == *key,
            (Self::Make(node, _), Effect::Create { object, .. }) => pods::node_of(object) == Some(node),
            _ => false,
        }
    }
}

/// One pod that is refused keeps no other waiting: its turn comes again after theirs.
fn go_on_after_failed(steps: &mut [Step<'_>], failed: Option<&Effect>) {
    if let Some(at) = failed.and_then(|failed| steps.iter().position(|it| it.is(failed))) {
        steps.rotate_left(at + 1);
    }
}

/// Those of one kind that follow each other go side by side.
fn carry_out(daemons: &mut Daemons<'_>, steps: &[Step<'_>]) {
    let mut names = daemons.names().into_iter();
    let mut n_deletes = 0;
    for step in steps {
        match step {
            Step::Delete(pod) if n_deletes < EFFECTS_MAX => {
                n_deletes += 1;
                daemons.delete(pod);
            }
            Step::Make(node, failures) => {
                if let Some(name) = names.next() {
                    daemons.make(&name, node, *failures);
                }
            }
            Step::Delete(_) => {}
        }
    }
}

/// Those that have not finished. The others go, failed ones after a back-off that grows with each in a row.
fn take_finished<'a>(
    daemons: &mut Daemons<'a>,
    node: &'a str,
    pods: Vec<&'a Pod>,
    surplus: &mut Vec<&'a Pod>,
    lacking: &mut Vec<(&'a str, u32)>,
) -> Vec<&'a Pod> {
    let mut running = Vec::new();
    let is_alone = pods.len() == 1;
    for pod in pods.into_iter().filter(|it| !it.metadata.is_deleting()) {
        let (namespace, name) = (&pod.metadata.namespace, &pod.metadata.name);
        if pod.has_failed() {
            let n_before = failures_before(daemons, pod);
            let until = pod.metadata.creation_timestamp.map(|it| it.after(backoff(n_before)));
            if let Some(until) = until.filter(|it| *it > daemons.now) {
                daemons.wake(until);
                daemons.wait("FailedPodBackOff", format!("pod {name} failed and is replaced after a while"));
                continue;
            }
            let message = format!("Found failed daemon pod {namespace}/{name} on node {node}, will try to kill it");
            daemons.effects.push(daemons.event(EventType::Warning, "FailedDaemonPod", message));
            surplus.push(pod);
            if is_alone {
                // Its successor must know how many went before, and only now does anybody.
                lacking.push((node, n_before.saturating_add(1)));
            }
        } else if pod.has_succeeded() {
            let message =
                format!("Found succeeded daemon pod {namespace}/{name} on node {node}, will try to delete it");
            daemons.effects.push(daemons.event(EventType::Normal, "SucceededDaemonPod", message));
            surplus.push(pod);
        } else {
            running.push(pod);
        }
    }
    running
}

/// As in `failedPodsBackoff`: whoever has lived for twice the longest back-off begins anew.
fn failures_before(daemons: &Daemons<'_>, pod: &Pod) -> u32 {
    let lived = pod.metadata.creation_timestamp.map(|it| daemons.now.since(it)).unwrap_or_default();
    if lived > FAILED_BACKOFF_MAX * 2 { 0 } else { pods::failures(&pod.metadata) }
}

fn backoff(n_failures: u32) -> Duration {
    match n_failures {
        0 => Duration::ZERO,
        it => FAILED_BACKOFF.saturating_mul(1 << (it - 1).min(20)).min(FAILED_BACKOFF_MAX),
    }
}

/// Of the pods that run on one node, those that are too many.
fn beyond_one<'a>(daemons: &mut Daemons<'a>, mut running: Vec<&'a Pod>) -> Vec<&'a Pod> {
    if running.len() <= 1 {
        return Vec::new();
    }
    if rolling::surge(daemons) == 0 {
        return running.split_off(1);
    }
    // Amid a surge: the oldest of each version.
    let (new, old): (Vec<_>, Vec<_>) = running.into_iter().partition(|it| daemons.is_updated(it));
    let mut surplus: Vec<&Pod> = new.iter().skip(1).chain(old.iter().skip(1)).copied().collect();
    if let (Some(new), Some(old)) = (new.first(), old.first())
        && (!old.is_ready() || daemons.is_available(new))
    {
        surplus.push(old);
    }
    surplus
}

/// Pods that were meant for nodes that are gone, and not bound there yet: nothing else would ever take them away.
fn without_node<'a>(daemons: &Daemons<'a>) -> Vec<&'a Pod> {
    let exists = |name: &str| daemons.nodes.binary_search_by(|it| (*it.0.metadata.name).cmp(name)).is_ok();
    let lost = daemons.on_node.iter().filter(|it| !exists(it.0)).flat_map(|it| it.1);
    lost.copied().filter(|it| it.spec.node_name.is_empty() && !it.metadata.is_deleting()).collect()
}
