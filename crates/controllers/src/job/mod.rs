//! Runs the pods of each Job to their end, as often as it asks for.
//!
//! ```text
//! reconcile: claim pods -> count -> done, failed, out of time? take active pods away
//!                                -> else make or take away pods
//!                       -> status (finished pods by uid) -> finalizers -> (seen gone) counters -> condition
//! ```
//! Each pod carries a finalizer until the status has its uid, and its uid until it is seen without the finalizer: so no
//! pod is counted twice, and none is lost.

mod backoff;
mod failure_policy;
mod finish;
mod indexes;
mod manage;
mod pods;
mod tally;
mod track;

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Resource, Time};
use corten_reconcile::{Actor, Controller, CountedLook, Effect, Plan, Verb, View, Wait, Wake, Watch, Write};
use serde_json::{Value, json};

use tally::Tally;

use crate::{
    metrics::{JOB_SYNC_TOOK, JOB_SYNCS},
    ownership::claim,
    projections::{Job, Pod},
};

pub(crate) const CONTROLLER: &str = "kubernetes.io/job-controller";

pub struct Jobs;

impl Controller for Jobs {
    fn name(&self) -> &'static str {
        "job"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<Job>(Wake::With(keys_of_job)), Watch::new::<Pod>(Wake::With(keys_of_pod))]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Create, resource: resources::PODS, fields: &[] },
                Write { verb: Verb::Delete, resource: resources::PODS, fields: &[] },
                Write {
                    verb: Verb::Patch,
                    resource: resources::PODS,
                    fields: &["metadata.finalizers", pods::DELETE_FINALIZERS, "metadata.ownerReferences"],
                },
                Write { verb: Verb::Patch, resource: resources::JOBS, fields: &["metadata.annotations", "status"] },
            ]
        }
    }

    fn about(&self) -> Option<Resource> {
        Some(resources::JOBS)
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        if let Some((name, rest)) = key.name.split_once('/') {
            return release_orphans(view, &key.namespace, name, rest);
        }
        let Some(job) = view.get::<Job>(key) else { return Plan::default() };
        if job.spec.managed_by.as_deref().is_some_and(|it| it != CONTROLLER) {
            let message = "another program manages it, as its managedBy says";
            return Plan { waits: vec![Wait::new("ManagedElsewhere", message, Actor::External)], ..Plan::default() };
        }
        if job.finish().is_some() {
            // Whoever came late is not counted any more.
            return release(view.owned_by::<Pod>(&job.metadata.uid));
        }
        let Some(selector) = &job.spec.selector else { return Plan::default() };
        let mut claim = claim::<Job, Pod>(view, job, selector, |_| true);
        if !claim.effects.is_empty() {
            // Counting begins when the view shows who belongs here.
            claim.effects.iter_mut().for_each(|it| with_finalizer(view, job, it));
            let look = Some(look(job, "reconciling"));
            return Plan { effects: claim.effects, look, ..Plan::default() };
        }
        Tally::new(view, job, claim.owned, now).run()
    }
}

/// What a look at a job is counted as (`syncJob`); finished ones, and those of other programs, are not counted.
fn look(job: &Job, action: &'static str) -> CountedLook {
    CountedLook { total: &JOB_SYNCS, seconds: &JOB_SYNC_TOOK, labels: vec![track::mode(job), action] }
}

/// A pod that is adopted gets the finalizer with its owner, one that is let go loses both.
fn with_finalizer(view: &View, job: &Job, effect: &mut Effect) {
    let Effect::Patch { key, patch, .. } = effect else { return };
    let Some(pod) = view.get::<Pod>(key) else { return };
    let owners = patch["metadata"]["ownerReferences"].as_array();
    let is_adopted = owners.is_some_and(|it| it.iter().any(|owner| owner["uid"] == *job.metadata.uid));
    let others = pod.metadata.finalizers.iter().map(String::as_str).filter(|it| *it != pods::FINALIZER);
    let finalizers: Vec<&str> = others.chain(is_adopted.then_some(pods::FINALIZER)).collect();
    patch["metadata"]["finalizers"] = if finalizers.is_empty() { Value::Null } else { json!(finalizers) };
}

// ---- pods that no job counts ----

/// Names the pods of a job that is no more, by the job's uid; or one pod that no job controls, with an empty job. No
/// object has a slash in its name.
fn orphans_key(namespace: &str, job: &str, uid_or_pod: &str) -> Key {
    Key::new(namespace, format!("{job}/{uid_or_pod}"))
}

fn is_there(view: &View, namespace: &str, name: &str, uid: &str) -> bool {
    view.get::<Job>(&Key::new(namespace, name)).is_some_and(|it| it.metadata.uid == uid)
}

fn keys_of_job(view: &View, job: &ObjectMeta) -> Vec<Key> {
    let orphans = (!is_there(view, &job.namespace, &job.name, &job.uid))
        .then(|| orphans_key(&job.namespace, &job.name, &job.uid));
    std::iter::once(job.key()).chain(orphans).collect()
}

/// A pod's controller, the jobs that may adopt it, or what takes its finalizer where there is neither.
fn keys_of_pod(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    if let Some(owner) = pod.controller() {
        return match &*owner.kind {
            "Job" if is_there(view, &pod.namespace, &owner.name, &owner.uid) => {
                vec![Key::new(&*pod.namespace, &*owner.name)]
            }
            "Job" => vec![orphans_key(&pod.namespace, &owner.name, &owner.uid)],
            _ => Vec::new(),
        };
    }
    let adopting: Vec<Key> = adopting(view, pod).map(|it| it.metadata.key()).collect();
    if adopting.is_empty() && pod.finalizers.iter().any(|it| it == pods::FINALIZER) {
        return vec![orphans_key(&pod.namespace, "", &pod.name)];
    }
    adopting
}

fn adopting<'a>(view: &'a View, pod: &'a ObjectMeta) -> impl Iterator<Item = &'a Job> {
    let jobs = view.in_namespace::<Job>(&pod.namespace).filter(|it| it.finish().is_none());
    jobs.filter(|it| it.spec.selector.as_ref().is_some_and(|selector| selector.matches(&pod.labels)))
}

/// `job` is gone, and `rest` was its uid; or it is empty, and `rest` is a pod's name.
fn release_orphans(view: &View, namespace: &str, job: &str, rest: &str) -> Plan {
    if job.is_empty() {
        let pod = view.get::<Pod>(&Key::new(namespace, rest));
        let is_orphan = |it: &&Pod| it.metadata.controller().is_none() && adopting(view, &it.metadata).next().is_none();
        return release(pod.filter(is_orphan).into_iter());
    }
    if is_there(view, namespace, job, rest) {
        return Plan::default();
    }
    release(view.owned_by::<Pod>(rest))
}

/// Nobody will count these pods any more.
fn release<'a>(pods: impl Iterator<Item = &'a Pod>) -> Plan {
    let held = pods.filter(|it| pods::is_tracked(it)).take(corten_reconcile::EFFECTS_MAX);
    Plan { effects: held.map(pods::untrack).collect(), ..Plan::default() }
}
