//! Tables: what objects cost, which scopes they are in, and what a charge says.

use corten_api::resources::{
    CONFIG_MAPS, DEPLOYMENTS, EVENTS, PERSISTENT_VOLUME_CLAIMS, PODS, RESOURCE_CLAIMS, SERVICES,
};
use corten_meta::{Resource, Time};
use serde_json::{Value, json};

use super::{charge, counted_by, in_scope, usage, used, written};

const NOW: i64 = 1_700_000_000;

fn now() -> Time {
    Time::from_unix_seconds(NOW)
}

fn pod(resources: &Value) -> Value {
    json!({ "metadata": { "name": "p" }, "spec": { "containers": [{ "name": "c", "resources": resources }] } })
}

#[test]
fn objects_cost() {
    let cpu = json!({ "requests": { "cpu": "100m", "memory": "1Gi", "hugepages-2Mi": "4Mi", "x.y/gpu": "2" }, "limits": { "cpu": "1" } });
    let ended =
        json!({ "metadata": {}, "spec": { "containers": [{ "resources": cpu }] }, "status": { "phase": "Failed" } });
    let deleted = |seconds: i64| {
        let at = Time::from_unix_seconds(NOW - seconds).to_string();
        json!({ "metadata": { "deletionTimestamp": at, "deletionGracePeriodSeconds": 30 }, "spec": {} })
    };
    let layered = json!({ "spec": {
        "overhead": { "cpu": "1", "memory": "1" },
        "initContainers": [
            { "name": "s", "restartPolicy": "Always", "resources": { "requests": { "cpu": "1" } } },
            { "name": "i", "resources": { "requests": { "cpu": "5" }, "limits": { "cpu": "7" } } },
        ],
        "containers": [{ "name": "c", "resources": { "requests": { "cpu": "2" } } }],
    } });
    let resizing = json!({
        "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1", "memory": "4" } } }] },
        "status": { "containerStatuses": [{ "name": "c", "allocatedResources": { "cpu": "2" }, "resources": { "requests": { "cpu": "3", "memory": "2" } } }] },
    });
    let of_class = json!({
        "spec": { "storageClassName": "gold", "resources": { "requests": { "storage": "1500m" } } },
        "status": { "allocatedResources": { "storage": "5" } },
    });
    let devices = json!({ "spec": { "devices": { "requests": [
        { "exactly": { "deviceClassName": "gpu", "count": 2 } },
        { "firstAvailable": [{ "deviceClassName": "gpu", "count": 1 }, { "deviceClassName": "big", "allocationMode": "All" }] },
    ] } } });
    for (resource, object, expected) in [
        (CONFIG_MAPS, json!({}), json!({ "configmaps": "1", "count/configmaps": "1" })),
        (DEPLOYMENTS, json!({}), json!({ "count/deployments.apps": "1" })),
        (EVENTS, json!({}), json!({})),
        (
            PODS,
            pod(&cpu),
            json!({
                "count/pods": "1", "cpu": "100m", "hugepages-2Mi": "4Mi", "limits.cpu": "1", "memory": "1Gi", "pods": "1",
                "requests.cpu": "100m", "requests.hugepages-2Mi": "4Mi", "requests.memory": "1Gi", "requests.x.y/gpu": "2",
            }),
        ),
        (PODS, ended, json!({ "count/pods": "1" })),
        (PODS, deleted(30), json!({ "count/pods": "1", "pods": "1" })),
        (PODS, deleted(31), json!({ "count/pods": "1" })),
        (
            PODS,
            layered,
            json!({ "count/pods": "1", "cpu": "7", "limits.cpu": "8", "memory": "1", "pods": "1", "requests.cpu": "7", "requests.memory": "1" }),
        ),
        (
            PODS,
            resizing,
            json!({ "count/pods": "1", "cpu": "3", "memory": "4", "pods": "1", "requests.cpu": "3", "requests.memory": "4" }),
        ),
        (
            SERVICES,
            json!({ "spec": { "type": "NodePort", "ports": [{}, {}] } }),
            json!({ "count/services": "1", "services": "1", "services.loadbalancers": "0", "services.nodeports": "2" }),
        ),
        (
            SERVICES,
            json!({ "spec": { "type": "LoadBalancer", "allocateLoadBalancerNodePorts": false, "ports": [{}, { "nodePort": 30000 }] } }),
            json!({ "count/services": "1", "services": "1", "services.loadbalancers": "1", "services.nodeports": "1" }),
        ),
        (
            PERSISTENT_VOLUME_CLAIMS,
            of_class,
            json!({
                "count/persistentvolumeclaims": "1", "gold.storageclass.storage.k8s.io/persistentvolumeclaims": "1",
                "gold.storageclass.storage.k8s.io/requests.storage": "5", "persistentvolumeclaims": "1", "requests.storage": "5",
            }),
        ),
        (
            RESOURCE_CLAIMS,
            devices,
            json!({
                "big.deviceclass.resource.k8s.io/devices": "32", "count/resourceclaims.resource.k8s.io": "1",
                "gpu.deviceclass.resource.k8s.io/devices": "3", "requests.deviceclass.resource.kubernetes.io/big": "32",
                "requests.deviceclass.resource.kubernetes.io/gpu": "3",
            }),
        ),
    ] {
        assert_eq!(written(&usage(&resource, &object, now(), &())), expected, "{object}");
    }
}

