//! What `kubectl get` prints of each kind, in one table: kind, object, cells after the name.

use corten_meta::Time;
use serde_json::{Value, json};

use crate::{by_kind, human_duration};

pub(super) fn cells(object: &Value) -> String {
    let kind = by_kind(object["apiVersion"].as_str().expect("a version"), object["kind"].as_str().expect("a kind"));
    let now: Time = "2026-01-01T12:00:00Z".parse().expect("a time");
    let cells = kind.expect("a row").columns.iter().map(|it| match it.cell(object, now) {
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
fn kinds_of_other_groups_print_as_kubernetes_prints_them() {
    let created = json!({"name": "x", "creationTimestamp": "2026-01-01T00:00:00Z"});
    let holds = |kind: &str| {
        json!({"conditions": [{"type": kind, "status": "True", "reason": "R",
        "lastTransitionTime": "2026-01-01T11:00:00Z"}]})
    };
    for (version, kind, rest, expected) in [
        (
            "v1",
            "ComponentStatus",
            json!({"conditions": [{"type": "Healthy", "status": "True", "message": "ok"}]}),
            "Healthy | ok | ",
        ),
        ("v1", "ComponentStatus", json!({}), "Unknown |  | "),
        (
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicy",
            json!({"spec": {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}, "validations": [{}, {}]}}),
            "2 | v1/ConfigMap | 12h",
        ),
        (
            "admissionregistration.k8s.io/v1",
            "MutatingAdmissionPolicy",
            json!({"spec": {"mutations": [{}]}}),
            "1 | <unset> | 12h",
        ),
        (
            "admissionregistration.k8s.io/v1beta1",
            "MutatingAdmissionPolicyBinding",
            json!({"spec": {"policyName": "p", "paramRef": {"name": "a", "namespace": "b"}}}),
            "p | b/a | 12h",
        ),
        (
            "admissionregistration.k8s.io/v1",
            "ValidatingAdmissionPolicyBinding",
            json!({"spec": {"policyName": "p"}}),
            "p | <unset> | 12h",
        ),
        ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", json!({"webhooks": [{}, {}]}), "2 | 12h"),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", json!({}), "0 | 12h"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", json!({}), "2026-01-01T00:00:00Z"),
        ("apiregistration.k8s.io/v1", "APIService", json!({"status": holds("Available")}), "Local | True | 12h"),
        (
            "apiregistration.k8s.io/v1",
            "APIService",
            json!({"spec": {"service": {"namespace": "n", "name": "s"}},
                "status": {"conditions": [{"type": "Available", "status": "False", "reason": "NotServed"}]}}),
            "n/s | False (NotServed) | 12h",
        ),
        ("certificates.k8s.io/v1", "ClusterTrustBundle", json!({"spec": {}}), "<none>"),
        (
            "certificates.k8s.io/v1beta1",
            "PodCertificateRequest",
            json!({"spec": {"podName": "p", "serviceAccountName": "s", "nodeName": "n", "signerName": "a.b/c"}, "status": holds("Issued")}),
            "p | s | n | a.b/c | Issued | 0",
        ),
        (
            "coordination.k8s.io/v1alpha2",
            "LeaseCandidate",
            json!({"spec": {"leaseName": "l", "binaryVersion": "1.37.0", "emulationVersion": "1.36.0"}}),
            "l | 1.37.0 | 1.36.0 | 12h",
        ),
        (
            "flowcontrol.apiserver.k8s.io/v1",
            "FlowSchema",
            json!({"spec": {"priorityLevelConfiguration": {"name": "p"}, "matchingPrecedence": 7}}),
            "p | 7 | <none> | 12h | ?",
        ),
        (
            "flowcontrol.apiserver.k8s.io/v1",
            "PriorityLevelConfiguration",
            json!({"spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 5, "limitResponse": {"type": "Reject"}}}}),
            "Limited | 5 | <none> | <none> | <none> | 12h",
        ),
        (
            "internal.apiserver.k8s.io/v1alpha1",
            "StorageVersion",
            json!({"status": {"storageVersions": [{"apiServerID": "a", "encodingVersion": "v1"}]}}),
            "<unset> | a=v1 | 12h",
        ),
        (
            "networking.k8s.io/v1",
            "Ingress",
            json!({"spec": {"ingressClassName": "c", "rules": [{"host": "a"}, {"host": "b"}, {"host": "c"}, {"host": "d"}], "tls": [{}]},
                "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}, {"hostname": "h"}]}}}),
            "c | a,b,c + 1 more... | 1.2.3.4,h | 80, 443 | 12h",
        ),
        ("networking.k8s.io/v1", "Ingress", json!({"spec": {}}), "<none> | * |  | 80 | 12h"),
        (
            "networking.k8s.io/v1",
            "IngressClass",
            json!({"spec": {"controller": "a/b", "parameters": {"apiGroup": "g", "kind": "K", "name": "n"}}}),
            "a/b | K.g/n | 12h",
        ),
        (
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({"spec": {"podSelector": {"matchLabels": {"a": "1"}}}}),
            "a=1 | 12h",
        ),
        ("node.k8s.io/v1", "RuntimeClass", json!({"handler": "kata"}), "kata | 12h"),
        (
            "resource.k8s.io/v1",
            "ResourceClaim",
            json!({"status": {"allocation": {}, "reservedFor": [{}]}}),
            "allocated,reserved | 12h",
        ),
        ("resource.k8s.io/v1beta1", "ResourceClaim", json!({}), "pending | 12h"),
        (
            "resource.k8s.io/v1",
            "ResourceSlice",
            json!({"spec": {"nodeName": "n", "driver": "d", "pool": {"name": "p"}}}),
            "n | d | p | 12h",
        ),
        (
            "resource.k8s.io/v1",
            "DeviceTaintRule",
            json!({"spec": {"taint": {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2026-01-01T11:59:00Z"}}}),
            "k | v | NoExecute | 60s | 12h",
        ),
        (
            "resource.k8s.io/v1alpha3",
            "ResourcePoolStatusRequest",
            json!({"spec": {"driver": "d"}, "status": {"poolCount": 2, "conditions": holds("Complete")["conditions"],
                "pools": [{"totalDevices": 3, "availableDevices": 1}, {"totalDevices": 4, "validationError": "e"}]}}),
            "d | 7 | 1 | 0 | 0 | 1 | 2 | Complete | 60m",
        ),
        (
            "scheduling.k8s.io/v1beta1",
            "PodGroup",
            json!({"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}, "workloadRef": {"workloadName": "w"}}}),
            "Gang | w | Pending | 12h",
        ),
        (
            "storagemigration.k8s.io/v1",
            "StorageVersionMigration",
            json!({"spec": {"resource": {"group": "apps", "resource": "deployments"}}, "status": holds("Running")}),
            "deployments.apps | Running",
        ),
    ] {
        let mut object = json!({"apiVersion": version, "kind": kind, "metadata": created});
        object.as_object_mut().expect("an object").extend(rest.as_object().expect("an object").clone());
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
