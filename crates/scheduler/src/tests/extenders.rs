//! Extenders: what they are asked, what their answers lead to, and that those who do not answer hold up nobody else.

use super::*;
use crate::{Advice, Consultation, Extender, ExtenderFailure, NodeAdvice, NodeRefusal, Question};

const URL: &str = "http://127.0.0.1:8888/scheduler";

fn extender() -> Extender {
    Extender { url_prefix: URL.into(), filter_verb: "filter".into(), ..Extender::default() }
}

fn with_extender(lines: &str, extender: Extender) -> (Scheduler, Time) {
    let world = world(lines);
    let mut scheduler = Scheduler::new(Config { extenders: vec![extender], ..Config::default() });
    world.list(&NODES).for_each(|it| drop(scheduler.step(node(it.1), world.now)));
    world.list(&PODS).for_each(|it| drop(scheduler.step(pod(it.1), world.now)));
    (scheduler, world.now)
}

/// Ticks, and gives what was asked and all that was wanted beside it.
fn asked(scheduler: &mut Scheduler, now: Time) -> (Vec<Consultation>, Vec<Effect>) {
    let (asked, rest): (Vec<_>, Vec<_>) =
        scheduler.step(Event::Tick, now).into_iter().partition(|it| matches!(it, Effect::Consult(_)));
    let consultation = |it: Effect| match it {
        Effect::Consult(it) => *it,
        other => panic!("{other:?} was sorted out"),
    };
    (asked.into_iter().map(consultation).collect(), rest)
}

fn advise(nodes: &[&str], refused: &[(&str, &str)], scores: &[(&str, i64)]) -> Result<Advice, ExtenderFailure> {
    let refusal = |it: &(&str, &str)| (it.0.to_owned(), NodeRefusal { extender: 0, reason: it.1.to_owned() });
    Ok(Advice::Nodes(NodeAdvice {
        nodes: nodes.iter().map(|it| (*it).to_owned()).collect(),
        refused: refused.iter().map(refusal).collect(),
        scores: scores.iter().map(|it| (it.0.to_owned(), it.1)).collect(),
    }))
}

fn answer(to: &Consultation, answer: Result<Advice, ExtenderFailure>) -> Event {
    Event::Advised { pod: to.pod.clone(), id: to.id, answer }
}

fn binding(effects: &[Effect]) -> Vec<String> {
    let bind = |it: &Effect| match it {
        Effect::Bind { pod, node, .. } => Some(format!("{}>{node}", pod.name)),
        _ => None,
    };
    effects.iter().filter_map(bind).collect()
}

#[test]
fn a_pod_goes_where_extenders_let_it_and_others_do_not_wait_for_that() {
    let managed = Extender { managed_resources: ["example.com/gpu".to_owned()].into(), ..extender() };
    let gpus = r#"status.allocatable={"cpu":"4","memory":"4Gi","pods":"10","example.com/gpu":"4"}"#;
    let asks = r#"spec.containers=[{"name":"c","resources":{"requests":{"example.com/gpu":"1"}}}]"#;
    let lines = &format!("node n1 {gpus}\nnode n2 {gpus}\nnode n3 cordoned\npod a priority=1 {asks}\npod b");
    let (mut scheduler, now) = with_extender(lines, managed);
    let (questions, effects) = asked(&mut scheduler, now);
    assert_eq!(questions.len(), 1, "only who asks for the resource is asked about");
    let Question::Nodes { nodes, filters, scorers } = &questions[0].question else { panic!("{questions:?}") };
    let mut nodes = nodes.clone();
    nodes.sort();
    assert_eq!((nodes, &**filters, &**scorers), (vec!["n1".to_owned(), "n2".to_owned()], &[0][..], &[][..]));
    assert!(binding(&effects)[0].starts_with("b>"), "it does not wait for the extender of the other");
    let told = describe(&effects, now);
    assert!(
        told.contains(&format!("wait ExtenderPending (External): waiting for the answer of extender {URL}")),
        "{told}"
    );
    // One that was not asked about and one that nobody knows count for nothing.
    let effects = scheduler.step(answer(&questions[0], advise(&["n3", "n2", "none"], &[("n1", "busy")], &[])), now);
    assert_eq!(binding(&effects), ["a>n2"]);
    let effects = scheduler.step(answer(&questions[0], advise(&["n1"], &[], &[])), now);
    assert_eq!(effects, [], "an answer counts once");
}

