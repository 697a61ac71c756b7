//! The pods of a job: how they are made, marked and judged.

use std::time::Duration;

use corten_api::resources;
use corten_meta::Time;
use corten_reconcile::Effect;
use serde_json::{Map, Value, json};

use crate::{
    pod_template::pod_of,
    projections::{Job, Pod},
};

pub(super) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
/// A strategic merge patch takes out one finalizer and leaves what others add meanwhile.
pub(super) const DELETE_FINALIZERS: &str = "metadata.$deleteFromPrimitiveList/finalizers";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const IGNORED_FAILURES: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
/// As the API server's name generator: what is longer than a label's 63 characters is cut.
const PREFIX_LEN_MAX: usize = 58;

pub(super) fn is_tracked(pod: &Pod) -> bool {
    pod.metadata.finalizers.iter().any(|it| it == FINALIZER)
}

/// The pod's end is written down: the object may go.
pub(super) fn untrack(pod: &Pod) -> Effect {
    let metadata = json!({ "uid": pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER] });
    let (resource, key) = (resources::PODS, pod.metadata.key());
    Effect::StrategicPatch { resource, key, subresource: None, patch: json!({ "metadata": metadata }) }
}

/// Which completion of an indexed job it works on.
pub(super) fn index(pod: &Pod) -> Option<i64> {
    pod.metadata.annotations.get(INDEX)?.parse().ok().filter(|it| *it >= 0)
}

/// As in `onlyReplaceFailedPods`: unless only failed pods are replaced, one that is on its way out counts as failed, since
/// it may never get to say so.
pub(super) fn has_failed(job: &Job, pod: &Pod) -> bool {
    pod.has_failed() || (!replaces_failed_only(job) && pod.metadata.is_deleting() && !pod.has_succeeded())
}

pub(super) fn replaces_failed_only(job: &Job) -> bool {
    job.spec.pod_replacement_policy == "Failed" || job.spec.pod_failure_policy.is_some()
}

/// How many pods of its index failed before it, those that the failure policy ignores apart.
pub(super) fn failures_before(pod: &Pod) -> (i64, i64) {
    let count = |name: &str| pod.metadata.annotations.get(name).and_then(|it| it.parse::<i32>().ok()).unwrap_or(0);
    (i64::from(count(FAILURES).max(0)), i64::from(count(IGNORED_FAILURES).max(0)))
}

/// As in `getFinishedTime`: when a pod ended, as its containers say, else when it ceased to be ready, else when its deletion
/// began.
pub(super) fn finished_at(pod: &Pod) -> Option<Time> {
    let containers = &pod.status.container_statuses;
    let ends = containers.iter().map(|it| it.state.terminated.as_ref().and_then(|it| it.finished_at));
    let last = ends.collect::<Option<Vec<Time>>>().and_then(|it| it.into_iter().max());
    let grace = Duration::from_secs(pod.metadata.deletion_grace_period_seconds.map_or(0, |it| it.unsigned_abs()));
    let deleted_at = || pod.metadata.deletion_timestamp.map(|it| it.before(grace));
    let unready = || pod.status.conditions.iter().find(|it| it.r#type == "Ready" && it.status == "False");
    last.or_else(|| unready().and_then(|it| it.last_transition_time))
        .or_else(deleted_at)
        .or(pod.metadata.creation_timestamp)
}

/// The template of all pods of a job: with the finalizer, and the index where there is one to tell.
pub(super) fn template(job: &Job) -> Value {
    let mut template = job.spec.template.clone();
    let mut finalizers = template["metadata"]["finalizers"].as_array().cloned().unwrap_or_default();
    if !finalizers.iter().any(|it| it == FINALIZER) {
        finalizers.push(json!(FINALIZER));
    }
    template["metadata"]["finalizers"] = Value::Array(finalizers);
    if job.is_indexed() {
        for field in ["initContainers", "containers"] {
            let containers = template["spec"].get_mut(field).and_then(Value::as_array_mut);
            containers.into_iter().flatten().for_each(tell_index);
        }
    }
    template
}

fn tell_index(container: &mut Value) {
    const NAME: &str = "JOB_COMPLETION_INDEX";
    let mut env = container["env"].as_array().cloned().unwrap_or_default();
    if !env.iter().any(|it| it["name"] == NAME) {
        let field = json!({ "fieldPath": format!("metadata.labels['{INDEX}']") });
        env.push(json!({ "name": NAME, "valueFrom": { "fieldRef": field } }));
        container["env"] = Value::Array(env);
    }
}

/// What a pod's name begins with.
pub(super) fn prefix(job: &Job, index: Option<i64>) -> String {
    let Some(index) = index else { return crate::names::prefix(&job.metadata.name) };
    let suffix = format!("-{index}-");
    let name = &job.metadata.name;
    format!("{}{suffix}", &name[..name.len().min(PREFIX_LEN_MAX - suffix.len())])
}

/// The pod of one index, with the failures before it where those are counted.
pub(super) fn pod(job: &Job, template: &Value, name: &str, index: Option<i64>, failures: Option<(i64, i64)>) -> Value {
    let mut pod = pod_of::<Job>(template, &job.metadata, name, &prefix(job, index));
    let Some(index) = index else { return pod };
    let mut annotations = Map::new();
    annotations.insert(INDEX.into(), json!(index.to_string()));
    if let Some((counted, ignored)) = failures {
        annotations.insert(FAILURES.into(), json!(counted.to_string()));
        if ignored > 0 {
            annotations.insert(IGNORED_FAILURES.into(), json!(ignored.to_string()));
        }
    }
    for (annotation, value) in annotations {
        pod["metadata"]["annotations"][annotation] = value;
    }
    pod["metadata"]["labels"][INDEX] = json!(index.to_string());
    pod["spec"]["hostname"] = json!(format!("{}-{index}", job.metadata.name));
    pod
}
