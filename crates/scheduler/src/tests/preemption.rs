//! What becomes of evictions: the room is kept, nobody else is evicted for it, and it is used or given up.

use super::*;

const LINES: &str = "node n1 cpu=1\npod low cpu=1 node=n1 running\npod high cpu=1 priority=10";

fn evictions(effects: &[Effect]) -> Vec<crate::Eviction> {
    let eviction = |it: &Effect| match it {
        Effect::Evict(it) => Some((**it).clone()),
        _ => None,
    };
    effects.iter().filter_map(eviction).collect()
}

fn gone(name: &str) -> Event {
    Event::PodGone(Key::new("default", name))
}

/// A scheduler that has asked for the first eviction, and that.
fn preempting(lines: &str) -> (Scheduler, crate::Eviction, Time) {
    let world = world(lines);
    let mut scheduler = told(&world);
    let mut evictions = evictions(&scheduler.step(Event::Tick, world.now));
    assert_eq!(evictions.len(), 1);
    (scheduler, evictions.remove(0), world.now)
}

#[test]
fn the_room_is_kept_for_who_made_it() {
    let (mut scheduler, eviction, now) = preempting(LINES);
    // One of the same priority and a small one come before the victim is gone.
    for line in ["pod same cpu=1 priority=10", "pod small cpu=100m"] {
        scheduler.step(pod(&object(line, line.split(' ').nth(1).expect("a name"))), now);
    }
    assert_eq!(binds(&mut scheduler, Event::Tick, now), ["same!", "small!"]);
    scheduler.step(Event::Evicted { eviction: Box::new(eviction) }, now);
    scheduler.step(gone("low"), now);
    let later = now.after(Duration::from_secs(20));
    assert_eq!(binds(&mut scheduler, Event::Tick, later), ["high>n1"]);
}

#[test]
fn a_preemptor_that_goes_gives_its_room_to_others() {
    let (mut scheduler, eviction, now) = preempting(LINES);
    scheduler.step(pod(&object("pod small cpu=100m", "small")), now);
    assert_eq!(binds(&mut scheduler, Event::Tick, now), ["small!"]);
    scheduler.step(Event::Evicted { eviction: Box::new(eviction) }, now);
    scheduler.step(gone("low"), now);
    scheduler.step(gone("high"), now);
    let later = now.after(Duration::from_secs(20));
    assert_eq!(binds(&mut scheduler, Event::Tick, later), ["small>n1"]);
}

#[test]
fn nobody_is_evicted_twice_for_the_same_room() {
    let lines = format!("{LINES}\nnode n2 cpu=1\npod low2 cpu=1 node=n2 running");
    let (mut scheduler, eviction, now) = preempting(&lines);
    let later = |seconds| now.after(Duration::from_secs(seconds));
    // It is tried again before the API server has answered, after that, and while the victim ends.
    scheduler.step(node(&object("node n3 cpu=1 taint=x:NoSchedule", "n3")), later(10));
    assert_eq!(evictions(&scheduler.step(Event::Tick, later(301))), []);
    let victim = eviction.victim.name.clone();
    scheduler.step(Event::Evicted { eviction: Box::new(eviction) }, later(301));
    let node = if victim == "low" { "n1" } else { "n2" };
    let line = format!(
        r#"pod {victim} cpu=1 node={node} running deleting status.conditions=[{{"type":"DisruptionTarget","status":"True","reason":"PreemptionByScheduler"}}]"#
    );
    scheduler.step(pod(&object(&line, &victim)), later(302));
    let effects = scheduler.step(Event::Tick, later(700));
    assert_eq!(evictions(&effects), []);
    let told = describe(&effects, later(700));
    assert!(told.contains("preemption: not eligible due to a terminating pod on the nominated node."), "{told}");
    assert!(told.contains(&format!("wait Preempting on pod/{victim} (Cluster)")), "{told}");
}

#[test]
fn a_refused_eviction_is_asked_for_again() {
    let (mut scheduler, eviction, now) = preempting(LINES);
    let failed = Event::EvictionFailed { eviction: Box::new(eviction.clone()), message: "busy".into() };
    scheduler.step(failed, now);
    let again = evictions(&scheduler.step(Event::Tick, now.after(Duration::from_secs(1))));
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].victim, eviction.victim);
}

#[test]
fn an_older_copy_of_the_preemptor_does_not_undo_its_nomination() {
    let (mut scheduler, eviction, now) = preempting(LINES);
    let mut seen = object("pod high cpu=1 priority=10", "high");
    // What came before the nomination was written; then that; then somebody takes it away.
    scheduler.step(pod(&seen), now);
    scheduler.step(pod(&object("pod small cpu=100m", "small")), now);
    scheduler.step(Event::Evicted { eviction: Box::new(eviction) }, now);
    scheduler.step(gone("low"), now);
    assert_eq!(binds(&mut scheduler, Event::Tick, now), ["small!"]);
    seen["spec"]["schedulingGates"] = json!([{ "name": "example.com/x" }]);
    seen["status"]["nominatedNodeName"] = json!("n1");
    scheduler.step(pod(&seen), now);
    let later = now.after(Duration::from_secs(301));
    assert_eq!(binds(&mut scheduler, Event::Tick, later), ["small!"]);
    seen["status"]["nominatedNodeName"] = json!("");
    scheduler.step(pod(&seen), later);
    let later = later.after(Duration::from_secs(20));
    assert_eq!(binds(&mut scheduler, Event::Tick, later), ["small>n1"]);
}

/// Ten thousand that fit nowhere, of which nobody is more important than what runs: the last is told as soon as the first.
#[test]
fn many_that_fit_nowhere_evict_nobody() {
    let mut lines = String::from("node n1 cpu=1\npod runs cpu=1 node=n1 priority=5 running\n");
    (0..MANY / 10).for_each(|it| {
        let _ = writeln!(lines, "pod p{it} cpu=1 priority=5");
    });
    let world = world(&lines);
    let mut scheduler = told(&world);
    let mut n_told = 0;
    while n_told < MANY / 10 {
        let effects = scheduler.step(Event::Tick, world.now);
        assert_eq!(evictions(&effects), []);
        n_told += effects.iter().filter(|it| matches!(it, Effect::Event { .. })).count();
    }
}
