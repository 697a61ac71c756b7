//! Pods keep to and from each other by whatever label of nodes they name, counted or looked for.

use super::*;

/// More labels than pods are counted by.
const LABELS: usize = 40;

fn placed_on(effects: &[Effect]) -> Vec<(String, String)> {
    let bound = |it: &Effect| match it {
        Effect::Bind { pod, node, .. } => Some((pod.name.clone(), node.clone())),
        _ => None,
    };
    effects.iter().filter_map(bound).collect()
}

fn labelled_node(name: &str) -> Value {
    let labels: serde_json::Map<String, Value> =
        (0..LABELS).map(|it| (format!("label-{it}"), json!(format!("{name}-{it}")))).collect();
    let amounts = json!({ "cpu": "100", "memory": "100Gi", "pods": "1000" });
    json!({ "metadata": { "name": name, "labels": labels }, "status": { "allocatable": amounts } })
}

fn pod_named(name: &str, app: &str, spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["containers"] = json!([{ "name": "c" }]);
    json!({ "metadata": { "name": name, "namespace": "default", "uid": name, "labels": { "app": app } }, "spec": spec })
}

fn with_term(kind: &str, idx: usize, app: &str) -> Value {
    let term = json!([{ "topologyKey": format!("label-{idx}"), "labelSelector": { "matchLabels": { "app": app } } }]);
    json!({ "affinity": { kind: { "requiredDuringSchedulingIgnoredDuringExecution": term } } })
}

#[test]
fn pods_keep_to_and_from_others_by_whatever_label_they_name() {
    let (mut scheduler, now) = (Scheduler::new(Config::default()), Time::from_unix_seconds(1_800_000_000));
    for name in ["n1", "n2"] {
        scheduler.step(node(&labelled_node(name)), now);
    }
    for idx in 0..LABELS {
        let app = format!("app-{idx}");
        let on_n1 = json!({ "nodeName": "n1" });
        scheduler.step(pod(&pod_named(&format!("first-{idx}"), &app, &on_n1)), now);
        for (kind, name, expected) in [("podAffinity", "near", "n1"), ("podAntiAffinity", "far", "n2")] {
            let name = format!("{name}-{idx}");
            scheduler.step(pod(&pod_named(&name, "other", &with_term(kind, idx, &app))), now);
            let effects = scheduler.step(Event::Tick, now);
            assert_eq!(placed_on(&effects), [(name, expected.to_owned())]);
        }
        // The pod that keeps away from such pods keeps them away, too.
        let name = format!("last-{idx}");
        scheduler.step(pod(&pod_named(&name, &app, &json!({}))), now);
        assert_eq!(placed_on(&scheduler.step(Event::Tick, now)), [(name, "n1".to_owned())]);
    }
}

#[test]
fn a_node_that_is_labelled_otherwise_takes_its_pods_along() {
    let (mut scheduler, now) = (Scheduler::new(Config::default()), Time::from_unix_seconds(1_800_000_000));
    for name in ["n1", "n2"] {
        scheduler.step(node(&labelled_node(name)), now);
    }
    scheduler.step(pod(&pod_named("first", "app", &json!({ "nodeName": "n1" }))), now);
    let near = with_term("podAffinity", 0, "app");
    scheduler.step(pod(&pod_named("a", "other", &near)), now);
    assert_eq!(placed_on(&scheduler.step(Event::Tick, now)), [("a".to_owned(), "n1".to_owned())]);

    // Both nodes are in one domain by now, and only the other has room.
    let mut moved = labelled_node("n1");
    moved["metadata"]["labels"]["label-0"] = "n2-0".into();
    moved["spec"] = json!({ "unschedulable": true });
    scheduler.step(node(&moved), now);
    scheduler.step(pod(&pod_named("b", "other", &near)), now);
    assert_eq!(placed_on(&scheduler.step(Event::Tick, now)), [("b".to_owned(), "n2".to_owned())]);

    // Without the label its pods are in no domain; without them none is wanted any more, and nowhere is near.
    moved["metadata"]["labels"] = json!({});
    scheduler.step(node(&moved), now);
    scheduler.step(pod(&pod_named("c", "other", &near)), now);
    assert!(placed_on(&scheduler.step(Event::Tick, now)).is_empty());
    scheduler.step(Event::NodeGone("n1".into()), now);
    scheduler.step(pod(&pod_named("d", "other", &near)), now);
    assert!(placed_on(&scheduler.step(Event::Tick, now)).is_empty());
}
