//! How many things a Pod may be made of. Kubernetes has no bound but the size of an object, and no node could run such a Pod;
//! but scheduler and kubelet look at each of these lists for each element of another, and all other Pods wait meanwhile.

use corten_meta::Violation;
use corten_validation::read::items;
use serde_json::Value;

use crate::Kind;

/// Far more than any Pod has.
const MOST: usize = 1_000;
const LISTS: &[&str] = &[
    "/containers",
    "/initContainers",
    "/ephemeralContainers",
    "/volumes",
    "/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution",
    "/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution",
];

/// Where objects of a kind have the spec of a Pod.
fn spec_of_pods(kind: &Kind) -> Option<&'static str> {
    match (&*kind.resource.group, &*kind.resource.kind) {
        ("", "Pod") => Some("/spec"),
        ("", "PodTemplate") => Some("/template/spec"),
        ("batch", "CronJob") => Some("/spec/jobTemplate/spec/template/spec"),
        ("", "ReplicationController") | ("batch", "Job") => Some("/spec/template/spec"),
        ("apps", "DaemonSet" | "Deployment" | "ReplicaSet" | "StatefulSet") => Some("/spec/template/spec"),
        _ => None,
    }
}

/// The lists that are too long, and longer than they were: what is stored can be updated, and go.
pub fn violations(kind: &Kind, new: &Value, old: Option<&Value>) -> Vec<Violation> {
    let Some(place) = spec_of_pods(kind) else { return Vec::new() };
    let Some(spec) = new.pointer(place) else { return Vec::new() };
    let before = old.and_then(|it| it.pointer(place));
    let too_long = LISTS.iter().filter_map(|list| {
        let n = items(spec, list).len();
        let is_too_long = n > MOST && n > before.map_or(0, |it| items(it, list).len());
        let path = || format!("{place}{list}").trim_start_matches('/').replace('/', ".");
        is_too_long.then(|| Violation::too_many(path(), n, MOST))
    });
    too_long.collect()
}

#[cfg(test)]
mod tests;
