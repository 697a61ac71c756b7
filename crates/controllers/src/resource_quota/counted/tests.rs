use corten_api::{
    quota::SCOPES,
    resources::{PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_CLAIMS, SERVICES},
};
use corten_meta::{Resource, Time};
use corten_policies::quota::{DeviceClasses, Neighbours, in_scope, usage};
use serde_json::{Value, json};

use super::Counted;

fn kept(object: &Value) -> Value {
    serde_json::from_value::<Counted>(object.clone()).expect("it has metadata").value()
}

fn objects() -> Vec<(Resource, Value)> {
    let metadata = json!({ "name": "a", "labels": { "a": "b" } });
    let resources = json!({ "requests": { "cpu": "1", "hugepages-2Mi": "2Mi" }, "limits": { "memory": "1Gi" } });
    let larger = json!({ "requests": { "cpu": "2" } });
    let elsewhere = json!({ "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
        { "podAffinityTerm": { "namespaces": ["x"] } }] } });
    let beta =
        json!({ "name": "b", "annotations": { "volume.beta.kubernetes.io/storage-class": "old", "other": "x" } });
    vec![
        (PODS, json!({ "metadata": metadata, "spec": { "containers": [{ "name": "c", "image": "i" }] } })),
        (
            PODS,
            json!({
                "metadata": { "name": "a", "deletionTimestamp": "2026-11-20T12:00:00Z", "deletionGracePeriodSeconds": 30 },
                "spec": { "containers": [{ "name": "c", "resources": resources }] },
            }),
        ),
        (
            PODS,
            json!({
                "metadata": metadata,
                "spec": {
                    "containers": [{ "name": "c", "resources": resources }],
                    "initContainers": [{ "name": "s", "restartPolicy": "Always", "resources": resources }],
                    "activeDeadlineSeconds": 5, "priorityClassName": "high", "affinity": elsewhere,
                    "overhead": { "cpu": "1" }, "resources": { "limits": { "memory": "3Gi" } },
                },
                "status": {
                    "conditions": [{ "type": "PodResizePending", "status": "True", "reason": "Deferred" }],
                    "containerStatuses": [{ "name": "c", "resources": larger, "allocatedResources": { "cpu": "3" } }],
                    "initContainerStatuses": [{ "name": "s", "resources": larger }],
                },
            }),
        ),
        (PODS, json!({ "metadata": metadata, "spec": { "containers": [] }, "status": { "phase": "Failed" } })),
        (
            PERSISTENT_VOLUME_CLAIMS,
            json!({
                "metadata": metadata,
                "spec": { "storageClassName": "s", "volumeAttributesClassName": "gold",
                    "resources": { "requests": { "storage": "1Gi" } } },
                "status": { "allocatedResources": { "storage": "2Gi" }, "currentVolumeAttributesClassName": "silver",
                    "modifyVolumeStatus": { "status": "Pending", "targetVolumeAttributesClassName": "bronze" } },
            }),
        ),
        (PERSISTENT_VOLUME_CLAIMS, json!({ "metadata": beta, "spec": {} })),
        (
            SERVICES,
            json!({ "metadata": metadata, "spec": { "type": "LoadBalancer", "allocateLoadBalancerNodePorts": false,
            "ports": [{ "port": 1, "nodePort": 30000 }, { "port": 2 }] } }),
        ),
        (
            RESOURCE_CLAIMS,
            json!({ "metadata": metadata, "spec": { "devices": { "requests": [
            { "name": "r", "exactly": { "deviceClassName": "gpu", "count": 3 } }] } } }),
        ),
    ]
}

/// The claim that is made for a Pod is spared what the Pod pays for.
#[test]
fn what_is_kept_says_whose_claim_it_is() {
    struct World(Value);
    impl Neighbours for World {
        fn classes(&self) -> &DeviceClasses {
            ().classes()
        }
        fn pod(&self, _: &str, name: &str) -> Option<Value> {
            (name == "p").then(|| self.0.clone())
        }
        fn claims(&self, _: &str) -> Vec<Value> {
            Vec::new()
        }
    }
    let owner = json!({ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true });
    let annotations = json!({ "resource.kubernetes.io/extended-resource-claim": "true", "other": "x" });
    let requests = json!([{ "name": "r", "exactly": { "deviceClassName": "gpu", "count": 3 } }]);
    let claim = json!({
        "metadata": { "name": "c", "namespace": "n", "annotations": annotations, "ownerReferences": [owner] },
        "spec": { "devices": { "requests": requests } },
    });
    let resources = json!({ "requests": { "deviceclass.resource.kubernetes.io/gpu": "2" } });
    let pod = |named: &str| {
        json!({
            "metadata": { "name": "p", "namespace": "n", "uid": "u" },
            "spec": { "containers": [{ "name": "c", "resources": resources }] },
            "status": { "extendedResourceClaimStatus": { "resourceClaimName": named, "requestMappings": [] } },
        })
    };
    let now: Time = "2026-11-20T12:00:10Z".parse().expect("a time");
    let cost = |claim: &Value, pod: Value| usage(&RESOURCE_CLAIMS, claim, now, &World(pod));
    for (named, left) in [("c", "1"), ("another", "3")] {
        let whole = cost(&claim, pod(named));
        assert_eq!(whole["requests.deviceclass.resource.kubernetes.io/gpu"].to_string(), left);
        assert_eq!(cost(&kept(&claim), kept(&pod(named))), whole, "{named}");
    }
}

#[test]
fn what_is_kept_costs_what_the_whole_costs() {
    let now: Time = "2026-11-20T12:00:10Z".parse().expect("a time");
    for (resource, object) in objects() {
        assert_eq!(usage(&resource, &kept(&object), now, &()), usage(&resource, &object, now, &()), "{object}");
    }
}

#[test]
fn what_is_kept_is_in_the_scopes_that_the_whole_is_in() {
    for scope in SCOPES {
        let mut found = Vec::new();
        for value in ["gold", "silver", "bronze", "high"] {
            let requirement = match scope.has_values {
                true => json!({ "scopeName": scope.name, "operator": "In", "values": [value] }),
                false => json!({ "scopeName": scope.name, "operator": "Exists" }),
            };
            let spec = json!({ "scopeSelector": { "matchExpressions": [requirement] } });
            for (resource, object) in objects() {
                let is_in = in_scope(&spec, &resource, &object);
                assert_eq!(in_scope(&spec, &resource, &kept(&object)), is_in, "{}: {object}", scope.name);
                found.push(is_in);
            }
        }
        assert!(found.contains(&true) && found.contains(&false), "{} tells nothing apart", scope.name);
    }
}
