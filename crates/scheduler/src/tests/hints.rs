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
    many_wait("cpu=8", |_| json!({}));
}

#[test]
fn nor_do_they_where_they_matter_more_than_what_runs() {
    many_wait("cpu=8 priority=5", |_| json!({}));
    many_wait("cpu=8 priority=5", |it| json!({ "own": format!("{it}") }));
}

fn many_wait(words: &str, labels: impl Fn(usize) -> Value) {
    const APART: &str = r#"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution=[{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"lonely"}}}]"#;
    let world = world(&format!(
        "node n1 cpu=4 labels=zone=a\nnode n2 cpu=4 labels=zone=b\npod lonely node=n1 running labels=app=lonely {APART}\npod small cpu=1 node=n1 running"
    ));
    let mut scheduler = told(&world);
    let big = object(&format!("pod big {words}"), "big");
    for it in 0..MANY {
        let mut big = big.clone();
        big["metadata"]["name"] = json!(format!("big-{it}"));
        big["metadata"]["uid"] = json!(format!("uid-{it}"));
        big["metadata"]["labels"] = labels(it);
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

/// Who is asked to leave by the next tick.
fn evicted(scheduler: &mut Scheduler, now: Time) -> Vec<String> {
    let victim = |it: Effect| match it {
        Effect::Evict(it) => Some(it.victim.name.clone()),
        _ => None,
    };
    scheduler.step(Event::Tick, now).into_iter().filter_map(victim).collect()
}

#[test]
fn what_makes_preemption_possible_is_a_reason_to_try() {
    const APART: &str = r#"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution=[{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"db"}}}]"#;
    let n1 = |words: &str| node(&object(&format!("node n1 {words}"), "n1"));
    let full = |node: &str| format!("node n1 {node}\npod low cpu=1 node=n1 running\npod high cpu=1 priority=10");
    for (what, lines, happening) in [
        ("the node is uncordoned", full("cpu=1 cordoned"), n1("cpu=1")),
        ("a taint goes", full("cpu=1 taint=x:NoSchedule"), n1("cpu=1")),
        (
            "a label comes",
            full(r#"cpu=1
pod low2 cpu=1 node=n1 running"#).replace("priority=10", r#"priority=10 spec.nodeSelector={"disk":"ssd"}"#),
            n1("cpu=2 labels=disk=ssd"),
        ),
        (
            "a node comes that runs pods already",
            full("cpu=100m").replace("node n1", "node n0"),
            n1("cpu=1"),
        ),
        ("allocatable grows", full("cpu=1").replace("high cpu=1", "high cpu=2"), n1("cpu=2")),
        (
            "one that is as important leaves",
            full("cpu=2\npod same cpu=1 node=n1 running priority=10").replace("high cpu=1", "high cpu=2"),
            Event::PodGone(Key::new("default", "same")),
        ),
        (
            "one that is as important shrinks",
            full("cpu=3\npod same cpu=2 node=n1 running priority=10").replace("high cpu=1", "high cpu=2"),
            pod(&object("pod same cpu=1 node=n1 running priority=10", "same")),
        ),
        (
            "one that keeps it out of the zone leaves another node",
            full("cpu=1 labels=zone=a\nnode n2 cpu=100m labels=zone=a\npod same node=n2 running labels=app=db priority=10")
                .replace("high cpu=1 priority=10", &format!("high cpu=1 priority=10 {APART}")),
            Event::PodGone(Key::new("default", "same")),
        ),
    ] {
        let world = world(&lines);
        let mut scheduler = told(&world);
        assert_eq!(evicted(&mut scheduler, world.now), [""; 0], "{what}: before it happened");
        scheduler.step(happening, world.now);
        let later = world.now.after(Duration::from_secs(1));
        assert_ne!(evicted(&mut scheduler, later), [""; 0], "{what}");
    }
}

#[test]
fn where_preemption_is_no_more_possible_than_before_nobody_tries() {
    let uncordoned = || node(&object("node n1 cpu=1", "n1"));
    for (what, words) in [
        ("it may evict nobody", "priority=10 cpu=1 spec.preemptionPolicy=Never"),
        ("nobody there matters less", "priority=0 cpu=1"),
        ("it is too large for the node", "priority=10 cpu=2"),
    ] {
        let lines = format!("node n1 cpu=1 cordoned\npod low cpu=1 node=n1 running\npod high {words}");
        let world = world(&lines);
        let mut scheduler = told(&world);
        assert_eq!(n_tries(&mut scheduler, world.now), 1);
        scheduler.step(uncordoned(), world.now);
        assert_eq!(n_tries(&mut scheduler, world.now.after(Duration::from_secs(20))), 0, "{what}");
    }
}

/// One for which others leave already needs no other node, until they have left and it does not fit all the same.
#[test]
fn who_waits_for_others_to_leave_tries_again_where_that_was_in_vain() {
    let lines = "node n1 cpu=1\nnode n2 cpu=1 cordoned\npod low cpu=1 node=n1 running\npod low2 cpu=1 node=n2 running\n\
        pod high cpu=1 priority=10";
    let world = world(lines);
    let later = |seconds| world.now.after(Duration::from_secs(seconds));
    let mut scheduler = told(&world);
    let effects = scheduler.step(Event::Tick, world.now);
    let eviction = effects.into_iter().find_map(|it| if let Effect::Evict(it) = it { Some(it) } else { None });
    scheduler.step(Event::Evicted { eviction: eviction.expect("low is to leave") }, later(1));
    scheduler.step(node(&object("node n2 cpu=1", "n2")), later(2));
    assert_eq!(n_tries(&mut scheduler, later(20)), 0, "it waits for low");
    // A pod of the machine itself is faster.
    scheduler.step(pod(&object("pod own cpu=1 node=n1 running priority=100", "own")), later(21));
    scheduler.step(Event::PodGone(Key::new("default", "low")), later(22));
    assert_eq!(evicted(&mut scheduler, later(22)), ["low2"]);
}

#[test]
fn a_change_of_its_own_is_a_reason_to_try_where_it_can_help() {
    const APART: &str = r#"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution=[{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"db"}}}]"#;
    let nodes = "node n1 cpu=1 labels=zone=a taint=x:NoSchedule";
    let kept_away = format!("node n1 cpu=1 labels=zone=a\npod db node=n1 running {APART}");
    for (what, world_of, before, after, is_tried) in [
        ("a label nobody asks about", nodes, "cpu=1 labels=app=db", "cpu=1 labels=app=web", false),
        ("another image", nodes, "cpu=1", "cpu=1 image=other", false),
        ("it asks for more", nodes, "cpu=1", "cpu=2", false),
        ("it asks for less", nodes, "cpu=2", "cpu=1", true),
        ("a toleration", nodes, "cpu=1", r#"cpu=1 spec.tolerations=[{"operator":"Exists"}]"#, true),
        ("a label that kept it away", &*kept_away, "cpu=1 labels=app=db", "cpu=1 labels=app=web", true),
    ] {
        let world = world(&format!("{world_of}\npod a {before}"));
        let mut scheduler = told(&world);
        assert_eq!(n_tries(&mut scheduler, world.now), 1, "{what}");
        scheduler.step(pod(&object(&format!("pod a {after}"), "a")), world.now);
        assert_eq!(n_tries(&mut scheduler, world.now), usize::from(is_tried), "{what}");
        let later = world.now.after(Duration::from_secs(1));
        // It is tried as it is now.
        let retried = n_tries(&mut scheduler, later.after(Duration::from_secs(300)));
        assert!(retried <= 1, "{what}");
    }
}

/// When it was tried, no node was turned down for what runs elsewhere.
#[test]
fn who_is_kept_off_a_node_that_came_later_is_helped_by_what_happens_elsewhere() {
    const APART: &str = r#"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution=[{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"db"}}}]"#;
    let world = world(&format!(
        "node n1 cpu=100m labels=zone=a\npod db node=n1 running labels=app=db\npod a cpu=1 {APART}\npod b cpu=1 priority=5 {APART}"
    ));
    let mut scheduler = told(&world);
    assert_eq!(n_tries(&mut scheduler, world.now), 2);
    let later = world.now.after(Duration::from_secs(20));
    scheduler.step(node(&object("node n2 cpu=1 labels=zone=a", "n2")), later);
    assert_eq!(n_tries(&mut scheduler, later), 0, "db is in the same zone");
    scheduler.step(Event::PodGone(Key::new("default", "db")), later);
    assert_eq!(binds(&mut scheduler, Event::Tick, later), ["b>n2", "a!"]);
}

/// The conditions that are written, and what the journal says is waited for.
fn said(effects: &[Effect]) -> Vec<String> {
    let said = |it: &Effect| match it {
        Effect::PatchCondition { patch, .. } => {
            Some(format!("condition: {}", patch["status"]["conditions"][0]["message"].as_str().unwrap_or_default()))
        }
        Effect::Record { decision, .. } => Some(format!("journal: {}", decision.waits[0].reason)),
        Effect::Event { reason, .. } => Some(format!("event: {reason}")),
        _ => None,
    };
    effects.iter().filter_map(said).collect()
}

#[test]
fn a_reason_that_is_over_is_not_said_any_more_though_the_pod_still_fits_nowhere() {
    let world = world("node n1 cpu=1\nnode n2 cpu=1 cordoned\npod big cpu=2\npod like cpu=2");
    let mut scheduler = told(&world);
    let tried = scheduler.step(Event::Tick, world.now);
    let message = |it: &str| format!("0/2 nodes are available: {it}");
    let conditions = |name: &str, message: &str| {
        let mut seen = object(&format!("pod {name} cpu=2"), name);
        seen["status"] = json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "message": message }] });
        pod(&seen)
    };
    let first = said(&tried).into_iter().find_map(|it| Some(it.strip_prefix("condition: ")?.to_owned()));
    let first = first.expect("a condition is written");
    assert!(first.starts_with(&message("1 Insufficient cpu, 1 node(s) were unschedulable.")), "{first}");
    ["big", "like"].iter().for_each(|it| drop(scheduler.step(conditions(it, &first), world.now)));
    // It is too small, too: nobody is tried for that.
    let later = world.now.after(Duration::from_secs(60));
    let seen = scheduler.step(node(&object("node n2 cpu=1", "n2")), later);
    assert!(seen.contains(&Effect::WakeAt(later.after(Duration::from_secs(1)))), "{seen:?}");
    let later = later.after(Duration::from_secs(1));
    let told = said(&scheduler.step(Event::Tick, later));
    let condition = format!("condition: {}", message("2 Insufficient cpu."));
    assert_eq!(told.iter().filter(|it| it.starts_with(&condition)).count(), 2, "{told:?}");
    assert_eq!(told.iter().filter(|it| *it == "journal: InsufficientResources").count(), 2, "{told:?}");
    assert_eq!(told.len(), 4, "none was tried: {told:?}");
    // Once that is so, nothing more is said of it.
    let much_later = later.after(Duration::from_secs(30));
    assert_eq!(said(&scheduler.step(Event::Tick, much_later)), [""; 0]);
}

