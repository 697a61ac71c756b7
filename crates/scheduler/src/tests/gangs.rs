//! Gangs: all of a PodGroup's pods are placed, or none of them is.

use super::*;
use crate::{LabelledGroup, PodGroup};

fn group(min_count: usize) -> Event {
    group_with("g", min_count, json!({}))
}

/// A group with more fields of its spec.
fn group_with(name: &str, min_count: usize, mut spec: Value) -> Event {
    spec["schedulingPolicy"] = json!({ "gang": { "minCount": min_count } });
    let metadata = json!({ "name": name, "namespace": "default", "uid": format!("group-{name}"), "generation": 1 });
    of_cluster::<PodGroup>(&json!({ "metadata": metadata, "spec": spec }))
}

const MEMBER: &str = r#"spec.schedulingGroup={"podGroupName":"g"}"#;

fn member(line: &str) -> Value {
    object(&format!("{line} {MEMBER}"), line.split(' ').nth(1).expect("a name"))
}

/// Nodes, pods of no group, and members of the group with their words.
fn with(lines: &str, members: &[&str]) -> (Scheduler, Time) {
    let world = world(lines);
    let mut scheduler = told(&world);
    members.iter().for_each(|it| drop(scheduler.step(pod(&member(it)), world.now)));
    (scheduler, world.now)
}

fn tick(scheduler: &mut Scheduler, now: Time) -> String {
    describe(&scheduler.step(Event::Tick, now), now)
}

