use corten_api::resources::{RESOURCE_CLAIMS, SERVICES};
use serde_json::json;

use super::*;
use crate::quota::{charge, used, written};

/// A class that names a resource, one that names none, and what else there is.
struct World {
    classes: DeviceClasses,
    pod: Value,
    claims: Vec<Value>,
}

impl World {
    fn with(pod: Value, claims: Vec<Value>) -> Self {
        let named = Some("example.com/gpu".to_owned());
        Self { classes: [("gpu".into(), named), ("nic".into(), None)].into_iter().collect(), pod, claims }
    }
}

impl Neighbours for World {
    fn classes(&self) -> &DeviceClasses {
        &self.classes
    }

    fn pod(&self, namespace: &str, name: &str) -> Option<Value> {
        let meta = &self.pod["metadata"];
        (meta["namespace"] == namespace && meta["name"] == name).then(|| self.pod.clone())
    }

    fn claims(&self, namespace: &str) -> Vec<Value> {
        self.claims.iter().filter(|it| it["metadata"]["namespace"] == namespace).cloned().collect()
    }
}

fn now() -> Time {
    Time::from_unix_seconds(1_700_000_000)
}

fn pod(resources: &Value, status: Value) -> Value {
    let containers = json!([{ "name": "c", "resources": { "requests": resources } }]);
    json!({ "metadata": { "name": "p", "namespace": "n", "uid": "u" }, "spec": { "containers": containers }, "status": status })
}

fn claim(name: &str, devices: &[(&str, i64)]) -> Value {
    let exactly = |it: &(&str, i64)| json!({ "exactly": { "deviceClassName": it.0, "allocationMode": "ExactCount", "count": it.1 } });
    let requests: Vec<Value> = devices.iter().map(exactly).collect();
    let metadata = json!({ "name": name, "namespace": "n", "creationTimestamp": "2026-11-20T12:00:00Z" });
    json!({ "metadata": metadata, "spec": { "devices": { "requests": requests } } })
}

/// Made for the extended resources of the Pod.
fn made(name: &str, devices: &[(&str, i64)]) -> Value {
    let mut claim = claim(name, devices);
    claim["metadata"]["annotations"] = json!({ ANNOTATION: "true" });
    let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true });
    claim["metadata"]["ownerReferences"] = json!([owner]);
    claim
}

fn changed(mut claim: Value, pointer: &str, value: &str) -> Value {
    *claim.pointer_mut(pointer).expect("it is there") = json!(value);
    claim
}

/// What claims and Pods cost in extended resources.
#[test]
fn who_asks_for_an_extended_resource_pays_once() {
    const OWNER: &str = "/metadata/ownerReferences/0";
    let asking = |status: Value| pod(&json!({ "example.com/gpu": "2" }), status);
    let implied = pod(&json!({ "deviceclass.resource.kubernetes.io/nic": "2" }), json!({}));
    let named = |claim: &str| json!({ "extendedResourceClaimStatus": { "resourceClaimName": claim } });
    let (two, three) = ([("gpu", 2)], [("gpu", 3)]);
    let earlier = changed(made("z", &two), "/metadata/creationTimestamp", "2026-11-20T11:00:00Z");
    let all = |n: &str| json!({ "requests.deviceclass.resource.kubernetes.io/gpu": n, "requests.example.com/gpu": n });
    // The Pod pays for the name that it asked by; the other counts what the claim has.
    let by_class = |n: &str| json!({ "requests.deviceclass.resource.kubernetes.io/gpu": n });
    let mut with_rest = by_class("3");
    with_rest["requests.example.com/gpu"] = json!("1");
    let both = json!({ "requests.deviceclass.resource.kubernetes.io/gpu": "2",
        "requests.deviceclass.resource.kubernetes.io/nic": "1", "requests.example.com/gpu": "2" });
    for (what, claim, world, expected) in [
        ("one of its own", claim("c", &two), World::with(asking(json!({})), vec![]), all("2")),
        ("several classes", claim("c", &[("gpu", 2), ("nic", 1)]), World::with(json!({}), vec![]), both),
        ("one made for the Pod", made("c", &two), World::with(asking(json!({})), vec![made("c", &two)]), by_class("2")),
        ("by the class's name", made("c", &[("nic", 2)]), World::with(implied, vec![]), json!({})),
        ("more than the Pod asks for", made("c", &three), World::with(asking(json!({})), vec![]), with_rest),
        (
            "the one that is named",
            made("c", &two),
            World::with(asking(named("c")), vec![earlier.clone()]),
            by_class("2"),
        ),
        ("another one is named", made("c", &two), World::with(asking(named("d")), vec![]), all("2")),
        ("another one is older", made("c", &two), World::with(asking(json!({})), vec![earlier]), all("2")),
        (
            "another one is before it by name",
            made("c", &two),
            World::with(asking(json!({})), vec![made("b", &two)]),
            all("2"),
        ),
        (
            "another one is after it by name",
            made("c", &two),
            World::with(asking(json!({})), vec![made("d", &two)]),
            by_class("2"),
        ),
        ("the Pod has ended", made("c", &two), World::with(asking(json!({ "phase": "Failed" })), vec![]), all("2")),
        ("there is no such Pod", made("c", &two), World::with(json!({}), vec![]), all("2")),
        (
            "it is another Pod's",
            changed(made("c", &two), &format!("{OWNER}/uid"), "v"),
            World::with(asking(json!({})), vec![]),
            all("2"),
        ),
        (
            "its owner is no Pod",
            changed(made("c", &two), &format!("{OWNER}/kind"), "Job"),
            World::with(asking(json!({})), vec![]),
            all("2"),
        ),
        (
            "it is not marked",
            changed(made("c", &two), &format!("/metadata/annotations/{}", ANNOTATION.replace('/', "~1")), "no"),
            World::with(asking(json!({})), vec![]),
            all("2"),
        ),
    ] {
        let mut cost = usage(&RESOURCE_CLAIMS, &claim, now(), &world);
        cost.retain(|name, _| name.starts_with("requests."));
        assert_eq!(written(&cost), expected, "{what}");
    }
}