#[test]
fn a_pod_that_was_helped_amid_its_back_off_does_not_say_what_it_lacked() {
    let world = world("node n1 cpu=1\npod big cpu=3");
    let mut scheduler = told(&world);
    assert_eq!(n_tries(&mut scheduler, world.now), 1);
    // It is tried amid its first back-off, in vain, and waits the second out.
    scheduler.step(pod(&object("pod big cpu=2", "big")), world.now);
    assert_eq!(n_tries(&mut scheduler, world.now), 1);
    let effects = scheduler.step(node(&object("node n2 cpu=4", "n2")), world.now);
    let told: Vec<&str> = effects
        .iter()
        .filter_map(|it| match it {
            Effect::Record { decision, .. } => Some(&*decision.waits[0].message),
            _ => None,
        })
        .collect();
    assert_eq!(
        told,
        ["NodeAdd may have helped it: it is tried again at 2026-11-20T12:00:02Z, a while after its last try"]
    );
}

#[test]
fn a_change_that_many_are_told_of_is_told_to_a_few_at_a_time() {
    let world = world("node n1 cpu=1\nnode n2 cpu=1 cordoned");
    let mut scheduler = told(&world);
    let condition =
        json!([{ "type": "PodScheduled", "status": "False", "message": "0/9 nodes are available: so it was." }]);
    let waiting = |scheduler: &mut Scheduler, has_condition: bool| {
        for it in 0..100 {
            let mut big = object("pod big cpu=2", "big");
            big["metadata"]["name"] = json!(format!("big-{it}"));
            big["metadata"]["uid"] = json!(format!("uid-{it}"));
            if has_condition {
                big["status"] = json!({ "conditions": condition });
            }
            scheduler.step(pod(&big), world.now);
        }
    };
    waiting(&mut scheduler, false);
    assert_eq!(n_tries(&mut scheduler, world.now), 100);
    waiting(&mut scheduler, true);
    let mut now = world.now.after(Duration::from_secs(60));
    scheduler.step(node(&object("node n2 cpu=1", "n2")), now);
    let mut written = Vec::new();
    for _ in 0..3 {
        now = now.after(Duration::from_secs(1));
        let effects = scheduler.step(Event::Tick, now);
        let patched = effects.iter().filter_map(|it| match it {
            Effect::PatchCondition { pod, .. } => Some(pod.clone()),
            _ => None,
        });
        let patched: Vec<Key> = patched.collect();
        assert_eq!(patched.len(), 32);
        assert!(effects.contains(&Effect::WakeAt(now.after(Duration::from_secs(1)))), "the others follow");
        // What was written is seen.
        for key in &patched {
            let name = &key.name;
            let mut seen = object("pod big cpu=2", "big");
            seen["metadata"]["name"] = json!(name);
            seen["metadata"]["uid"] = json!(name.replace("big", "uid"));
            let patch = effects.iter().find_map(|it| match it {
                Effect::PatchCondition { pod, patch } if pod == key => Some(patch),
                _ => None,
            });
            seen["status"] = json!({ "conditions": patch.expect("it was written to")["status"]["conditions"] });
            scheduler.step(pod(&seen), now);
        }
        written.extend(patched);
    }
    written.sort();
    written.dedup();
    assert_eq!(written.len(), 96, "each is written to once");
}

