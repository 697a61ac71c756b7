//! When a pod is tried again after a try in vain: once its back-off is over, and before that where nobody else is to be tried.

use super::*;

fn after(start: Time, millis: u64) -> Time {
    start.after(Duration::from_millis(millis))
}

#[test]
fn freed_room_is_used_at_once_where_nobody_else_is_to_be_tried() {
    let world = world("node n1 cpu=1\npod first cpu=1 node=n1 running\npod second cpu=1");
    let mut scheduler = told(&world);
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["second!"]);
    let at = after(world.now, 300);
    assert_eq!(scheduler.step(Event::PodGone(Key::new("default", "first")), at), [Effect::WakeAt(at)]);
    assert_eq!(binds(&mut scheduler, Event::Tick, at), ["second>n1"]);
}

#[test]
fn whoever_is_active_goes_first() {
    let world = world("node n1 cpu=1\npod first cpu=1 node=n1 running\npod second cpu=1");
    let mut scheduler = told(&world);
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["second!"]);
    scheduler.step(pod(&object("pod third cpu=1", "third")), world.now);
    scheduler.step(Event::PodGone(Key::new("default", "first")), world.now);
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["third>n1"]);
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["second!"], "it was woken");
}

/// Those whose back-off ends in the same second go by their priority.
#[test]
fn the_one_goes_next_whose_back_off_ends_next() {
    let world = world("node n1 cpu=1\npod old cpu=2");
    let mut scheduler = told(&world);
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["old!"]);
    for (name, millis, priority) in [("low", 1200, 0), ("same", 1500, 0), ("high", 1900, 5), ("higher", 2100, 9)] {
        let words = format!("pod {name} cpu=2 priority={priority}");
        scheduler.step(pod(&object(&words, name)), after(world.now, millis));
        assert_eq!(binds(&mut scheduler, Event::Tick, after(world.now, millis)), [format!("{name}!")]);
    }
    let at = after(world.now, 2150);
    scheduler.step(node(&object("node n2 cpu=10", "n2")), at);
    assert_eq!(binds(&mut scheduler, Event::Tick, at), ["old>n2"], "its back-off is over");
    assert_eq!(binds(&mut scheduler, Event::Tick, at), ["high>n2", "low>n2", "same>n2", "higher>n2"]);
}

#[test]
fn after_an_error_the_back_off_is_waited_out() {
    let world = world("node n1 cpu=1\npod a cpu=1");
    let mut scheduler = told(&world);
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["a>n1"]);
    let failed = Event::BindFailed {
        pod: Key::new("default", "a"),
        uid: "pod-a".into(),
        retry: Retry::After,
        message: "busy".into(),
    };
    scheduler.step(failed, world.now);
    scheduler.step(node(&object("node n2 cpu=1", "n2")), world.now);
    let effects = scheduler.step(Event::Tick, world.now);
    assert_eq!(effects, [Effect::WakeAt(after(world.now, 1000))]);
    assert_eq!(binds(&mut scheduler, Event::Tick, after(world.now, 1000)).len(), 1);
}

/// Something wakes a pod all the time, and never helps it.
#[test]
fn who_was_tried_early_in_vain_waits_its_back_off_out() {
    const APART: &str = r#"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution=[{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"db"}}}]"#;
    let world = world(&format!("node n1 labels=zone=a\npod db node=n1 running labels=app=db\npod web {APART}"));
    let mut scheduler = told(&world);
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["web!"]);
    let mut tried = Vec::new();
    for it in 1..600 {
        let at = after(world.now, it * 100);
        scheduler.step(pod(&object("pod other node=n1 running labels=app=db", "other")), at);
        scheduler.step(Event::PodGone(Key::new("default", "other")), at);
        for _ in 0..5 {
            tried.extend(binds(&mut scheduler, Event::Tick, at).iter().map(|_| it * 100));
        }
    }
    // Each back-off begins with a try, and none has more than one amid it.
    assert_eq!(tried[..6], [100, 2100, 2200, 10_200, 10_300, 20_300], "{tried:?}");
    assert!(tried.len() <= 14, "{tried:?}");
}
