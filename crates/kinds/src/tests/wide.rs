//! Lists as long as a body allows: whoever looks through all of one for each of its elements does not come to the end.

use corten_meta::Time;
use corten_policies::{limits, quota};
use corten_schema::{
    find,
    wide::{Elements, places, widened},
};
use serde_json::{Value, json};

use super::odd_objects::{show, work};
use crate::by_kind;

const MANY: usize = 20_000;

/// An object and the list of it that is long.
fn cases() -> Vec<(Value, &'static str)> {
    let container = json!({ "name": "c", "image": "i" });
    let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "p" }, "spec": { "containers": [container] } });
    let with = |pointer: &str, value: Value| {
        let mut pod = pod.clone();
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        if parent == "/status" {
            pod["status"] = json!({});
        }
        pod.pointer_mut(parent).expect("it is there")[name] = value;
        pod
    };
    let toleration = json!({ "key": "a", "operator": "Exists" });
    let of_kind = |api_version: &str, kind: &str, rest: Value| {
        let mut object = rest;
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        object["metadata"] = json!({ "name": "a" });
        object
    };
    let port = json!({ "name": "p", "port": 1, "protocol": "TCP" });
    let claim = json!({ "spec": {}, "status": { "allocation": { "devices": { "results": [{ "driver": "a", "pool": "b", "device": "c" }] } },
        "devices": [{ "driver": "a", "pool": "b", "device": "c" }] } });
    let topology = json!({ "matchLabelExpressions": [{ "key": "a", "values": ["b"] }] });
    vec![
        (with("/spec/tolerations", json!([toleration])), "/spec/tolerations"),
        (with("/spec/schedulingGates", json!([{ "name": "a" }])), "/spec/schedulingGates"),
        (
            with("/spec/ephemeralContainers", json!([{ "name": "e", "targetContainerName": "c" }])),
            "/spec/ephemeralContainers",
        ),
        (with("/status/initContainerStatuses", json!([{ "name": "c" }])), "/status/initContainerStatuses"),
        (with("/status/containerStatuses", json!([{ "name": "c", "resources": {} }])), "/status/containerStatuses"),
        (
            with("/spec/containers/0/resources", json!({ "claims": [{ "name": "a" }] })),
            "/spec/containers/0/resources/claims",
        ),
        (pod.clone(), "/spec/containers"),
        (of_kind("v1", "Service", json!({ "spec": { "type": "NodePort", "ports": [port] } })), "/spec/ports"),
        (
            of_kind("storage.k8s.io/v1", "StorageClass", json!({ "allowedTopologies": [topology] })),
            "/allowedTopologies",
        ),
        (
            of_kind("storage.k8s.io/v1", "StorageClass", json!({ "allowedTopologies": [topology] })),
            "/allowedTopologies/0/matchLabelExpressions/0/values",
        ),
        (
            of_kind("storage.k8s.io/v1", "CSINode", json!({ "spec": { "drivers": [{ "name": "a", "nodeID": "b" }] } })),
            "/spec/drivers",
        ),
        (of_kind("resource.k8s.io/v1", "ResourceClaim", claim), "/status/devices"),
        (
            of_kind(
                "scheduling.k8s.io/v1beta1",
                "Workload",
                json!({ "spec": { "podGroupTemplates": [{ "name": "a" }] } }),
            ),
            "/spec/podGroupTemplates",
        ),
    ]
}

#[test]
fn lists_may_be_long() {
    for (object, path) in cases() {
        let text = |name: &str| object[name].as_str().expect("a text");
        let kind = by_kind(text("apiVersion"), text("kind")).expect("a kind");
        let of = find(kind.schema.name()).expect("every kind has a type");
        let place = places(of, &object).into_iter().find(|it| it.path == path).expect("the list is there");
        for elements in [Elements::Alike, Elements::Apart] {
            let wide = widened(&object, &place, MANY, elements);
            show(kind, &wide);
            work(kind, wide.clone(), path);
            kind.policy.validate_status_update(&wide, &wide);
            kind.policy.warnings(&wide, None);
            quota::usage(&kind.resource, &wide, Time::from_unix_seconds(0), &());
        }
    }
}

/// Each container runs beside those before it, and asks for something that none of them asks for.
#[test]
fn containers_may_ask_for_as_many_resources() {
    let sidecar = |it: usize| json!({ "name": format!("c{it}"), "restartPolicy": "Always", "resources": { "requests": { format!("example.com/r{it}"): "1" } } });
    let sidecars: Vec<Value> = (0..MANY).map(sidecar).collect();
    let pod = json!({ "spec": { "containers": [], "initContainers": sidecars } });
    let pods = by_kind("v1", "Pod").expect("there are Pods");
    assert!(quota::of_pod(&pod, quota::Side::Requests).len() == MANY);
    let limit = json!({ "type": "Container", "max": { "cpu": "1", "memory": "1" } });
    let range = json!({ "spec": { "limits": vec![limit; 2] } });
    assert!(limits::broken(&range, &pods.resource, &pod).is_some());
}
