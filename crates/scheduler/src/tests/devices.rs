//! Devices of extended resources, over several steps.

use super::*;

const WORLD: &str = r#"
node n1
deviceclass gpu spec.extendedResourceName="example.com/gpu"
resourceslice s spec.driver="d" spec.nodeName="n1" spec.pool={"name":"p","generation":1,"resourceSliceCount":1} spec.devices=[{"name":"a"}]
pod a priority=1 spec.containers=[{"name":"c","resources":{"requests":{"example.com/gpu":"1"}}}]
pod b spec.containers=[{"name":"c","resources":{"requests":{"example.com/gpu":"1"}}}]
"#;

fn later(now: Time) -> Time {
    now.after(Duration::from_secs(30))
}

#[test]
fn a_refused_binding_gives_the_device_back() {
    let world = world(WORLD);
    let mut scheduler = told(&world);
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["a>n1", "b!"]);
    let (pod, uid) = (Key::new("default", "a"), "pod-a".to_owned());
    scheduler.step(Event::BindFailed { pod, uid, retry: Retry::After, message: "no".into() }, world.now);
    scheduler.step(Event::PodGone(Key::new("default", "a")), world.now);
    assert_eq!(binds(&mut scheduler, Event::Tick, later(world.now)), ["b>n1"]);
}

/// What was given is held until the claim says so itself, and from then on only by the claim.
#[test]
fn a_claim_that_is_seen_holds_its_devices_itself() {
    let world = world(WORLD);
    let mut scheduler = told(&world);
    let effects = scheduler.step(Event::Tick, world.now);
    let write = effects.iter().find_map(|it| match it {
        Effect::Bind { extended: Some(ExtendedClaimWrite::Make(it)), .. } => Some((&it.claim, &it.status)),
        _ => None,
    });
    let (claim, status) = write.expect("a claim is made");
    let mut claim = claim.clone();
    claim["metadata"]["name"] = json!("made");
    scheduler.step(seen::<DeviceClaim>(&claim), world.now);
    assert_eq!(binds(&mut scheduler, Event::Tick, later(world.now)), ["b!"], "it has nothing yet");
    claim["status"] = status.clone();
    scheduler.step(seen::<DeviceClaim>(&claim), world.now);
    assert_eq!(binds(&mut scheduler, Event::Tick, later(later(world.now))), ["b!"]);
    let gone = Event::StorageGone(RESOURCE_CLAIMS, Key::new("default", "made"));
    scheduler.step(gone, later(later(world.now)));
    assert_eq!(binds(&mut scheduler, Event::Tick, later(later(later(world.now)))), ["b>n1"]);
}

#[test]
fn a_class_that_comes_wakes_who_waits_for_its_resource() {
    let mut world = world(WORLD);
    let (key, class) = world.list(&DEVICE_CLASSES).next().map(|it| (it.0.clone(), it.1.clone())).expect("a class");
    world.remove(&DEVICE_CLASSES, &key);
    let mut scheduler = told(&world);
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["a!", "b!"]);
    scheduler.step(seen::<DeviceClass>(&class), world.now);
    assert_eq!(binds(&mut scheduler, Event::Tick, later(world.now)), ["a>n1", "b!"]);
}
