//! Tables: what is filled in, and what is refused.

use corten_api::resources::{PERSISTENT_VOLUME_CLAIMS, PODS};
use serde_json::{Value, json};

use super::{broken, fill};

fn range(limits: &Value) -> Value {
    json!({ "spec": { "limits": limits } })
}

#[test]
fn containers_that_say_nothing_get_defaults() {
    let range = range(&json!([
        { "type": "Container", "default": { "cpu": "1", "memory": "1Gi" }, "defaultRequest": { "memory": "512Mi", "cpu": "500m" } },
        { "type": "Pod", "max": { "cpu": "2" } },
    ]));
    let mut pod = json!({
        "metadata": { "name": "p" },
        "spec": {
            "containers": [{ "name": "a" }, { "name": "b", "resources": { "limits": { "cpu": "2", "memory": "1Gi" }, "requests": { "cpu": "2" } } }],
            "initContainers": [{ "name": "i", "resources": { "requests": { "cpu": "1", "memory": "1" } } }],
        },
        "status": { "phase": "Pending", "qosClass": "BestEffort" },
    });
    fill(&range, &mut pod);
    assert_eq!(
        pod["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu, memory request for container a; cpu, memory limit for container a; memory request for container b; cpu, memory limit for init container i"
    );
    assert_eq!(
        pod["spec"]["containers"][0]["resources"],
        json!({ "requests": { "cpu": "500m", "memory": "512Mi" }, "limits": { "cpu": "1", "memory": "1Gi" } })
    );
    assert_eq!(pod["status"]["qosClass"], "Burstable");
}

#[test]
fn a_pod_that_says_everything_is_left_alone() {
    let range = range(&json!([{ "type": "Container", "default": { "cpu": "1" } }]));
    let mut pod = json!({ "metadata": {}, "spec": { "containers": [{ "name": "a", "resources": { "limits": { "cpu": "2" } } }] } });
    let before = pod.clone();
    fill(&range, &mut pod);
    assert_eq!(pod, before);
}

#[test]
fn limits_are_kept() {
    let pod = |requests: Value, limits: Value| json!({ "spec": { "containers": [{ "name": "c", "resources": { "requests": requests, "limits": limits } }] } });
    let claim = |storage: &str| json!({ "spec": { "resources": { "requests": { "storage": storage } } } });
    for (limit, resource, object, expected) in [
        (
            json!({ "type": "Container", "min": { "cpu": "100m" } }),
            PODS,
            pod(json!({}), json!({})),
            "minimum cpu usage per Container is 100m.  No request is specified",
        ),
        (
            json!({ "type": "Container", "min": { "cpu": "100m" } }),
            PODS,
            pod(json!({ "cpu": "50m" }), json!({ "cpu": "1" })),
            "minimum cpu usage per Container is 100m, but request is 50m",
        ),
        (
            json!({ "type": "Container", "max": { "cpu": "1", "memory": "1Gi" } }),
            PODS,
            pod(json!({ "cpu": "1" }), json!({ "cpu": "2" })),
            "[maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 1Gi.  No limit is specified]",
        ),
        (json!({ "type": "Pod", "max": { "cpu": "1" } }), PODS, pod(json!({ "cpu": "1" }), json!({ "cpu": "1" })), ""),
        (
            json!({ "type": "Pod", "max": { "cpu": "1" } }),
            PODS,
            pod(json!({ "cpu": "1" }), json!({ "cpu": "1500m" })),
            "maximum cpu usage per Pod is 1, but limit is 1500m",
        ),
        (
            json!({ "type": "Container", "maxLimitRequestRatio": { "cpu": "1500m" } }),
            PODS,
            pod(json!({ "cpu": "300m" }), json!({ "cpu": "500m" })),
            "cpu max limit to request ratio per Container is 1500m, but provided ratio is 1.666667",
        ),
        (
            json!({ "type": "Container", "maxLimitRequestRatio": { "cpu": "2" } }),
            PODS,
            pod(json!({ "cpu": "250m" }), json!({})),
            "cpu max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
        ),
        (
            json!({ "type": "PersistentVolumeClaim", "min": { "storage": "1Gi" }, "max": { "storage": "2Gi" } }),
            PERSISTENT_VOLUME_CLAIMS,
            claim("3Gi"),
            "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi",
        ),
        (
            json!({ "type": "PersistentVolumeClaim", "min": { "storage": "1Gi" } }),
            PERSISTENT_VOLUME_CLAIMS,
            claim("1Mi"),
            "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi",
        ),
        (json!({ "type": "Container", "min": { "cpu": "1" } }), PERSISTENT_VOLUME_CLAIMS, claim("1"), ""),
    ] {
        let found = broken(&range(&json!([limit])), &resource, &object);
        assert_eq!(found.unwrap_or_default(), expected, "{limit} {object}");
    }
}
