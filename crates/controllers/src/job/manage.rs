//! As many pods as the job may have at once: makes those that are missing, takes away those that are surplus.

use corten_api::resources;
use corten_meta::Key;
use corten_reconcile::{Actor, EFFECTS_MAX, Effect, EventType};

use super::{
    backoff::{self, Record},
    failure_policy::verdict,
    indexes::Indexes,
    pods,
    tally::Tally,
};
use crate::{names, pod_template::delete_pod, projections::Pod, replica_set::sort_active};

/// The job has ended: what still runs goes, and is counted.
pub(super) fn take_all(tally: &mut Tally<'_>) {
    for pod in std::mem::take(&mut tally.active).into_iter().take(EFFECTS_MAX) {
        tally.take(pod);
    }
}

pub(super) fn run(tally: &mut Tally<'_>) {
    if tally.job.metadata.is_deleting() {
        return;
    }
    let wanted = wanted(tally);
    let surplus = surplus(tally, usize::try_from(tally.n_active - wanted).unwrap_or(0));
    if !surplus.is_empty() {
        // As in `manageJob`: pods are either taken away or made. These go uncounted, it was not their fault.
        for pod in surplus.into_iter().take(EFFECTS_MAX) {
            if pods::is_tracked(pod) {
                tally.removals.push(pods::untrack(pod));
            }
            tally.take(pod);
        }
        return;
    }
    let n_awaited = if pods::replaces_failed_only(tally.job) { tally.n_terminating } else { 0 };
    if n_awaited > 0 {
        tally.wait("PodsTerminating", format!("{n_awaited} pods are stopping, they are replaced then"), Actor::Cluster);
    }
    let n_missing = usize::try_from(wanted - n_awaited - tally.n_active).unwrap_or(0).min(EFFECTS_MAX);
    if n_missing > 0 && !tally.job.spec.suspend {
        make(tally, n_missing);
    }
}

/// How many pods may be active now.
fn wanted(tally: &Tally<'_>) -> i64 {
    if tally.job.spec.suspend {
        return 0;
    }
    let parallelism = tally.job.spec.parallelism.unwrap_or(1);
    match tally.job.spec.completions {
        Some(completions) => (completions - tally.n_succeeded).clamp(0, parallelism.max(0)),
        // One has succeeded: the others come to their end, and none follows.
        None if tally.n_succeeded > 0 => tally.n_active,
        None => parallelism,
    }
}

/// At least `count` of the active pods: first those of an index that is another's, or not wanted.
fn surplus<'a>(tally: &Tally<'a>, count: usize) -> Vec<&'a Pod> {
    let mut left = tally.active.clone();
    sort_active(&mut left, tally.now);
    let mut surplus = Vec::new();
    if tally.job.is_indexed() {
        // From the pod that is missed most on: the first of each index stays.
        let mut seen = std::collections::BTreeSet::new();
        let mut first = Vec::new();
        for pod in left.into_iter().rev() {
            let is_first = tally.valid_index(pod).is_some_and(|it| seen.insert(it));
            if is_first { first.push(pod) } else { surplus.push(pod) }
        }
        first.reverse();
        left = first;
    }
    let n_more = count.saturating_sub(surplus.len());
    surplus.extend(left.into_iter().take(n_more));
    surplus
}

fn make(tally: &mut Tally<'_>, count: usize) {
    let job = tally.job;
    if job.spec.backoff_limit_per_index.is_none()
        && let Some(until) = tally.record.map(Record::until).filter(|it| *it > tally.now)
    {
        tally.wake(until);
        tally.wait("BackOff", format!("a pod failed, the next one is made at {until}"), Actor::Cluster);
        return;
    }
    let indexes: Vec<Option<i64>> =
        if job.is_indexed() { pending(tally, count).into_iter().map(Some).collect() } else { vec![None; count] };
    let template = pods::template(job);
    // One row of endings for all, whatever the names begin with.
    let endings = names::fresh("", &job.metadata.uid, tally.now);
    let mut made = Vec::new();
    for (index, ending) in indexes.into_iter().zip(endings) {
        let name = format!("{}{ending}", pods::prefix(job, index));
        if tally.view.meta(&resources::PODS, &Key::new(&*job.metadata.namespace, &*name)).is_some() {
            // Its turn comes with the next call.
            continue;
        }
        let failures = job.spec.backoff_limit_per_index.map(|_| failures_before(tally, index));
        let object = pods::pod(job, &template, &name, index, failures);
        made.push(Effect::Create { resource: resources::PODS, object });
        made.push(tally.event(EventType::Normal, "SuccessfulCreate", format!("Created pod: {name}")));
    }
    if !tally.has_failed_to_create() {
        tally.n_active += i64::try_from(made.len() / 2).unwrap_or(0);
    }
    tally.creates.append(&mut made);
}

/// The lowest indexes that nobody works on, and that may be worked on now.
fn pending(tally: &mut Tally<'_>, count: usize) -> Vec<i64> {
    let mut taken = tally.succeeded.with(&tally.indexes_of(Pod::is_active));
    if pods::replaces_failed_only(tally.job) {
        taken = taken.with(&tally.indexes_of(Pod::is_terminating));
    }
    taken = taken.with(tally.failed.as_ref().unwrap_or(&Indexes::default()));
    let missing = taken.missing(tally.completions(), count);
    let until = |it: &i64| tally.kept.get(it).and_then(|pod| backoff::of_index(pod)).filter(|at| *at > tally.now);
    let (waiting, ready): (Vec<i64>, Vec<i64>) = missing.into_iter().partition(|it| until(it).is_some());
    if let Some(next) = waiting.iter().filter_map(until).min() {
        tally.wake(next);
        let message = format!("pods of {} indexes failed, the next one is made at {next}", waiting.len());
        tally.wait("BackOff", message, Actor::Cluster);
    }
    ready
}

/// What the pod of an index must know of those before it.
fn failures_before(tally: &Tally<'_>, index: Option<i64>) -> (i64, i64) {
    let Some(last) = index.and_then(|it| tally.kept.get(&it)) else { return (0, 0) };
    let (counted, ignored) = pods::failures_before(last);
    if verdict(tally.job, last).counts() {
        (counted.saturating_add(1), ignored)
    } else {
        (counted, ignored.saturating_add(1))
    }
}

impl Tally<'_> {
    fn take(&mut self, pod: &Pod) {
        self.removals.push(delete_pod(pod));
        let message = format!("Deleted pod: {}", pod.metadata.name);
        self.removals.push(self.event(EventType::Normal, "SuccessfulDelete", message));
        self.n_active -= 1;
        self.n_ready -= i64::from(pod.is_ready());
        self.n_terminating += 1;
    }
}