#[test]
fn a_gang_is_tried_when_it_is_whole() {
    let (mut scheduler, now) = with("node n1 cpu=4", &[]);
    let held = describe(&scheduler.step(pod(&member("pod a cpu=1")), now), now);
    assert!(held.contains("wait GangIncomplete (Author): its pod group g is not there"), "{held}");
    scheduler.step(group(3), now);
    let held = describe(&scheduler.step(pod(&member("pod b cpu=1")), now), now);
    assert!(held.contains("wait GangIncomplete (Author): its pod group g has 2 of the 3 pods that it needs"), "{held}");
    assert_eq!(binds(&mut scheduler, Event::Tick, now), [""; 0]);
    scheduler.step(pod(&member("pod c cpu=1")), now);
    let told = tick(&mut scheduler, now);
    for name in ["a", "b", "c"] {
        assert!(told.contains(&format!("bind default/{name} to n1")), "{told}");
    }
    assert!(
        told.contains("patch group default/g")
            && told.contains(r#""type":"PodGroupInitiallyScheduled","status":"True","reason":"Scheduled""#),
        "{told}"
    );
    // One more of a gang that is placed needs no others.
    scheduler.step(pod(&member("pod d cpu=1")), now);
    assert_eq!(binds(&mut scheduler, Event::Tick, now), ["d>n1"]);
}

#[test]
fn none_is_bound_where_they_do_not_fit_together() {
    let (mut scheduler, now) =
        with("node n1 cpu=2\npod other cpu=1 priority=-5", &["pod a cpu=1", "pod b cpu=1", "pod c cpu=1"]);
    scheduler.step(group(3), now);
    let told = tick(&mut scheduler, now);
    let bound: Vec<&str> = told.lines().filter(|it| it.starts_with("bind")).collect();
    assert_eq!(bound, ["bind default/other to n1"], "the room that they did not take is another's");
    assert!(told.contains(r#""status":"False","reason":"Unschedulable","message":"minCount (3) cannot be satisfied: 2 scheduled, 0 remaining""#), "{told}");
    let why = "wait GangUnschedulable on pod/c (Operator): the pods of pod group g cannot be placed together: minCount (3) cannot be satisfied: \
               2 scheduled, 0 remaining; pod c does not fit: 0/1 nodes are available: 1 Insufficient cpu.";
    assert_eq!(told.matches(why).count(), 2, "{told}");
    // Room for one more is not enough; room for all is.
    let later = now.after(Duration::from_secs(20));
    scheduler.step(node(&object("node n2 cpu=1", "n2")), later);
    assert_eq!(binds(&mut scheduler, Event::Tick, later).iter().filter(|it| it.contains('>')).count(), 0);
    let later = later.after(Duration::from_secs(20));
    scheduler.step(node(&object("node n3 cpu=1", "n3")), later);
    let mut bound = binds(&mut scheduler, Event::Tick, later);
    bound.sort_by_key(|it| it.split('>').nth(1).map(str::to_owned));
    assert_eq!(bound.len(), 3, "{bound:?}");
    assert_eq!(scheduler.placed().count(), 4);
}

#[test]
fn a_gang_that_does_not_fit_costs_nothing_until_what_it_lacks_comes() {
    let (mut scheduler, now) = with("node n1 cpu=1\nnode n2 cpu=1", &["pod a cpu=1", "pod b cpu=4"]);
    scheduler.step(group(2), now);
    assert_eq!(binds(&mut scheduler, Event::Tick, now), ["a!", "b!"]);
    // The first would fit here, which helps nobody.
    let later = now.after(Duration::from_secs(20));
    scheduler.step(node(&object("node n3 cpu=1", "n3")), later);
    assert_eq!(binds(&mut scheduler, Event::Tick, later), [""; 0]);
    scheduler.step(node(&object("node n4 cpu=4", "n4")), later);
    assert_eq!(binds(&mut scheduler, Event::Tick, later).len(), 2);
    assert_eq!(scheduler.placed().count(), 2);
}

#[test]
fn who_goes_and_who_comes_counts() {
    let (mut scheduler, now) = with("node n1 cpu=2", &["pod a cpu=1", "pod big cpu=8", "pod b cpu=1"]);
    scheduler.step(group(3), now);
    assert_eq!(binds(&mut scheduler, Event::Tick, now), ["a!", "b!", "big!"]);
    // The one that does not fit goes: there are too few, until another comes.
    let later = now.after(Duration::from_secs(20));
    scheduler.step(Event::PodGone(Key::new("default", "big")), later);
    assert_eq!(binds(&mut scheduler, Event::Tick, later), [""; 0]);
    scheduler.step(pod(&member("pod c cpu=0")), later);
    let bound = binds(&mut scheduler, Event::Tick, later);
    assert_eq!(bound.iter().filter(|it| it.contains('>')).count(), 3, "{bound:?}");
}

#[test]
fn a_member_that_is_gated_is_waited_for() {
    let (mut scheduler, now) = with("node n1 cpu=2", &["pod a cpu=1"]);
    scheduler.step(group(2), now);
    let gated = object(&format!("pod b cpu=1 gate=example.com/x {MEMBER}"), "b");
    scheduler.step(pod(&gated), now);
    let told = tick(&mut scheduler, now);
    assert!(
        !told.contains("bind") && told.contains("minCount (2) cannot be satisfied: 0 scheduled, 1 remaining"),
        "{told}"
    );
    let later = now.after(Duration::from_secs(20));
    scheduler.step(pod(&member("pod b cpu=1")), later);
    assert_eq!(binds(&mut scheduler, Event::Tick, later), ["a>n1", "b>n1"]);
}

#[test]
fn a_gang_that_shrinks_before_it_is_tried_is_held_back_again() {
    let (mut scheduler, now) = with("node n1 cpu=2", &["pod a cpu=1", "pod b cpu=1"]);
    scheduler.step(group(2), now);
    scheduler.step(Event::PodGone(Key::new("default", "b")), now);
    let told = tick(&mut scheduler, now);
    assert!(told.contains("GangIncomplete") && !told.contains("bind"), "{told}");
    scheduler.step(pod(&member("pod c cpu=1")), now);
    assert_eq!(binds(&mut scheduler, Event::Tick, now), ["a>n1", "c>n1"]);
}

#[test]
fn a_gang_of_no_priority_evicts_nobody_and_a_plugin_that_breaks_binds_none() {
    let (mut scheduler, now) =
        with("node n1 cpu=1\npod low cpu=1 node=n1 running", &["pod a cpu=1 priority=9", "pod b priority=9"]);
    scheduler.step(group(2), now);
    let told = tick(&mut scheduler, now);
    assert!(!told.contains("evict") && !told.contains("bind"), "{told}");
    let (mut scheduler, now) = with("node n1 cpu=1", &["pod a", "pod b labels=breaks=yes"]);
    scheduler.step(group(2), now);
    let told = tick(&mut scheduler, now);
    assert!(!told.contains("bind") && told.contains("LoopPanicked") && told.contains("SchedulerError"), "{told}");
    assert_eq!(scheduler.placed().count(), 0);
}

#[test]
fn a_group_without_a_gang_is_placed_one_by_one() {
    let (mut scheduler, now) = with("node n1 cpu=1", &["pod a cpu=1", "pod b cpu=1"]);
    let basic =
        json!({ "metadata": { "name": "g", "namespace": "default" }, "spec": { "schedulingPolicy": { "basic": {} } } });
    scheduler.step(of_cluster::<PodGroup>(&basic), now);
    assert_eq!(binds(&mut scheduler, Event::Tick, now), ["a>n1", "b!"]);
}

fn evictions(told: &str) -> Vec<&str> {
    told.lines().filter(|it| it.starts_with("evict")).filter_map(|it| it.split(' ').nth(1)).collect()
}

fn gone(scheduler: &mut Scheduler, names: &[&str], now: Time) {
    names.iter().for_each(|it| drop(scheduler.step(Event::PodGone(Key::new("default", *it)), now)));
}

#[test]
fn a_gang_evicts_as_a_whole_and_no_more_than_it_needs() {
    let lines = "node n1 cpu=2\nnode n2 cpu=2\nnode n3 cpu=2\npod kept cpu=2 node=n1 running priority=5\n\
                 pod low cpu=2 node=n2 running priority=1\npod least cpu=1 node=n3 running\npod small cpu=1 node=n3 running priority=3";
    let (mut scheduler, now) = with(lines, &["pod a cpu=2", "pod b cpu=1"]);
    scheduler.step(group_with("g", 2, json!({ "priority": 9 })), now);
    let told = tick(&mut scheduler, now);
    assert_eq!(evictions(&told), ["default/low", "default/least"], "{told}");
    assert!(!told.contains("bind") && told.contains("preempting to accommodate a higher priority podgroup"), "{told}");
    assert!(told.contains(r#""nominatedNodeName":"n2""#) && told.contains(r#""nominatedNodeName":"n3""#), "{told}");
    assert!(told.contains("wait Preempting on pod/low (Cluster): node n2 is kept for it"), "{told}");
    // Nobody else takes the room, and nobody is evicted twice for it.
    scheduler.step(pod(&object("pod other cpu=1", "other")), now);
    gone(&mut scheduler, &["low"], now);
    let later = now.after(Duration::from_secs(20));
    let told = tick(&mut scheduler, later);
    assert!(!told.contains("bind") && evictions(&told).is_empty(), "{told}");
    gone(&mut scheduler, &["least"], later);
    let later = later.after(Duration::from_secs(20));
    assert_eq!(binds(&mut scheduler, Event::Tick, later), ["a>n2", "b>n3"]);
    assert_eq!(scheduler.placed().count(), 4);
}

#[test]
fn a_gang_tries_again_where_it_could_evict_others_by_now() {
    let lines = |words: &str| {
        format!("node n1 cpu=2{words}\npod low cpu=1 node=n1 running\npod low2 cpu=1 node=n1 running priority=1")
    };
    let (mut scheduler, now) = with(&lines(" cordoned"), &["pod a cpu=1", "pod b cpu=1"]);
    scheduler.step(group_with("g", 2, json!({ "priority": 9 })), now);
    let told = tick(&mut scheduler, now);
    assert!(evictions(&told).is_empty() && told.contains("node(s) were unschedulable"), "{told}");
    scheduler.step(node(&object(&lines(""), "n1")), now);
    let told = tick(&mut scheduler, now.after(Duration::from_secs(20)));
    assert_eq!(evictions(&told), ["default/low2", "default/low"], "{told}");
}

#[test]
fn an_eviction_for_a_gang_that_is_refused_is_asked_for_again() {
    let (mut scheduler, now) = with("node n1 cpu=2\npod low cpu=2 node=n1 running", &["pod a cpu=1", "pod b cpu=1"]);
    scheduler.step(group_with("g", 2, json!({ "priority": 9 })), now);
    let effects = scheduler.step(Event::Tick, now);
    let eviction = effects.into_iter().find_map(|it| match it {
        Effect::Evict(it) => Some(it),
        _ => None,
    });
    let eviction = eviction.expect("low is asked to leave");
    scheduler.step(Event::EvictionFailed { eviction, message: "busy".into() }, now);
    let told = tick(&mut scheduler, now.after(Duration::from_secs(2)));
    assert_eq!(evictions(&told), ["default/low"], "{told}");
}

#[test]
fn nobody_is_evicted_where_it_does_not_help_or_is_not_allowed() {
    let lines = "node n1 cpu=2\npod low cpu=2 node=n1 running";
    let why = |members: &[&str], spec: Value| {
        let (mut scheduler, now) = with(lines, members);
        scheduler.step(group_with("g", 2, spec), now);
        let told = tick(&mut scheduler, now);
        assert!(evictions(&told).is_empty() && !told.contains("bind"), "{told}");
        assert_eq!(scheduler.placed().count(), 1, "low is where it was");
        told
    };
    // One of them alone would fit.
    let elsewhere = r#"pod b cpu=1 spec.nodeSelector={"of":"others"}"#;
    let told = why(&["pod a cpu=1", elsewhere], json!({ "priority": 9 }));
    assert!(told.contains("the pods of the gang do not fit without all pods of lower priority, either"), "{told}");
    let told = why(&["pod a cpu=1", "pod b cpu=1"], json!({ "priority": 0 }));
    assert!(told.contains("No preemption victims found for incoming pod"), "{told}");
    let never = r#"pod b cpu=1 spec.preemptionPolicy="Never""#;
    why(&["pod a cpu=1", never], json!({ "priority": 9 }));
}

const OTHER: &str = r#"spec.schedulingGroup={"podGroupName":"h"}"#;

#[test]
fn a_group_that_is_disrupted_whole_goes_whole() {
    let lines = format!(
        "node n1 cpu=2\nnode n2 cpu=2\npod h1 cpu=2 node=n1 running priority=3 {OTHER}\npod h2 cpu=1 node=n2 running priority=3 {OTHER}"
    );
    for (mode, n_victims) in [("single", 1), ("all", 2)] {
        // For a gang, and for a pod alone, for which the group's priority counts, too.
        let (mut scheduler, now) = with(&lines, &["pod a cpu=2", "pod b cpu=0"]);
        let spec = json!({ "disruptionMode": { mode: {} }, "priority": 1 });
        scheduler.step(group_with("h", 1, spec.clone()), now);
        scheduler.step(group_with("g", 2, json!({ "priority": 2 })), now);
        let told = tick(&mut scheduler, now);
        assert_eq!(evictions(&told).len(), n_victims, "{told}");

        let (mut scheduler, now) = with(&lines, &[]);
        scheduler.step(group_with("h", 1, spec), now);
        scheduler.step(pod(&object("pod alone cpu=2 priority=2", "alone")), now);
        let told = tick(&mut scheduler, now);
        assert_eq!(evictions(&told).len(), n_victims, "{told}");
    }
}

#[test]
fn a_budget_spares_who_it_is_for() {
    // All three would have to leave, if one of them were not small enough to stay.
    let lines = "node n1 cpu=3\npod x cpu=1 node=n1 running labels=app=x\npod y cpu=1 node=n1 running\npod z cpu=1 node=n1 running";
    let (mut scheduler, now) = with(lines, &["pod a cpu=1", "pod b cpu=1"]);
    let budget = json!({ "metadata": { "name": "x", "namespace": "default" },
                         "spec": { "selector": { "matchLabels": { "app": "x" } } }, "status": { "disruptionsAllowed": 0 } });
    scheduler.step(of_cluster::<DisruptionBudget>(&budget), now);
    scheduler.step(group_with("g", 2, json!({ "priority": 9 })), now);
    let told = tick(&mut scheduler, now);
    let mut evicted = evictions(&told);
    evicted.sort_unstable();
    assert_eq!(evicted, ["default/y", "default/z"], "{told}");
}

fn labelled(name: &str, label: &str) -> Event {
    pod(&object(&format!("pod {name} cpu=1 priority=5 labels={label}=j"), name))
}

fn labelled_group(min_member: usize) -> Event {
    let metadata = json!({ "name": "j", "namespace": "default", "uid": "group-j" });
    of_cluster::<LabelledGroup>(&json!({ "metadata": metadata, "spec": { "minMember": min_member } }))
}

#[test]
fn groups_that_labels_name_are_gangs_where_they_are_served() {
    let (mut scheduler, now) = with("node n1 cpu=2", &[]);
    // Nobody has installed them: the label says nothing.
    scheduler.step(labelled("z", "scheduling.x-k8s.io/pod-group"), now);
    assert_eq!(binds(&mut scheduler, Event::Tick, now), ["z>n1"]);
    scheduler.step(Event::PodGone(Key::new("default", "z")), now);
    scheduler.step(Event::LabelledGroupsServed(true), now);
    let held = describe(&scheduler.step(labelled("a", "scheduling.x-k8s.io/pod-group"), now), now);
    assert!(held.contains("wait GangIncomplete (Author): its pod group j is not there"), "{held}");
    scheduler.step(labelled_group(3), now);
    scheduler.step(labelled("b", "pod-group.scheduling.sigs.k8s.io"), now);
    assert_eq!(binds(&mut scheduler, Event::Tick, now), [""; 0]);
    scheduler.step(labelled("c", "scheduling.x-k8s.io/pod-group"), now);
    let told = tick(&mut scheduler, now);
    assert!(told.contains("the pods of pod group j cannot be placed together") && !told.contains("bind"), "{told}");
    assert!(!told.contains("patch group"), "its status is another controller's: {told}");
    let later = now.after(Duration::from_secs(20));
    scheduler.step(node(&object("node n2 cpu=1", "n2")), later);
    assert_eq!(binds(&mut scheduler, Event::Tick, later).len(), 3);
}

#[test]
fn pods_are_let_go_when_groups_are_served_no_more() {
    let (mut scheduler, now) = with("node n1 cpu=2", &[]);
    scheduler.step(Event::LabelledGroupsServed(true), now);
    scheduler.step(labelled_group(9), now);
    scheduler.step(labelled("a", "scheduling.x-k8s.io/pod-group"), now);
    assert_eq!(binds(&mut scheduler, Event::Tick, now), [""; 0]);
    scheduler.step(Event::LabelledGroupsServed(false), now);
    assert_eq!(binds(&mut scheduler, Event::Tick, now), ["a>n1"]);
}

#[test]
fn a_gang_that_is_too_large_for_all_nodes_is_refused_without_a_search() {
    let lines =
        "node n1 cpu=4\nnode n2 cpu=4\npod low cpu=4 node=n1 running\npod kept cpu=1 node=n2 running priority=20";
    let is_too_large = |members: &[&str]| {
        let (mut scheduler, now) = with(lines, members);
        scheduler.step(group_with("g", members.len(), json!({ "priority": 9 })), now);
        let told = tick(&mut scheduler, now);
        assert!(!told.contains("bind"), "{told}");
        let why =
            "preemption: the pods of the gang ask for more than all nodes have without all pods of lower priority";
        assert_eq!(told.contains(why), evictions(&told).is_empty(), "{told}");
        told.contains(why)
    };
    // One fits no node; three fit one each; all together ask for too much. As much as there is is not too much.
    assert!(is_too_large(&["pod a cpu=1", "pod b cpu=5"]));
    assert!(is_too_large(&["pod a cpu=2100m", "pod b cpu=2100m", "pod c cpu=2100m"]));
    assert!(is_too_large(&["pod a cpu=1", "pod b cpu=4", "pod c cpu=3"]));
    assert!(!is_too_large(&["pod a cpu=0", "pod b cpu=4", "pod c cpu=3"]));
}

/// Where fewer priorities are not enough, the gang has the nodes that it was given when all were away: no second draw loses them.
#[test]
fn a_gang_keeps_the_nodes_it_was_given_where_nobody_can_be_spared() {
    let evicted = |least: i32, seed: u64| {
        let mut lines = String::new();
        for at in 0..6 {
            let priority = if at == 0 { least } else { 5 };
            let _ = writeln!(lines, "node n{at} cpu=1\npod p{at} cpu=1 node=n{at} running priority={priority}");
        }
        let world = world(&lines);
        let mut scheduler = Scheduler::new(Config { seed, ..Config::default() });
        world.list(&NODES).for_each(|it| drop(scheduler.step(node(it.1), world.now)));
        world.list(&PODS).for_each(|it| drop(scheduler.step(pod(it.1), world.now)));
        ["pod a cpu=1", "pod b cpu=1"].iter().for_each(|it| drop(scheduler.step(pod(&member(it)), world.now)));
        scheduler.step(group_with("g", 2, json!({ "priority": 9 })), world.now);
        let told = tick(&mut scheduler, world.now);
        let mut evicted: Vec<String> = evictions(&told).into_iter().map(str::to_owned).collect();
        evicted.sort_unstable();
        assert_eq!(evicted.len(), 2, "{told}");
        evicted
    };
    (0..16).for_each(|seed| assert_eq!(evicted(1, seed), evicted(5, seed), "seed {seed}"));
}

/// The gang's nodes are looked for among fewer priorities, unless too many pods would have to be moved for that.
#[test]
fn who_leaves_is_narrowed_down_where_few_may() {
    for (n_others, victim) in [(1, "default/low"), (20_000, "default/mid")] {
        let lines = "node small cpu=1\nnode large cpu=10\npod low cpu=1 node=small running priority=1\npod mid cpu=10 node=large running priority=5";
        let (mut scheduler, now) = with(lines, &["pod a cpu=500m", "pod b cpu=500m"]);
        let amounts = json!({ "cpu": "1", "memory": "1Gi", "pods": "100000" });
        let object = json!({ "metadata": { "name": "others" }, "spec": { "unschedulable": true }, "status": { "allocatable": amounts } });
        scheduler.step(node(&object), now);
        for it in 0..n_others {
            let metadata =
                json!({ "name": format!("other-{it}"), "namespace": "default", "uid": format!("other-{it}") });
            scheduler.step(pod(&json!({ "metadata": metadata, "spec": { "nodeName": "others" } })), now);
        }
        scheduler.step(group_with("g", 2, json!({ "priority": 9 })), now);
        let told = tick(&mut scheduler, now);
        assert_eq!(evictions(&told), [victim], "{told}");
    }
}

/// The room was made on a node that is kept for pods of the gang which wait for others of it.
#[test]
fn a_gang_comes_when_those_have_left_that_it_evicted() {
    let lines = "node n1 cpu=6\nnode n2 cpu=6\npod low cpu=1 node=n2 running";
    let members = ["pod a cpu=3", "pod b cpu=3", "pod c cpu=3", "pod d cpu=3", "pod e cpu=3"];
    let (mut scheduler, now) = with(lines, &members);
    scheduler.step(group_with("g", 4, json!({ "priority": 9 })), now);
    assert_eq!(evictions(&tick(&mut scheduler, now)), ["default/low"]);
    scheduler.step(pod(&object("pod low cpu=1 node=n2 running deleting", "low")), now);
    gone(&mut scheduler, &["low"], now);
    let bound = binds(&mut scheduler, Event::Tick, now.after(Duration::from_secs(20)));
    assert_eq!(bound.iter().filter(|it| it.contains('>')).count(), 4, "{bound:?}");
}

#[test]
fn room_is_kept_by_the_priority_of_the_group_that_made_it() {
    // Its pods have none of their own.
    let (mut scheduler, now) = with("node n1 cpu=2\npod low cpu=2 node=n1 running", &["pod a cpu=1", "pod b cpu=1"]);
    scheduler.step(group_with("g", 2, json!({ "priority": 9 })), now);
    let told = tick(&mut scheduler, now);
    assert_eq!(evictions(&told), ["default/low"], "{told}");
    scheduler.step(pod(&object("pod between cpu=1 priority=5", "between")), now);
    gone(&mut scheduler, &["low"], now);
    assert_eq!(binds(&mut scheduler, Event::Tick, now), ["between!"]);
    let later = now.after(Duration::from_secs(20));
    assert_eq!(binds(&mut scheduler, Event::Tick, later), ["a>n1", "b>n1"]);
}

#[test]
fn a_pod_of_a_group_evicts_by_the_priority_of_the_group() {
    let evicted = |priority: i32| {
        let lines = "node n1 cpu=1\npod low cpu=1 node=n1 running priority=5";
        let (mut scheduler, now) = with(lines, &["pod a cpu=1 priority=7"]);
        let basic = json!({ "schedulingPolicy": { "basic": {} }, "priority": priority });
        let group = json!({ "metadata": { "name": "g", "namespace": "default" }, "spec": basic });
        scheduler.step(of_cluster::<PodGroup>(&group), now);
        evictions(&tick(&mut scheduler, now)).len()
    };
    assert_eq!((evicted(3), evicted(9)), (0, 1));
}

#[test]
fn who_leaves_with_others_is_told_the_node_it_leaves() {
    let lines = format!(
        "node n1 cpu=1\nnode n2 cpu=1\npod h1 cpu=1 node=n1 running {OTHER}\npod h2 cpu=1 node=n2 running {OTHER}"
    );
    let (mut scheduler, now) = with(&lines, &[]);
    scheduler.step(group_with("h", 1, json!({ "disruptionMode": { "all": {} }, "priority": 1 })), now);
    scheduler.step(pod(&object("pod alone cpu=1 priority=2", "alone")), now);
    let effects = scheduler.step(Event::Tick, now);
    let told = describe(&effects, now);
    assert!(told.contains("evict default/h1 from n1") && told.contains("evict default/h2 from n2"), "{told}");
    for eviction in effects.into_iter().filter_map(|it| if let Effect::Evict(it) = it { Some(it) } else { None }) {
        let on = if eviction.victim.name == "h1" { "on node n1" } else { "on node n2" };
        let told = describe(&scheduler.step(Event::Evicted { eviction }, now), now);
        assert!(told.contains(on), "{told}");
    }
}

#[test]
fn a_pod_of_a_gang_that_others_have_left_does_not_say_what_did_not_fit() {
    let (mut scheduler, now) = with("node n1 cpu=1", &["pod a cpu=1", "pod b cpu=1"]);
    scheduler.step(group(2), now);
    tick(&mut scheduler, now);
    let mut seen = member("pod a cpu=1");
    let message = "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining";
    seen["status"] = json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "message": message }] });
    scheduler.step(pod(&seen), now);
    let told = describe(&scheduler.step(Event::PodGone(Key::new("default", "b")), now), now);
    let patch = r#""reason":"Unschedulable","message":"its pod group g has 1 of the 2 pods that it needs""#;
    assert!(told.contains("patch default/a") && told.contains(patch), "{told}");
}

#[test]
fn what_came_of_helping_a_gang_is_no_news_when_a_node_changes() {
    let (mut scheduler, now) = with("node n1 cpu=1", &["pod a cpu=2", "pod b cpu=2"]);
    scheduler.step(group(2), now);
    let message = "0/1 nodes are available: 1 Insufficient cpu. preemption: nobody can leave";
    tick(&mut scheduler, now);
    let mut seen = member("pod a cpu=2");
    seen["status"] = json!({ "conditions": [{ "type": "PodScheduled", "status": "False", "message": message }] });
    scheduler.step(pod(&seen), now);
    let later = now.after(Duration::from_secs(60));
    let patched = |scheduler: &mut Scheduler, line: &str, at: Time| {
        scheduler.step(node(&object(line, "n1")), at);
        tick(scheduler, at.after(Duration::from_secs(6))).contains("patch default/a")
    };
    assert!(!patched(&mut scheduler, "node n1 cpu=1 labels=x=y", later));
    assert!(patched(&mut scheduler, "node n1 cpu=1 cordoned", later.after(Duration::from_secs(60))));
}