#[test]
fn scores_of_extenders_are_added() {
    let (mut scheduler, now) =
        with_extender("node n1\nnode n2\npod here cpu=3 node=n1 running\npod a cpu=100m", extender());
    let (questions, _) = asked(&mut scheduler, now);
    let effects =
        scheduler.step(answer(&questions[0], advise(&["n1", "n2"], &[], &[("n1", 10), ("n2", i64::MIN)])), now);
    assert_eq!(binding(&effects), ["a>n1"], "though n2 is emptier");
}

#[test]
fn who_is_turned_down_everywhere_is_told_by_whom() {
    let (mut scheduler, now) = with_extender("node n1\nnode n2\nnode n3 cordoned\npod a", extender());
    let (questions, _) = asked(&mut scheduler, now);
    let effects = scheduler.step(answer(&questions[0], advise(&[], &[("n1", "no licence")], &[])), now);
    let told = describe(&effects, now);
    let message =
        "0/3 nodes are available: 1 no licence, 1 node(s) were left out by an extender, 1 node(s) were unschedulable.";
    assert!(told.contains(message), "{told}");
    assert!(
        told.contains(&format!("wait ExtenderRefused (External): 1 of 3 nodes: no licence (extender {URL})")),
        "{told}"
    );
    // Another node may be what it waits for.
    let later = now.after(Duration::from_secs(20));
    scheduler.step(node(&object("node n4", "n4")), later);
    assert_eq!(asked(&mut scheduler, later).0.len(), 1);
}

#[test]
fn an_extender_that_fails_is_asked_again_after_the_back_off() {
    let (mut scheduler, now) = with_extender("node n1\npod a", extender());
    let (questions, _) = asked(&mut scheduler, now);
    let failure = ExtenderFailure { extender: 0, message: "no answer to filter within 5s".into() };
    let told = describe(&scheduler.step(answer(&questions[0], Err(failure)), now), now);
    assert!(told.contains(&format!("FailedScheduling: extender {URL}: no answer to filter within 5s")), "{told}");
    assert!(told.contains("wait ExtenderFailed (External)"), "{told}");
    assert!(asked(&mut scheduler, now).0.is_empty());
    let (again, _) = asked(&mut scheduler, now.after(Duration::from_secs(1)));
    assert_eq!(scheduler.step(answer(&questions[0], advise(&["n1"], &[], &[])), now), [], "the first answer is late");
    assert_eq!(binding(&scheduler.step(answer(&again[0], advise(&["n1"], &[], &[])), now)), ["a>n1"]);
}

#[test]
fn what_happens_meanwhile_counts() {
    let (mut scheduler, now) = with_extender("node n1 cpu=1\nnode n2 cordoned\npod a cpu=1\npod b cpu=1", extender());
    let (questions, _) = asked(&mut scheduler, now);
    assert_eq!(questions.len(), 2);
    assert_eq!(binding(&scheduler.step(answer(&questions[0], advise(&["n1"], &[], &[])), now)), ["a>n1"]);
    // The room is gone, and a node has come that nobody was asked about.
    scheduler.step(node(&object("node n2 cpu=1", "n2")), now);
    let effects = scheduler.step(answer(&questions[1], advise(&["n1"], &[], &[])), now);
    assert!(binding(&effects).is_empty(), "{effects:?}");
    let later = now.after(Duration::from_secs(1));
    let (again, _) = asked(&mut scheduler, later);
    assert_eq!(binding(&scheduler.step(answer(&again[0], advise(&["n2"], &[], &[])), later)), ["b>n2"]);
    // A pod that goes while it is asked about is nobody's business any more.
    scheduler.step(pod(&object("pod c", "c")), later);
    let (questions, _) = asked(&mut scheduler, later);
    scheduler.step(Event::PodGone(Key::new("default", "c")), later);
    assert_eq!(scheduler.step(answer(&questions[0], advise(&["n2"], &[], &[])), later), []);
}