#[test]
fn names_count_resources() {
    for (name, expected) in [
        ("pods", Some(("", "pods"))),
        ("limits.ephemeral-storage", Some(("", "pods"))),
        ("hugepages-1Gi", Some(("", "pods"))),
        ("requests.hugepages-1Gi", Some(("", "pods"))),
        ("limits.hugepages-1Gi", None),
        ("requests.nvidia.com/gpu", Some(("", "pods"))),
        ("requests.deviceclass.resource.kubernetes.io/gpu", Some(("", "pods"))),
        ("requests.other.kubernetes.io/gpu", None),
        ("nvidia.com/gpu", None),
        ("requests.storage", Some(("", "persistentvolumeclaims"))),
        ("gold.storageclass.storage.k8s.io/requests.storage", Some(("", "persistentvolumeclaims"))),
        ("gpu.deviceclass.resource.k8s.io/devices", Some(("resource.k8s.io", "resourceclaims"))),
        ("services.nodeports", Some(("", "services"))),
        ("secrets", Some(("", "secrets"))),
        ("count/jobs.batch", Some(("batch", "jobs"))),
        ("count/endpoints", Some(("", "endpoints"))),
        ("count/events", None),
        ("jobs", None),
    ] {
        assert_eq!(counted_by(name), expected, "{name}");
    }
}

#[test]
fn scopes_hold() {
    let quick = json!({ "spec": { "activeDeadlineSeconds": 5, "priorityClassName": "high" } });
    let usual = pod(&json!({ "requests": { "cpu": "1" } }));
    let nosy = json!({ "spec": { "affinity": { "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
        { "podAffinityTerm": { "namespaceSelector": {} } }] } } } });
    let fast = json!({ "spec": { "volumeAttributesClassName": "fast" } });
    let scopes = |names: &[&str]| json!({ "scopes": names });
    let selector = |scope: &str, operator: &str, values: &[&str]| json!({ "scopeSelector": { "matchExpressions": [{ "scopeName": scope, "operator": operator, "values": values }] } });
    for (spec, resource, object, expected) in [
        (json!({}), CONFIG_MAPS, &quick, true),
        (scopes(&["Terminating"]), CONFIG_MAPS, &quick, false),
        (scopes(&["Terminating"]), PODS, &quick, true),
        (scopes(&["Terminating", "BestEffort"]), PODS, &quick, true),
        (scopes(&["NotTerminating"]), PODS, &quick, false),
        (scopes(&["NotBestEffort"]), PODS, &usual, true),
        (scopes(&["BestEffort"]), PODS, &usual, false),
        (scopes(&["PriorityClass"]), PODS, &usual, false),
        (selector("PriorityClass", "Exists", &[]), PODS, &quick, true),
        (selector("PriorityClass", "In", &["high"]), PODS, &quick, true),
        (selector("PriorityClass", "In", &["low"]), PODS, &quick, false),
        (selector("PriorityClass", "NotIn", &["low"]), PODS, &usual, true),
        (selector("PriorityClass", "DoesNotExist", &[]), PODS, &usual, true),
        (scopes(&["CrossNamespacePodAffinity"]), PODS, &nosy, true),
        (scopes(&["CrossNamespacePodAffinity"]), PODS, &usual, false),
        (selector("VolumeAttributesClass", "In", &["fast"]), PERSISTENT_VOLUME_CLAIMS, &fast, true),
        (selector("VolumeAttributesClass", "In", &["fast"]), PODS, &usual, false),
    ] {
        assert_eq!(in_scope(&spec, &resource, object), expected, "{spec} {object}");
    }
}

