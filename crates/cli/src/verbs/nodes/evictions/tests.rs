use super::*;

#[expect(clippy::needless_pass_by_value, reason = "cases are written where they are passed")]
fn pod(name: &str, owner: Option<&str>, more: serde_json::Value) -> Pod {
    let owners = owner
        .map(|kind| json!([{ "apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "u", "controller": true }]));
    let mut pod =
        json!({ "metadata": { "namespace": "default", "name": name, "uid": name, "ownerReferences": owners } });
    if let Some(phase) = more["phase"].as_str() {
        pod["status"] = json!({ "phase": phase });
    }
    if more["static"] == true {
        pod["metadata"]["annotations"] = json!({ MIRROR_POD: "x" });
    }
    if more["going"] == true {
        pod["metadata"]["deletionTimestamp"] = json!("2026-11-26T10:00:00Z");
    }
    serde_json::from_value(pod).expect("a Pod")
}

#[test]
fn what_would_come_back_here_stays() {
    let pods = [
        pod("web", Some("ReplicaSet"), json!({})),
        pod("agent", Some("DaemonSet"), json!({})),
        pod("static", None, json!({ "static": true })),
        pod("done", Some("Job"), json!({ "phase": "Succeeded" })),
        pod("alone", None, json!({})),
        pod("going", None, json!({ "going": true })),
        pod("ended", Some("ReplicaSet"), json!({ "phase": "Succeeded", "going": true })),
    ];
    let Leaving { pods, unmanaged } = leaving(&pods);
    let names: Vec<(&str, bool)> = pods.iter().map(|it| (&*it.key.name, it.is_going)).collect();
    assert_eq!(names, [("web", false), ("alone", false), ("going", true), ("ended", true)]);
    assert_eq!(unmanaged, [Key::new("default", "alone")]);
}
