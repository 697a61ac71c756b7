//! The loops that keep pods: replication controllers, stateful and daemon sets, jobs and those that make and clear them.

use serde_json::Value;

use super::{AUTOSCALER, Loop, READ, UPDATE, rule};

pub(super) const LOOPS: &[Loop] = &[
    Loop { name: "cronjob", role: "cronjob-controller", rules: cron_job },
    Loop { name: "daemon-set", role: "daemon-set-controller", rules: daemon_set },
    Loop { name: AUTOSCALER, role: AUTOSCALER, rules: autoscaler },
    Loop { name: "vertical-pod-autoscaler", role: "vertical-pod-autoscaler", rules: vertical_autoscaler },
    Loop { name: "job", role: "job-controller", rules: job },
    Loop { name: "replication", role: "replication-controller", rules: replication_controller },
    Loop { name: "statefulset", role: "statefulset-controller", rules: stateful_set },
    Loop { name: "ttl-after-finished", role: "ttl-after-finished-controller", rules: ttl_after_finished },
];

const PODS: &[&str] = &["create", "delete", "get", "list", "patch", "watch"];
const REVISIONS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];

fn cron_job() -> Vec<Value> {
    vec![
        rule(&["get", "list", "update", "watch"], &["batch"], &["cronjobs"]),
        rule(&["create", "delete", "get", "list", "patch", "update", "watch"], &["batch"], &["jobs"]),
        rule(UPDATE, &["batch"], &["cronjobs/status"]),
        rule(&["update"], &["batch"], &["cronjobs/finalizers"]),
        rule(&["delete", "list"], &[""], &["pods"]),
    ]
}

fn daemon_set() -> Vec<Value> {
    vec![
        rule(READ, &["apps"], &["daemonsets"]),
        rule(UPDATE, &["apps"], &["daemonsets/status"]),
        rule(&["update"], &["apps"], &["daemonsets/finalizers"]),
        rule(&["list", "watch"], &[""], &["nodes"]),
        rule(PODS, &[""], &["pods"]),
        rule(&["create"], &[""], &["pods/binding"]),
        rule(REVISIONS, &["apps"], &["controllerrevisions"]),
    ]
}

/// It scales any kind, and reads metrics that others serve.
fn autoscaler() -> Vec<Value> {
    vec![
        rule(READ, &["autoscaling"], &["horizontalpodautoscalers"]),
        rule(UPDATE, &["autoscaling"], &["horizontalpodautoscalers/status"]),
        rule(&["get", "patch", "update"], &["*"], &["*/scale"]),
        rule(&["list", "watch"], &[""], &["pods"]),
        rule(&["list"], &["metrics.k8s.io"], &["pods"]),
        rule(&["get", "list"], &["custom.metrics.k8s.io"], &["*"]),
        rule(&["get", "list"], &["external.metrics.k8s.io"], &["*"]),
    ]
}

/// Of Corten.
fn vertical_autoscaler() -> Vec<Value> {
    vec![
        rule(READ, &["corten.dev"], &["verticalpodautoscalers"]),
        rule(UPDATE, &["corten.dev"], &["verticalpodautoscalers/status"]),
        rule(&["get"], &["*"], &["*/scale"]),
        rule(&["get", "list", "watch"], &[""], &["pods"]),
        rule(READ, &[""], &["nodes"]),
        rule(UPDATE, &[""], &["pods/resize"]),
        rule(&["list"], &["metrics.k8s.io"], &["pods"]),
    ]
}

fn job() -> Vec<Value> {
    vec![
        rule(&["get", "list", "patch", "update", "watch"], &["batch"], &["jobs"]),
        rule(UPDATE, &["batch"], &["jobs/status"]),
        rule(&["update"], &["batch"], &["jobs/finalizers"]),
        rule(PODS, &[""], &["pods"]),
    ]
}

fn replication_controller() -> Vec<Value> {
    vec![
        rule(&["get", "list", "update", "watch"], &[""], &["replicationcontrollers"]),
        rule(UPDATE, &[""], &["replicationcontrollers/status"]),
        rule(&["update"], &[""], &["replicationcontrollers/finalizers"]),
        rule(PODS, &[""], &["pods"]),
    ]
}

fn stateful_set() -> Vec<Value> {
    vec![
        rule(READ, &["apps"], &["statefulsets"]),
        rule(UPDATE, &["apps"], &["statefulsets/status"]),
        rule(&["update"], &["apps"], &["statefulsets/finalizers"]),
        rule(&["update"], &[""], &["pods/finalizers"]),
        rule(&["create", "delete", "get", "list", "patch", "update", "watch"], &[""], &["pods"]),
        rule(REVISIONS, &["apps"], &["controllerrevisions"]),
        rule(&["create", "get", "list", "patch", "update", "watch"], &[""], &["persistentvolumeclaims"]),
    ]
}

fn ttl_after_finished() -> Vec<Value> {
    vec![rule(&["delete", "get", "list", "watch"], &["batch"], &["jobs"])]
}
