use super::*;

#[test]
fn a_workload_waits_for_the_first_of_its_own_that_is_not_ready() {
    let owner = json!({"metadata": {"uid": "u"}});
    let of = |uid: &str, ready: &str| {
        json!({
            "metadata": {"name": "a", "ownerReferences": [{"uid": uid, "controller": true}]},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]},
        })
    };
    for (pod, expected) in [(of("u", "False"), true), (of("u", "True"), false), (of("v", "False"), false)] {
        assert_eq!(is_owned(&pod, &owner) && lacks(&pod), expected, "{pod}");
    }
    let mut done = of("u", "False");
    done["status"]["phase"] = json!("Succeeded");
    assert!(!lacks(&done));
    assert!(lacks(&json!({"spec": {"replicas": 2}, "status": {"readyReplicas": 1}})));
    assert!(!lacks(&json!({"spec": {"replicas": 0}})));
    assert_eq!(not_ready(&PODS, "web-1").on.as_deref(), Some("pod/web-1"));
}

#[test]
fn the_scheduler_says_why_a_pod_has_no_node() {
    let condition =
        json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes"});
    let wait = unscheduled(&json!({"status": {"conditions": [condition]}})).expect("it waits");
    assert_eq!((&*wait.reason, &*wait.message), ("Unschedulable", "0/2 nodes"));
    assert_eq!(unscheduled(&json!({})), None);
}