#[test]
fn only_some_are_asked_about_at_a_time_and_all_have_their_turn() {
    let pods: String = (0..40).map(|it| format!("\npod p{it:02}")).collect();
    let (mut scheduler, now) = with_extender(&format!("node n1 pods=100{pods}"), extender());
    let (mut open, _) = asked(&mut scheduler, now);
    assert_eq!(open.len(), 16);
    let mut bound = Vec::new();
    while let Some(question) = open.pop() {
        for effect in scheduler.step(answer(&question, advise(&["n1"], &[], &[])), now) {
            match effect {
                Effect::Consult(it) => open.push(*it),
                Effect::Bind { pod, .. } => bound.push(pod),
                _ => {}
            }
        }
        assert!(open.len() <= 16);
    }
    assert_eq!(bound.len(), 40);
}

#[test]
fn an_extender_spares_victims_and_binds() {
    let asked_too =
        Extender { filter_verb: String::new(), preempt_verb: "preempt".into(), bind_verb: "bind".into(), ..extender() };
    let lines = "node n1 cpu=1\nnode n2 cpu=1\npod low cpu=1 node=n1 running\npod lower cpu=1 priority=-1 node=n2 running\n\
                 pod high cpu=1 priority=10";
    let (mut scheduler, now) = with_extender(lines, asked_too);
    let (questions, effects) = asked(&mut scheduler, now);
    assert!(!effects.iter().any(|it| matches!(it, Effect::Evict(_))), "it is asked first");
    let Question::Victims { candidates, .. } = &questions[0].question else { panic!("{questions:?}") };
    assert_eq!(candidates.len(), 2);
    let left = candidates.iter().filter(|it| it.node == "n1").cloned().collect();
    let effects = scheduler.step(answer(&questions[0], Ok(Advice::Victims(left))), now);
    let told = describe(&effects, now);
    assert!(told.contains("evict default/low from n1") && told.contains(r#""nominatedNodeName":"n1""#), "{told}");
    scheduler.step(Event::PodGone(Key::new("default", "low")), now);
    let effects = scheduler.step(Event::Tick, now.after(Duration::from_secs(20)));
    assert!(effects.iter().any(|it| matches!(it, Effect::Bind { extender: Some(0), .. })), "{effects:?}");
}

#[test]
fn nobody_is_evicted_where_that_helps_no_more_when_the_extender_answers() {
    let asked_too = Extender { filter_verb: String::new(), preempt_verb: "preempt".into(), ..extender() };
    let lines = "node n1 cpu=1\npod low cpu=1 node=n1 running\npod high cpu=1 priority=10";
    let other = |line: &str, name: &str| pod(&object(line, name));
    for (what, happening) in [
        ("the node is smaller", node(&object("node n1 cpu=500m", "n1"))),
        ("it fits by now", node(&object("node n1 cpu=2", "n1"))),
        ("another one is there", other("pod own cpu=100m priority=20 node=n1 running", "own")),
        ("its victim has another node", other("pod low cpu=1", "low")),
    ] {
        let (mut scheduler, now) = with_extender(lines, asked_too.clone());
        let (questions, _) = asked(&mut scheduler, now);
        let Question::Victims { candidates, .. } = &questions[0].question else { panic!("{questions:?}") };
        scheduler.step(happening, now);
        let effects = scheduler.step(answer(&questions[0], Ok(Advice::Victims(candidates.clone()))), now);
        assert!(!effects.iter().any(|it| matches!(it, Effect::Evict(_))), "{what}: {effects:?}");
    }
}