/// What is said of parked pods changes faster than all of them can be told.
#[test]
fn a_change_that_never_ends_is_told_to_all_in_turn() {
    let world = world("node n1 cpu=1\nnode n2 cpu=1 cordoned");
    let mut scheduler = told(&world);
    let (n_kinds, n_each) = (3, 40);
    let condition =
        json!([{ "type": "PodScheduled", "status": "False", "message": "0/9 nodes are available: so it was." }]);
    for has_condition in [false, true] {
        for it in 0..n_kinds * n_each {
            let mut big = object(&format!("pod big cpu={}", 2 + it % n_kinds), "big");
            big["metadata"]["name"] = json!(format!("big-{it}"));
            big["metadata"]["uid"] = json!(format!("uid-{it}"));
            if has_condition {
                big["status"] = json!({ "conditions": condition });
            }
            scheduler.step(pod(&big), world.now);
        }
        scheduler.step(Event::Tick, world.now);
    }
    let mut now = world.now.after(Duration::from_secs(60));
    let mut told = std::collections::BTreeSet::new();
    for round in 0..20 {
        let flipped = if round % 2 == 0 { "node n2 cpu=1" } else { "node n2 cpu=1 cordoned" };
        scheduler.step(node(&object(flipped, "n2")), now);
        now = now.after(Duration::from_secs(6));
        let effects = scheduler.step(Event::Tick, now);
        told.extend(effects.into_iter().filter_map(|it| match it {
            Effect::PatchCondition { pod, .. } => Some(pod),
            _ => None,
        }));
    }
    assert_eq!(told.len(), n_kinds * n_each, "each is told in its turn");
}
