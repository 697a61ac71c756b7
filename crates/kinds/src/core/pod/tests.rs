//! The words that `kubectl get pods` prints, and how long a Pod has to end.

use corten_meta::Time;
use serde_json::{Value, json};

use super::{KIND, columns::COLUMNS};

/// What is printed half a day after `2026-01-01T00:00:00Z`: ready, status, restarts.
fn printed(pod: &Value) -> [String; 3] {
    let now: Time = "2026-01-01T12:00:00Z".parse().expect("a time");
    [0, 1, 2].map(|at| (COLUMNS[at].cell)(pod, now).as_str().expect("text").to_owned())
}

fn pod(status: Value) -> Value {
    json!({
        "metadata": {},
        "spec": {
            "initContainers": [{"name": "init"}, {"name": "sidecar", "restartPolicy": "Always"}],
            "containers": [{"name": "a"}, {"name": "b"}]},
        "status": status})
}

fn running(name: &str) -> Value {
    json!({"name": name, "ready": true, "started": true, "state": {"running": {}}})
}

fn ended(name: &str, reason: &str, code: i32) -> Value {
    json!({"name": name, "state": {"terminated": {"reason": reason, "exitCode": code}}})
}

fn waiting(name: &str, reason: &str) -> Value {
    json!({"name": name, "state": {"waiting": {"reason": reason}}})
}

#[test]
fn status_is_one_word_for_a_life() {
    let (done, sidecar) = (ended("init", "Completed", 0), running("sidecar"));
    let through = json!([done, sidecar]);
    for (status, expected) in [
        (json!({"phase": "Pending"}), ["0/3", "Pending", "0"]),
        (
            json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "reason": "SchedulingGated"}]}),
            ["0/3", "SchedulingGated", "0"],
        ),
        (json!({"phase": "Failed", "reason": "Evicted"}), ["0/3", "Evicted", "0"]),
        (
            json!({"phase": "Pending", "initContainerStatuses": [waiting("init", "PodInitializing")]}),
            ["0/3", "Init:0/2", "0"],
        ),
        (
            json!({"phase": "Pending", "initContainerStatuses": [done, waiting("sidecar", "ErrImagePull")]}),
            ["0/3", "Init:ErrImagePull", "0"],
        ),
        (json!({"phase": "Pending", "initContainerStatuses": [ended("init", "", 3)]}), ["0/3", "Init:ExitCode:3", "0"]),
        (
            json!({"phase": "Pending", "initContainerStatuses": through,
                "containerStatuses": [waiting("a", "PodInitializing"), waiting("b", "PodInitializing")]}),
            ["1/3", "PodInitializing", "0"],
        ),
        (
            json!({"phase": "Running", "initContainerStatuses": through,
                "containerStatuses": [running("a"), running("b")]}),
            ["3/3", "Running", "0"],
        ),
        (
            json!({"phase": "Running", "initContainerStatuses": through, "containerStatuses": [running("a"), {
                "name": "b", "restartCount": 3,
                "lastState": {"terminated": {"finishedAt": "2026-01-01T11:55:00Z"}},
                "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]}),
            ["2/3", "CrashLoopBackOff", "3 (5m ago)"],
        ),
        (
            json!({"phase": "Running", "containerStatuses": [running("a"), ended("b", "Completed", 0)],
                "conditions": [{"type": "Ready", "status": "False"}]}),
            ["1/3", "NotReady", "0"],
        ),
        (
            json!({"phase": "Running", "containerStatuses": [ended("a", "Completed", 0), running("b")],
                "conditions": [{"type": "Ready", "status": "True"}]}),
            ["1/3", "Running", "0"],
        ),
        (
            json!({"phase": "Failed", "containerStatuses": [ended("a", "OOMKilled", 137), ended("b", "Completed", 0)]}),
            ["0/3", "OOMKilled", "0"],
        ),
    ] {
        assert_eq!(printed(&pod(status.clone())), expected, "{status}");
    }
    let mut ending = pod(json!({"phase": "Running", "containerStatuses": [running("a"), running("b")]}));
    ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T11:59:00Z");
    assert_eq!(printed(&ending), ["2/3", "Terminating", "0"]);
    ending["status"]["reason"] = json!("NodeLost");
    assert_eq!(printed(&ending), ["2/3", "Unknown", "0"]);
}

#[test]
fn wide_columns() {
    let now = Time::from_unix_seconds(0);
    let wide = |pod: &Value| -> Vec<Value> { COLUMNS[4..].iter().map(|it| (it.cell)(pod, now)).collect() };
    assert_eq!(wide(&pod(json!({}))), ["<none>"; 4]);
    let mut pod = pod(json!({"podIPs": [{"ip": "10.0.0.2"}], "nominatedNodeName": "n2",
        "conditions": [{"type": "x", "status": "True"}]}));
    pod["spec"]["nodeName"] = json!("n1");
    pod["spec"]["readinessGates"] = json!([{"conditionType": "x"}, {"conditionType": "y"}]);
    assert_eq!(wide(&pod), ["10.0.0.2", "n1", "n2", "1/2"]);
}

#[test]
fn grace_is_for_pods_that_run() {
    for (pod, asked, seconds) in [
        (json!({"spec": {"terminationGracePeriodSeconds": 30}}), None, 0),
        (json!({"spec": {"terminationGracePeriodSeconds": 30}}), Some(60), 0),
        (json!({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 5}}), None, 5),
        (json!({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 5}}), Some(60), 60),
        (json!({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 0}}), Some(60), 60),
        (json!({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 5}}), Some(0), 0),
        (json!({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": -5}}), None, 1),
        (
            json!({"spec": {"nodeName": "n", "terminationGracePeriodSeconds": 5}, "status": {"phase": "Failed"}}),
            None,
            0,
        ),
    ] {
        assert_eq!(KIND.policy.grace_seconds(&pod, asked), seconds, "{pod}");
    }
}

#[test]
fn a_status_update_keeps_the_class() {
    let old = json!({"status": {"qosClass": "Burstable"}});
    let mut new = json!({"status": {"qosClass": "Guaranteed", "phase": "Running"}});
    KIND.policy.prepare_status_update(&mut new, &old);
    assert_eq!(new, json!({"status": {"qosClass": "Burstable", "phase": "Running"}}));
}
