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
mod tests {
    use serde_json::json;

    use super::*;
    use crate::KINDS;

    #[test]
    fn every_kind_that_makes_pods_is_bounded() {
        let of_pods = |kind: &&Kind| {
            let of = corten_schema::find(kind.schema.name()).expect("every kind has a type");
            corten_schema::wide::places(of, &json!({ "spec": { "template": { "spec": {} }, "jobTemplate": { "spec": { "template": { "spec": {} } } } }, "template": { "spec": {} } }))
                .iter()
                .any(|it| it.path.ends_with("/ephemeralContainers"))
        };
        let found: Vec<&str> = KINDS.iter().filter(of_pods).map(|it| &*it.resource.kind).collect();
        let bounded: Vec<&str> =
            KINDS.iter().filter(|it| spec_of_pods(it).is_some()).map(|it| &*it.resource.kind).collect();
        assert_eq!(found, bounded);
    }

    #[test]
    fn what_is_too_long_gets_no_longer() {
        let pods = crate::by_kind("v1", "Pod").expect("there are Pods");
        let pod = |n: usize| json!({ "spec": { "containers": vec![json!({}); n], "volumes": [{}] } });
        for (old, new, refused) in
            [(None, 1_000, false), (None, 1_001, true), (Some(1_000), 1_001, true), (Some(2_000), 1_999, false)]
        {
            let old = old.map(pod);
            let found = violations(pods, &pod(new), old.as_ref());
            let told: Vec<String> = found.iter().map(ToString::to_string).collect();
            let expected = format!("spec.containers: Too many: {new}: must have at most 1000 items");
            assert_eq!(told, if refused { vec![expected] } else { Vec::new() });
        }
    }
}
