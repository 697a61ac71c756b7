//! What `kubectl get` prints of each kind, in one table: kind, object, cells after the name.

use corten_meta::Time;
use serde_json::{Value, json};

use crate::{by_kind, human_duration};

fn cells(object: &Value) -> String {
    let kind = by_kind(object["apiVersion"].as_str().expect("a version"), object["kind"].as_str().expect("a kind"));
    let now: Time = "2026-01-01T12:00:00Z".parse().expect("a time");
    let cells = kind.expect("a row").columns.iter().map(|it| match (it.cell)(object, now) {
        Value::String(text) => text,
        other => other.to_string(),
    });
    cells.collect::<Vec<_>>().join(" | ")
}

#[test]
fn every_kind_prints_as_kubernetes_prints_it() {
    let created = json!({"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"});
    let template = json!({"spec": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]}});
    let selector = json!({"matchLabels": {"b": "2", "a": "1"}, "matchExpressions": [
        {"key": "c", "operator": "In", "values": ["y", "x"]}, {"key": "d", "operator": "DoesNotExist"}]});
    for (object, expected) in [
        (
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": created,
                "spec": {"replicas": 3, "selector": selector, "template": template},
                "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1}}),
            "1/3 | 2 | 1 | 12h | a,b | a:1,b:2 | a=1,b=2,c in (x,y),!d",
        ),
        (
            json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": created,
                "spec": {"replicas": 3, "selector": {}, "template": template}, "status": {"replicas": 2}}),
            "3 | 2 | 0 | 12h | a,b | a:1,b:2 | <none>",
        ),
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": created,
                "data": {"a": "1"}, "binaryData": {"b": ""}}),
            "2 | 12h",
        ),
        (json!({"apiVersion": "v1", "kind": "Secret", "metadata": created, "type": "Opaque"}), "Opaque | 0 | 12h"),
        (json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {}}), "<unknown>"),
        (
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": created, "status": {"phase": "Active"}}),
            "Active | 12h",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Node",
                "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z",
                    "labels": {"node-role.kubernetes.io/control-plane": "", "kubernetes.io/role": "edge"}},
                "spec": {"unschedulable": true},
                "status": {"conditions": [{"type": "Ready", "status": "Unknown"}],
                    "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                    "nodeInfo": {"kubeletVersion": "v1.37.0", "osImage": "Debian"}}}),
            "NotReady,SchedulingDisabled | control-plane,edge | 12h | v1.37.0 | 10.0.0.1 | <none> | Debian | <unknown> | <unknown>",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Node", "metadata": {}}),
            "Unknown | <none> | <unknown> |  | <none> | <none> | <unknown> | <unknown> | <unknown>",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Event", "metadata": created, "type": "Warning", "reason": "Failed",
                "message": " no image\n", "firstTimestamp": "2026-01-01T11:00:00Z",
                "lastTimestamp": "2026-01-01T11:59:50Z", "count": 4,
                "source": {"component": "kubelet", "host": "n1"},
                "involvedObject": {"kind": "Pod", "name": "web", "fieldPath": "spec.containers{a}"}}),
            "10s | Warning | Failed | pod/web | spec.containers{a} | kubelet, n1 | no image | 60m | 4 | x",
        ),
        (
            json!({"apiVersion": "v1", "kind": "Event", "metadata": created, "type": "Normal", "reason": "R",
                "eventTime": "2026-01-01T11:58:00.000000Z", "reportingComponent": "scheduler",
                "series": {"count": 7, "lastObservedTime": "2026-01-01T11:59:59.000000Z"},
                "involvedObject": {"kind": "Node"}}),
            "1s | Normal | R | node |  | scheduler |  | 2m | 7 | x",
        ),
        (
            json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": created,
                "spec": {"holderIdentity": "me"}}),
            "me | 12h",
        ),
        (
            json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": created,
                "value": 5, "preemptionPolicy": "Never"}),
            "5 | false | 12h | Never",
        ),
        (
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": created,
                "roleRef": {"kind": "Role", "name": "r"},
                "subjects": [{"kind": "User", "name": "u"}, {"kind": "User", "name": "v"}, {"kind": "Group", "name": "g"},
                    {"kind": "ServiceAccount", "namespace": "n", "name": "s"}]}),
            "Role/r | 12h | u, v | g | n/s",
        ),
        (
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": created}),
            "2026-01-01T00:00:00Z",
        ),
        (
            json!({"apiVersion": "corten.dev/v1", "kind": "Journal", "metadata": created,
                "decisions": [{"by": "kubelet"}, {"by": "scheduler"}]}),
            "kubelet,scheduler",
        ),
    ] {
        assert_eq!(cells(&object), expected, "{object}");
    }
}

#[test]
fn durations_are_short() {
    const HOUR: i64 = 3600;
    const DAY: i64 = 24 * HOUR;
    for (seconds, text) in [
        (-5, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (121, "2m1s"),
        (600, "10m"),
        (179 * 60, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 60, "3h1m"),
        (8 * HOUR + 60, "8h"),
        (47 * HOUR, "47h"),
        (49 * HOUR, "2d1h"),
        (8 * DAY, "8d"),
        (729 * DAY, "729d"),
        (730 * DAY, "2y"),
        (731 * DAY, "2y1d"),
        (9 * 365 * DAY, "9y"),
    ] {
        assert_eq!(human_duration(seconds), text, "{seconds}");
    }
}