#[test]
fn claims_count_for_resources_that_a_class_has() {
    let world = World::with(json!({}), vec![]);
    for (name, resource, expected) in [
        ("requests.example.com/gpu", RESOURCE_CLAIMS, true),
        ("requests.example.com/other", RESOURCE_CLAIMS, false),
        ("requests.deviceclass.resource.kubernetes.io/nic", RESOURCE_CLAIMS, true),
        ("requests.deviceclass.resource.kubernetes.io/none", RESOURCE_CLAIMS, false),
        ("none.deviceclass.resource.k8s.io/devices", RESOURCE_CLAIMS, true),
        ("count/resourceclaims.resource.k8s.io", RESOURCE_CLAIMS, true),
        ("requests.cpu", RESOURCE_CLAIMS, false),
        ("requests.example.com/other", PODS, true),
        ("requests.deviceclass.resource.kubernetes.io/none", PODS, true),
        ("requests.example.com/gpu", SERVICES, false),
    ] {
        assert_eq!(is_counted(name, &resource, &world), expected, "{name} {resource}");
    }
}

/// A quota bounds what Pods and claims have together, and counts it so.
#[test]
fn a_quota_of_an_extended_resource_counts_pods_and_claims() {
    let asking = pod(&json!({ "example.com/gpu": "2" }), json!({}));
    let (own, of_pod) = (claim("own", &[("gpu", 1)]), made("of-pod", &[("gpu", 2)]));
    let world = World::with(asking.clone(), vec![of_pod.clone()]);
    let hard = json!({ "requests.example.com/gpu": "3", "requests.example.com/other": "3", "gpu.deviceclass.resource.k8s.io/devices": "9" });
    let spec = json!({ "hard": hard });
    let objects = [(&PODS, &asking), (&RESOURCE_CLAIMS, &own), (&RESOURCE_CLAIMS, &of_pod)];
    let now_used = written(&used(&spec, objects, now(), &world));
    let expected = json!({ "requests.example.com/gpu": "3", "requests.example.com/other": "0", "gpu.deviceclass.resource.k8s.io/devices": "3" });
    assert_eq!(now_used, expected);

    let quota = json!({ "metadata": { "name": "q" }, "spec": spec, "status": { "hard": hard, "used": now_used } });
    let charged = |claim: &Value| {
        let charged = charge(std::slice::from_ref(&quota), &RESOURCE_CLAIMS, claim, None, now(), &world);
        charged.map(|it| it.iter().map(|it| written(&it.1)).collect::<Value>())
    };
    let refusal = "exceeded quota: q, requested: requests.example.com/gpu=1, used: requests.example.com/gpu=3, limited: requests.example.com/gpu=3";
    assert_eq!(charged(&claim("more", &[("gpu", 1)])), Err(refusal.to_owned()));
    // Its Pod has paid.
    let mut after = now_used.clone();
    after["gpu.deviceclass.resource.k8s.io/devices"] = json!("5");
    assert_eq!(charged(&of_pod), Ok(json!([after])));
    assert_eq!(charged(&claim("others", &[("nic", 1)])), Ok(json!([])));
}