fn quota(hard: &Value, used: &Value) -> Value {
    json!({ "metadata": { "name": "q" }, "spec": { "hard": hard }, "status": { "hard": hard, "used": used } })
}

#[test]
fn charges() {
    let none: Option<&Value> = None;
    let bare = pod(&json!({}));
    let asks = pod(&json!({ "requests": { "cpu": "1", "memory": "1Gi" } }));
    let node_port = json!({ "spec": { "type": "NodePort", "ports": [{}] } });
    let cluster_ip = json!({ "spec": { "type": "ClusterIP", "ports": [{}] } });
    type Case<'a> = (Value, Resource, &'a Value, Option<&'a Value>, Result<Value, &'a str>);
    let negative = pod(&json!({ "requests": { "cpu": "-1" } }));
    let cases: Vec<Case<'_>> = vec![
        (quota(&json!({ "pods": "2" }), &json!({ "pods": "1" })), PODS, &bare, none, Ok(json!([{ "pods": "2" }]))),
        (
            quota(&json!({ "pods": "2" }), &json!({ "pods": "2" })),
            PODS,
            &bare,
            none,
            Err("exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2"),
        ),
        (quota(&json!({ "secrets": "2" }), &json!({ "secrets": "2" })), PODS, &bare, none, Ok(json!([]))),
        (
            quota(
                &json!({ "requests.cpu": "3", "limits.cpu": "4" }),
                &json!({ "requests.cpu": "1", "limits.cpu": "1" }),
            ),
            PODS,
            &bare,
            none,
            Err("failed quota: q: must specify limits.cpu for: c; requests.cpu for: c"),
        ),
        (
            quota(
                &json!({ "cpu": "3", "requests.memory": "1Gi" }),
                &json!({ "cpu": "1500m", "requests.memory": "512Mi" }),
            ),
            PODS,
            &asks,
            none,
            Err(
                "exceeded quota: q, requested: requests.memory=1Gi, used: requests.memory=512Mi, limited: requests.memory=1Gi",
            ),
        ),
        (
            quota(&json!({ "cpu": "3" }), &json!({})),
            PODS,
            &asks,
            none,
            Err("status unknown for quota: q, resources: cpu"),
        ),
        (
            quota(
                &json!({ "services": "1", "services.nodeports": "1" }),
                &json!({ "services": "1", "services.nodeports": "0" }),
            ),
            SERVICES,
            &node_port,
            Some(&cluster_ip),
            Ok(json!([{ "services": "1", "services.nodeports": "1" }])),
        ),
        (
            quota(&json!({ "services": "1" }), &json!({ "services": "1" })),
            SERVICES,
            &node_port,
            Some(&cluster_ip),
            Ok(json!([])),
        ),
        (
            quota(&json!({ "requests.cpu": "3" }), &json!({ "requests.cpu": "0" })),
            PODS,
            &negative,
            none,
            Err("quota usage is negative for resource(s): cpu,requests.cpu"),
        ),
    ];
    for (quota, resource, object, old, expected) in cases {
        let found = charge(std::slice::from_ref(&quota), &resource, object, old, now(), &());
        let found = found.map(|it| it.iter().map(|(_, used)| written(used)).collect::<Value>());
        assert_eq!(found, expected.map_err(str::to_owned), "{quota}");
    }
}

#[test]
fn a_quota_sums_up_what_is_in_its_scope() {
    let spec = json!({ "hard": { "pods": "5", "requests.cpu": "1", "count/deployments.apps": "3", "jobs": "1" }, "scopes": ["NotBestEffort"] });
    let (bare, asks) = (pod(&json!({})), pod(&json!({ "requests": { "cpu": "250m" } })));
    let deployment = json!({});
    let (pods, deployments) = (PODS, DEPLOYMENTS);
    let objects = [(&pods, &bare), (&pods, &asks), (&pods, &asks), (&deployments, &deployment)];
    assert_eq!(
        written(&used(&spec, objects, now(), &())),
        json!({ "count/deployments.apps": "0", "pods": "2", "requests.cpu": "500m" })
    );
}
