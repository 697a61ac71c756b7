//! What is told to an observer: each try once, with what it came to, and each way into a queue.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use super::*;
use crate::{Fact, Moment, Observer, PLUGINS, Pending, PluginSet, PodGroup};

/// Writes down what it is told, and has a clock that goes on at each look.
#[derive(Default)]
struct Notes {
    lines: Mutex<Vec<String>>,
    /// What was told of plugins one by one.
    of_plugins: Mutex<Vec<String>>,
    clock: AtomicU64,
}

impl Observer for Notes {
    fn moment(&self) -> Moment {
        Moment(self.clock.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn times_plugins(&self) -> bool {
        true
    }

    fn tell(&self, fact: &Fact<'_>) {
        if let Fact::Ran { span, .. } | Fact::Searched(span) | Fact::Tried { span, .. } = fact {
            assert!(Moment::default() != span.from && span.from.0 < span.to.0, "{fact:?}");
        }
        let names = |it: &PluginSet| it.iter().map(|it| PLUGINS[it].name).collect::<Vec<_>>().join(" ");
        let of_plugins = match fact {
            Fact::Evaluated { point, plugins, .. } => Some(format!("{} by {}", point.as_str(), names(plugins))),
            Fact::PluginRan { plugin, point, status, span } => {
                assert!(span.from.0 < span.to.0, "{fact:?}");
                Some(format!("{} of {}: {}", point.as_str(), PLUGINS[*plugin].name, status.as_str()))
            }
            Fact::Refused { plugins, .. } => Some(format!("refused by {}", names(plugins))),
            Fact::RefusedNoMore { plugins, .. } => Some(format!("no more refused by {}", names(plugins))),
            _ => None,
        };
        if let Some(line) = of_plugins {
            return self.of_plugins.lock().expect("nobody panics with it").push(line);
        }
        let line = match fact {
            Fact::Ran { point, status, profile, .. } => {
                assert_eq!(*profile, "default-scheduler");
                format!("{}: {}", point.as_str(), status.as_str())
            }
            Fact::Searched(_) => "searched".to_owned(),
            Fact::Tried { result, .. } => format!("tried: {}", result.as_str()),
            Fact::Scheduled { n_tries, waited } => format!("scheduled at try {n_tries} after {} s", waited.as_secs()),
            Fact::Queued { queue, event } => format!("{} because of {event}", queue.as_str()),
            Fact::SoughtVictims => "sought victims".to_owned(),
            Fact::ChoseVictims { n_pods } => format!("chose {n_pods} victims"),
            of_plugin => unreachable!("{of_plugin:?} is written down elsewhere"),
        };
        self.lines.lock().expect("nobody panics with it").push(line);
    }
}

impl Notes {
    /// What was told since the last look.
    fn latest(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines.lock().expect("nobody panics with it"))
    }

    /// What was told of plugins since the last look, where it has this in it.
    fn of_plugins(&self, word: &str) -> Vec<String> {
        let lines = std::mem::take(&mut *self.of_plugins.lock().expect("nobody panics with it"));
        lines.into_iter().filter(|it| it.contains(word)).collect()
    }

    fn queued(&self) -> Vec<String> {
        self.latest().into_iter().filter(|it| it.contains("because of")).collect()
    }

    fn tried(&self) -> Vec<String> {
        self.latest().into_iter().filter(|it| it.starts_with("tried") || it.starts_with("scheduled")).collect()
    }
}

fn observed_with(config: Config, lines: &str) -> (Scheduler, Arc<Notes>, Time) {
    let (world, notes) = (world(lines), Arc::new(Notes::default()));
    let mut scheduler = Scheduler::new(config).observed_by(notes.clone());
    world.list(&NODES).for_each(|it| drop(scheduler.step(node(it.1), world.now)));
    world.list(&PODS).for_each(|it| drop(scheduler.step(pod(it.1), world.now)));
    (scheduler, notes, world.now)
}

fn observed(lines: &str) -> (Scheduler, Arc<Notes>, Time) {
    observed_with(Config::default(), lines)
}

fn bound(name: &str, node: &str) -> Event {
    Event::Bound { pod: Key::new("default", name), uid: format!("pod-{name}"), node: node.into() }
}

#[test]
fn a_pod_that_is_placed_is_told_of_from_the_queue_to_the_node() {
    let (mut scheduler, notes, now) = observed("node n1\nnode n2\npod a");
    assert_eq!(notes.latest(), ["PreEnqueue: Success", "active because of UnschedulablePodAdd"]);
    assert_eq!(scheduler.pending(), Pending { active: 1, ..Pending::default() });
    let placed = binds(&mut scheduler, Event::Tick, now);
    let told =
        ["PreFilter: Success", "Filter: Success", "Score: Success", "searched", "Reserve: Success", "PreBind: Success"];
    assert_eq!(notes.latest(), told);
    assert_eq!(scheduler.pending(), Pending::default(), "it is being bound");
    let node = placed[0].split('>').nth(1).expect("it has a node");
    scheduler.step(bound("a", node), now.after(Duration::from_secs(3)));
    assert_eq!(notes.latest(), ["tried: scheduled", "scheduled at try 1 after 3 s"]);
    scheduler.step(pod(&object(&format!("pod a node={node}"), "a")), now);
    assert_eq!(notes.latest(), [""; 0], "it is told once");
}

/// As often happens: the watch of the same process is faster. Before that, an older state of the pod comes.
#[test]
fn a_pod_that_is_seen_on_its_node_before_the_answer_comes_is_told_of_once() {
    let (mut scheduler, notes, now) = observed("node n1\npod a");
    scheduler.step(Event::Tick, now);
    let mut old = object("pod a", "a");
    old["metadata"]["labels"] = json!({ "x": "y" });
    scheduler.step(pod(&old), now);
    notes.latest();
    scheduler.step(pod(&object("pod a node=n1", "a")), now.after(Duration::from_secs(1)));
    assert_eq!(notes.tried(), ["tried: scheduled", "scheduled at try 1 after 1 s"]);
    scheduler.step(bound("a", "n1"), now);
    assert_eq!(notes.tried(), [""; 0]);
    // It may have ended by then.
    let (mut scheduler, notes, now) = observed("node n1\npod a");
    scheduler.step(Event::Tick, now);
    let mut ended = object("pod a node=n1", "a");
    ended["status"]["phase"] = json!("Succeeded");
    scheduler.step(pod(&ended), now);
    assert_eq!(notes.tried(), ["tried: scheduled", "scheduled at try 1 after 0 s"]);
}

#[test]
fn a_pod_that_somebody_else_bound_is_an_error() {
    let begin = || {
        let (mut scheduler, notes, now) = observed("node n1 cpu=1\nnode n2 cpu=1 cordoned\npod a cpu=1");
        scheduler.step(Event::Tick, now);
        notes.latest();
        (scheduler, notes, now)
    };
    let by_another = |node: &str| {
        let (pod, uid) = (Key::new("default", "a"), "pod-a".into());
        Event::BoundByAnother { pod, uid, node: node.into() }
    };
    let (mut scheduler, notes, now) = begin();
    scheduler.step(by_another("n1"), now);
    assert_eq!(notes.tried(), ["tried: error"], "to the same node");
    let (mut scheduler, notes, now) = begin();
    scheduler.step(by_another("n2"), now);
    assert_eq!(notes.tried(), ["tried: error"]);
    scheduler.step(pod(&object("pod a cpu=1 node=n2", "a")), now);
    assert_eq!(notes.tried(), [""; 0]);
}

#[test]
fn a_pod_that_fits_nowhere_is_told_of_and_why_it_is_tried_again() {
    let (mut scheduler, notes, now) = observed("node n1 cpu=1\npod big cpu=2");
    notes.latest();
    scheduler.step(Event::Tick, now);
    let told = [
        "PreFilter: Success",
        "Filter: Success",
        "unschedulable because of ScheduleAttemptFailure",
        "sought victims",
        "PostFilter: Unschedulable",
        "searched",
        "tried: unschedulable",
    ];
    assert_eq!(notes.latest(), told);
    assert_eq!(scheduler.pending(), Pending { unschedulable: 1, ..Pending::default() });
    // Where nothing happens, time does.
    let later = now.after(Duration::from_secs(300));
    scheduler.step(Event::Tick, later);
    assert_eq!(notes.queued()[0], "active because of UnschedulableTimeout");
    // A node that helps comes amid the back-off.
    scheduler.step(node(&object("node n2 cpu=4", "n2")), later);
    assert_eq!(notes.queued(), ["backoff because of NodeAdd"]);
    assert_eq!(scheduler.pending(), Pending { backoff: 1, ..Pending::default() });
    let later = later.after(Duration::from_secs(10));
    scheduler.step(Event::Tick, later);
    assert_eq!(notes.queued(), ["active because of BackoffComplete"]);
    scheduler.step(bound("big", "n2"), later);
    assert_eq!(notes.tried(), ["tried: scheduled", "scheduled at try 3 after 310 s"]);
}

#[test]
fn what_helps_a_pod_is_named() {
    let n1 = |words: &str| node(&object(&format!("node n1 {words}"), "n1"));
    let low = |words: &str| pod(&object(&format!("pod low {words} node=n1"), "low"));
    let (small, full) = ("node n1 cpu=1\npod big cpu=2", "node n1 cpu=2\npod low cpu=2 node=n1\npod big cpu=2");
    for (lines, event, cause) in [
        (small, n1("cpu=2"), "NodeUpdateNodeAllocatable"),
        ("node n1 cpu=2 cordoned\npod big cpu=2", n1("cpu=2"), "NodeUpdateNodeTaint"),
        (
            r#"node n1
pod big spec.containers=[{"name":"c","restartPolicyRules":[{"action":"RestartAllContainers"}]}]"#,
            n1(r#"status.declaredFeatures=["RestartAllContainersOnContainerExits"]"#),
            "NodeUpdateNodeDeclaredFeature",
        ),
        (full, Event::PodGone(Key::new("default", "low")), "AssignedPodDelete"),
        (full, low("cpu=0"), "AssignedPodUpdatePodScaleDown"),
        (small, pod(&object("pod big cpu=1", "big")), "UnschedulablePodUpdatePodScaleDown"),
    ] {
        let (mut scheduler, notes, now) = observed(lines);
        assert_eq!(binds(&mut scheduler, Event::Tick, now), ["big!"], "{cause}");
        notes.latest();
        scheduler.step(event, now);
        assert_eq!(notes.queued(), [format!("backoff because of {cause}")]);
    }
}

#[test]
fn what_comes_before_the_binding_is_told_of_when_it_is_done() {
    let lines =
        "node n1 labels=kubernetes.io/hostname=n1\npvc data class=std\nstorage-class std waits\npod a claim=data";
    let seen = |lines: &str| storage(&world(lines));
    for (happens, expected) in [
        (
            "pvc data class=std selected=n1 volume=v bound\npv v class=std on=n1 claim=default/data:pvc-data",
            "PreBind: Success",
        ),
        ("pvc data class=std selected=n1 volume=v bound\npv v on=n2 claim=default/data:pvc-data", "PreBind: Error"),
    ] {
        let notes = Arc::new(Notes::default());
        let mut scheduler = Scheduler::new(Config::default()).observed_by(notes.clone());
        let (world, now) = (world(lines), world(lines).now);
        seen(lines).into_iter().for_each(|it| drop(scheduler.step(it, now)));
        world.list(&NODES).for_each(|it| drop(scheduler.step(node(it.1), now)));
        world.list(&PODS).for_each(|it| drop(scheduler.step(pod(it.1), now)));
        scheduler.step(Event::Tick, now);
        let told = notes.latest();
        assert_eq!(told.last().map(String::as_str), Some("Reserve: Success"), "{told:?}");
        seen(happens).into_iter().for_each(|it| drop(scheduler.step(it, now)));
        let told = notes.latest();
        assert_eq!(told.iter().filter(|it| it.starts_with("PreBind")).collect::<Vec<_>>(), [expected]);
        let is_back = told.contains(&"tried: error".to_owned());
        assert_eq!(is_back, expected.ends_with("Error"), "{told:?}");
    }
}

#[test]
fn a_gated_pod_is_unschedulable_until_its_gate_is_gone() {
    let (mut scheduler, notes, now) = observed("node n1\npod a gate=example.com/x");
    let told = ["PreEnqueue: UnschedulableAndUnresolvable", "unschedulable because of UnschedulablePodAdd"];
    assert_eq!(notes.latest(), told);
    assert_eq!(scheduler.pending(), Pending { gated: 1, ..Pending::default() });
    let later = now.after(Duration::from_secs(60));
    scheduler.step(pod(&object("pod a", "a")), later);
    assert_eq!(notes.queued(), ["active because of UnschedulablePodUpdatePodSchedulingGatesEliminated"]);
    assert_eq!(scheduler.pending(), Pending { active: 1, ..Pending::default() });
    scheduler.step(Event::Tick, later);
    scheduler.step(bound("a", "n1"), later.after(Duration::from_secs(2)));
    assert_eq!(
        notes.tried(),
        ["tried: scheduled", "scheduled at try 1 after 2 s"],
        "behind the gate it did not wait for us"
    );
    // One that is gone waits no more.
    let (mut scheduler, _, now) = observed("pod a gate=example.com/x");
    scheduler.step(Event::PodGone(Key::new("default", "a")), now);
    assert_eq!(scheduler.pending(), Pending::default());
}

#[test]
fn a_refused_binding_and_a_plugin_that_breaks_are_errors() {
    let (mut scheduler, notes, now) = observed("node n1\npod a");
    scheduler.step(Event::Tick, now);
    notes.latest();
    let (pod, uid, message) = (Key::new("default", "a"), "pod-a".into(), "busy".into());
    scheduler.step(Event::BindFailed { pod, uid, retry: Retry::After, message }, now);
    assert_eq!(notes.latest(), ["backoff because of ScheduleAttemptFailure", "tried: error"]);

    let (mut scheduler, notes, now) = observed("node n1");
    let mut breaks = object("pod a", "a");
    breaks["metadata"]["labels"] = json!({ "breaks": "yes" });
    scheduler.step(super::pod(&breaks), now);
    scheduler.step(Event::Tick, now);
    assert_eq!(notes.tried(), ["tried: error"]);
}

#[test]
fn victims_are_told_of() {
    let lines = "node n1 cpu=2\npod a cpu=1 node=n1 running\npod b cpu=1 node=n1 running\npod high cpu=2 priority=10";
    let (mut scheduler, notes, now) = observed(lines);
    notes.latest();
    scheduler.step(Event::Tick, now);
    let told = notes.latest();
    for line in ["sought victims", "chose 2 victims", "PostFilter: Success", "tried: unschedulable"] {
        assert_eq!(told.iter().filter(|it| *it == line).count(), 1, "{line}: {told:?}");
    }
}

#[test]
fn each_pod_of_a_gang_is_tried_once_however_often_it_is_placed() {
    let member = |name: &str, cpu: u8| {
        let line = format!(r#"pod {name} cpu={cpu} spec.schedulingGroup={{"podGroupName":"g"}}"#);
        pod(&object(&line, name))
    };
    let group = json!({
        "metadata": { "name": "g", "namespace": "default", "uid": "g" },
        "spec": { "schedulingPolicy": { "gang": { "minCount": 2 } } },
    });
    // The small one takes the room of the large one at first.
    let (mut scheduler, notes, now) = observed("node n1 cpu=3\npod low cpu=1 node=n1 priority=-1 running");
    scheduler.step(of_cluster::<PodGroup>(&group), now);
    scheduler.step(member("a", 1), now);
    scheduler.step(member("b", 2), now);
    assert_eq!(scheduler.pending(), Pending { active: 2, ..Pending::default() });
    notes.latest();
    scheduler.step(Event::Tick, now);
    let told = notes.latest();
    let count = |line: &str| told.iter().filter(|it| *it == line).count();
    assert_eq!(
        (count("tried: unschedulable"), count("sought victims"), count("chose 1 victims")),
        (2, 1, 1),
        "{told:?}"
    );
    assert_eq!(count("PreBind: Success"), 0, "none is bound: {told:?}");
    scheduler.step(Event::PodGone(Key::new("default", "low")), now);
    let later = now.after(Duration::from_secs(10));
    assert_eq!(binds(&mut scheduler, Event::Tick, later).len(), 2);
    let told = notes.latest();
    assert_eq!(told.iter().filter(|it| *it == "PreBind: Success").count(), 2, "{told:?}");
    ["a", "b"].iter().for_each(|it| drop(scheduler.step(bound(it, "n1"), later)));
    assert_eq!(notes.tried().iter().filter(|it| *it == "tried: scheduled").count(), 2);
}

#[test]
fn extenders_take_part_in_the_try() {
    use crate::{Advice, Extender, ExtenderFailure, NodeAdvice};
    let extender =
        Extender { url_prefix: "http://127.0.0.1:1".into(), filter_verb: "filter".into(), ..Extender::default() };
    let failed = ExtenderFailure { extender: 0, message: "down".into() };
    let advice = Advice::Nodes(NodeAdvice { nodes: vec!["n1".into()], ..NodeAdvice::default() });
    for (answer, results) in [(Ok(advice), [].as_slice()), (Err(failed), &["tried: error"])] {
        let config = Config { extenders: vec![extender.clone()], ..Config::default() };
        let (mut scheduler, notes, now) = observed_with(config, "node n1\npod a");
        notes.latest();
        let asked = scheduler.step(Event::Tick, now);
        assert_eq!(notes.latest(), ["PreFilter: Success", "Filter: Success"]);
        let Some(Effect::Consult(it)) = asked.into_iter().find(|it| matches!(it, Effect::Consult(_))) else {
            panic!("nobody was asked")
        };
        scheduler.step(Event::Advised { pod: it.pod, id: it.id, answer }, now);
        let told = notes.latest();
        assert!(told.contains(&"searched".to_owned()), "{told:?}");
        let tried: Vec<&String> = told.iter().filter(|it| it.starts_with("tried")).collect();
        assert_eq!(tried, results, "{told:?}");
    }
}

#[test]
fn each_plugin_is_told_of_that_had_its_say_and_what_it_took() {
    let (mut scheduler, notes, now) = observed("node n1 cpu=4\nnode n2 cpu=4\npod a cpu=1");
    scheduler.step(Event::Tick, now);
    let told = notes.of_plugins("");
    for it in ["Filter by ", "Score by ", "PreFilter by "] {
        let found: Vec<&String> = told.iter().filter(|line| line.starts_with(it)).collect();
        assert_eq!(found.len(), 1, "{it}: {told:?}");
    }
    assert!(told.iter().any(|it| it.starts_with("Filter by ") && it.contains("NodeResourcesFit")), "{told:?}");
    assert!(told.iter().any(|it| it.starts_with("Score by ") && it.contains("ImageLocality")), "{told:?}");
    let count = |line: &str| told.iter().filter(|it| *it == line).count();
    for line in [
        "PreFilter of VolumeBinding: Success",
        "Filter of NodeResourcesFit: Success",
        "Score of NodeResourcesFit: Success",
        "Score of PodTopologySpread: Success",
    ] {
        assert_eq!(count(line), 1, "{line}: {told:?}");
    }
    // Behind the first that turns it down none is asked.
    let (mut scheduler, notes, now) = observed("node n1 cpu=1\npod big cpu=2");
    scheduler.step(Event::Tick, now);
    let told = notes.of_plugins(" of ");
    assert_eq!(
        told.last().map(String::as_str),
        Some("Filter of NodeResourcesFit: UnschedulableAndUnresolvable"),
        "{told:?}"
    );
}

#[test]
fn a_pod_counts_with_those_that_turn_it_down_until_it_is_tried_again() {
    let (mut scheduler, notes, now) = observed("node n1 cpu=1\nnode n2 cpu=4 cordoned\npod big cpu=2");
    scheduler.step(Event::Tick, now);
    let both = "refused by NodeUnschedulable NodeResourcesFit";
    assert_eq!(notes.of_plugins("refused"), [both]);
    // It is woken, and waits for its back-off to end: nobody has said anything else yet.
    scheduler.step(node(&object("node n2 cpu=4", "n2")), now);
    assert_eq!(notes.of_plugins("refused"), [""; 0]);
    scheduler.step(Event::Tick, now.after(Duration::from_secs(1)));
    assert_eq!(notes.of_plugins("refused"), [format!("no more {both}")], "it is placed");

    let (mut scheduler, notes, now) = observed("node n1\npod a gate=example.com/x");
    assert_eq!(notes.of_plugins("refused"), ["refused by SchedulingGates"]);
    scheduler.step(pod(&object("pod a gate=example.com/x labels=a=b", "a")), now);
    scheduler.step(Event::PodGone(Key::new("default", "a")), now);
    let told = notes.of_plugins("refused");
    assert_eq!(told.last().map(String::as_str), Some("no more refused by SchedulingGates"));
    let n_more = |it: &&String| it.starts_with("no more");
    assert_eq!(told.iter().filter(n_more).count(), told.len() / 2 + 1, "{told:?}");
}
