//! Pods that fit nowhere are tried again for what can help them, and for nothing else.

use super::*;

const MANY: usize = 10_000;

/// How often a pod was tried: each try ends in a binding or a failure.
fn n_tries(scheduler: &mut Scheduler, now: Time) -> usize {
    let tries = |it: &Effect| matches!(it, Effect::Bind { .. } | Effect::Event { reason: "FailedScheduling", .. });
    let mut count = 0;
    loop {
        let effects = scheduler.step(Event::Tick, now);
        count += effects.iter().filter(|it| tries(it)).count();
        if !effects.contains(&Effect::WakeAt(now)) {
            return count;
        }
    }
}

#[test]
fn ten_thousand_that_fit_nowhere_cost_nothing_while_nothing_can_help_them() {
    const APART: &str = r#"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution=[{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"lonely"}}}]"#;
    let world = world(&format!(
        "node n1 cpu=4 labels=zone=a\nnode n2 cpu=4 labels=zone=b\npod lonely node=n1 running labels=app=lonely {APART}\npod small cpu=1 node=n1 running"
    ));
    let mut scheduler = told(&world);
    let big = object("pod big cpu=8", "big");
    for it in 0..MANY {
        let mut big = big.clone();
        big["metadata"]["name"] = json!(format!("big-{it}"));
        big["metadata"]["uid"] = json!(format!("uid-{it}"));
        scheduler.step(pod(&big), world.now);
    }
    assert_eq!(n_tries(&mut scheduler, world.now), MANY);
    let later = world.now.after(Duration::from_secs(60));
    let service =
        json!({ "metadata": { "name": "web", "namespace": "default" }, "spec": { "selector": { "app": "web" } } });
    for (what, happening) in [
        ("a pod goes", Event::PodGone(Key::new("default", "small"))),
        ("a pod comes", pod(&object("pod other cpu=1 node=n2 running", "other"))),
        ("a node is labelled", node(&object("node n2 cpu=4 labels=zone=c", "n2"))),
        ("a node comes", node(&object("node n3 cpu=4 labels=zone=a", "n3"))),
        ("a node goes", Event::NodeGone("n3".into())),
        (
            "a namespace is labelled",
            of_cluster::<Namespace>(&json!({ "metadata": { "name": "default", "labels": { "a": "b" } } })),
        ),
        ("a Service comes", of_cluster::<Service>(&service)),
        ("a repelling pod goes", Event::PodGone(Key::new("default", "lonely"))),
        ("a class comes", seen::<StorageClass>(&json!({ "metadata": { "name": "fast" }, "provisioner": "x" }))),
        ("a device class comes", seen::<DeviceClass>(&json!({ "metadata": { "name": "gpu" }, "spec": {} }))),
    ] {
        scheduler.step(happening, later);
        assert_eq!(n_tries(&mut scheduler, later), 0, "{what}");
    }
    // One node has room for one of them.
    scheduler.step(node(&object("node n4 cpu=8", "n4")), later);
    let effects = n_tries(&mut scheduler, later);
    assert_eq!(effects, MANY, "all have a reason to be tried");
    assert_eq!(scheduler.placed().count(), 2);
}
