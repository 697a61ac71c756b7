//! Devices of extended resources, over several steps.

use super::*;
use crate::arguments::BIND_TIMEOUT;

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

/// A device that has to be attached to the node, and one that is there.
const TO_BE_ATTACHED: &str = r#"
node n1
deviceclass gpu spec.extendedResourceName="example.com/gpu"
resourceslice s spec.driver="d" spec.nodeName="n1" spec.pool={"name":"p","generation":1,"resourceSliceCount":1} spec.devices=[{"name":"a","bindingConditions":["Attached"],"bindingFailureConditions":["Broken"]}]
resourceclaim c spec.devices.requests=[{"name":"r","exactly":{"deviceClassName":"gpu"}}]
pod a spec.resourceClaims=[{"name":"c","resourceClaimName":"c"}] spec.containers=[{"name":"c"}]
"#;

/// The claim of that world as the API server has it once it is reserved, with what its driver says.
fn reserved(effects: &[Effect], conditions: &Value) -> Value {
    let reservation = effects.iter().find_map(|it| match it {
        Effect::Reserve { claims, .. } => claims.first(),
        _ => None,
    });
    let mut claim = object_of(TO_BE_ATTACHED, "c");
    claim["metadata"]["resourceVersion"] = json!("2");
    claim["status"] = reservation.expect("the claim is reserved").status.clone();
    claim["status"]["devices"] = json!([{"driver": "d", "pool": "p", "device": "a", "conditions": conditions}]);
    claim
}

fn object_of(lines: &str, name: &str) -> Value {
    let world = world(lines);
    world.get(&RESOURCE_CLAIMS, &Key::new("default", name)).expect("it is in the world").clone()
}

fn says(r#type: &str) -> Value {
    let since = "2026-11-20T12:00:00Z";
    json!([{"type": r#type, "status": "True", "reason": "Told", "message": "by the driver", "lastTransitionTime": since}])
}

#[test]
fn a_pod_is_bound_when_its_devices_are_ready() {
    let world = world(TO_BE_ATTACHED);
    let mut scheduler = told(&world);
    let effects = scheduler.step(Event::Tick, world.now);
    let text = describe(&effects, world.now);
    assert!(text.contains("do not bind default/a yet"), "{text}");
    assert!(text.contains("BindingConditionsPending: waiting for binding conditions for device on node n1"), "{text}");
    assert!(text.contains("wait DevicesNotReady on resourceclaim/c (External)"), "{text}");
    assert!(text.contains(r#""allocationTimestamp":"2026-11-20T12:00:00Z""#), "{text}");

    let open = reserved(&effects, &json!([]));
    assert!(binds(&mut scheduler, seen::<DeviceClaim>(&open), world.now).is_empty());
    assert!(binds(&mut scheduler, Event::Tick, world.now).is_empty());
    let ready = reserved(&effects, &says("Attached"));
    assert_eq!(binds(&mut scheduler, seen::<DeviceClaim>(&ready), world.now), ["a>n1"]);
    assert!(binds(&mut scheduler, seen::<DeviceClaim>(&ready), world.now).is_empty(), "once");
}

#[test]
fn devices_that_do_not_become_ready_are_given_back() {
    for (what, conditions, message) in [
        ("it fails", Some(says("Broken")), r#"claim c binding failed: reason=Told, message=\"by the driver\""#),
        ("nobody answers", None, "device binding timeout"),
    ] {
        let world = world(TO_BE_ATTACHED);
        let mut scheduler = told(&world);
        let effects = scheduler.step(Event::Tick, world.now);
        scheduler.step(seen::<DeviceClaim>(&reserved(&effects, &json!([]))), world.now);
        let late = world.now.after(BIND_TIMEOUT);
        let event = match &conditions {
            Some(it) => seen::<DeviceClaim>(&reserved(&effects, it)),
            None => Event::Tick,
        };
        let text = describe(&scheduler.step(event, late), late);
        assert!(text.contains(message), "{what}: {text}");
        let release = r#"{"metadata":{"uid":"resourceclaim-c","resourceVersion":"2"},"status":{"allocation":null,"reservedFor":null,"devices":null}}"#;
        assert!(text.contains(&format!("release default/c {release}")), "{what}: {text}");

        // The claim has nothing any more: the pod is tried again.
        scheduler.step(seen::<DeviceClaim>(&object_of(TO_BE_ATTACHED, "c")), late);
        let text = describe(&scheduler.step(Event::Tick, later(late)), later(late));
        assert!(text.contains("do not bind default/a yet"), "{what}: {text}");
    }
}

#[test]
fn a_claim_that_goes_while_it_is_waited_for_sends_the_pod_back() {
    let world = world(TO_BE_ATTACHED);
    let mut scheduler = told(&world);
    scheduler.step(Event::Tick, world.now);
    let gone = Event::StorageGone(RESOURCE_CLAIMS, Key::new("default", "c"));
    assert_eq!(binds(&mut scheduler, gone, world.now), ["a!"]);
}

/// Another scheduler gave the devices: what is left of the time is left.
#[test]
fn a_wait_goes_on_after_a_restart() {
    let began = world(TO_BE_ATTACHED).now;
    let timeout = BIND_TIMEOUT;
    let effects = told(&world(TO_BE_ATTACHED)).step(Event::Tick, began);
    let restarted = |conditions: &Value, after: Duration| {
        let mut world = world(TO_BE_ATTACHED);
        *world.get_mut(&RESOURCE_CLAIMS, &Key::new("default", "c")).expect("it is there") =
            reserved(&effects, conditions);
        world.now = began.after(after);
        (told(&world), world.now)
    };
    let (mut scheduler, now) = restarted(&json!([]), timeout / 2);
    let text = describe(&scheduler.step(Event::Tick, now), now);
    assert!(text.contains("wait DevicesNotReady on resourceclaim/c (External)"), "{text}");
    assert!(!text.contains("bind default/a to") && !text.contains("reserve"), "{text}");
    assert!(text.contains(&format!("wake in {} ms", (timeout / 2).as_millis())), "not the whole time again: {text}");
    let ready = reserved(&effects, &says("Attached"));
    assert_eq!(binds(&mut scheduler, seen::<DeviceClaim>(&ready), now), ["a>n1"]);

    let (mut scheduler, now) = restarted(&json!([]), timeout / 2);
    scheduler.step(Event::Tick, now);
    let text = describe(&scheduler.step(Event::Tick, began.after(timeout)), began.after(timeout));
    assert!(text.contains("device binding timeout") && text.contains("release default/c"), "{text}");

    for (what, conditions, after, message) in [
        ("it failed meanwhile", says("Broken"), timeout / 2, "claim c binding failed: reason=Told"),
        ("the time is over", json!([]), timeout, "claim c binding timeout"),
    ] {
        let (mut scheduler, now) = restarted(&conditions, after);
        let text = describe(&scheduler.step(Event::Tick, now), now);
        assert!(text.contains(message) && text.contains("release default/c"), "{what}: {text}");
        assert!(!text.contains("do not bind") && !text.contains("bind default/a to"), "{what}: {text}");
    }
    let (mut scheduler, now) = restarted(&says("Attached"), timeout * 2);
    assert_eq!(binds(&mut scheduler, Event::Tick, now), ["a>n1"], "it became ready while nobody looked");
}

/// Of two pods that have one claim, the last that gives up gives the devices back.
#[test]
fn devices_that_several_pods_wait_for_are_given_back_by_the_last() {
    let mut world = world(&format!(
        "{TO_BE_ATTACHED}pod b spec.resourceClaims=[{{\"name\":\"c\",\"resourceClaimName\":\"c\"}}] spec.containers=[{{\"name\":\"c\"}}]\n"
    ));
    let mut claim = reserved(&told(&self::world(TO_BE_ATTACHED)).step(Event::Tick, world.now), &json!([]));
    claim["status"]["reservedFor"] =
        json!(["a", "b"].map(|it| json!({"resource": "pods", "name": it, "uid": format!("pod-{it}")})));
    *world.get_mut(&RESOURCE_CLAIMS, &Key::new("default", "c")).expect("it is there") = claim.clone();
    let mut scheduler = told(&world);
    let late = world.now.after(BIND_TIMEOUT);
    let text = describe(&scheduler.step(Event::Tick, late), late);
    let a_leaves = r#""status":{"reservedFor":[{"name":"b","resource":"pods","uid":"pod-b"}]}}"#;
    assert!(text.contains(a_leaves) && !text.contains(r#""allocation":null"#), "{text}");

    claim["status"]["reservedFor"] = json!([{"resource": "pods", "name": "b", "uid": "pod-b"}]);
    scheduler.step(seen::<DeviceClaim>(&claim), late);
    let text = describe(&scheduler.step(Event::Tick, later(late)), later(late));
    assert!(text.contains(r#""status":{"allocation":null,"reservedFor":null,"devices":null}}"#), "{text}");
}

/// A device that is there is given before one that has to be attached; the claim for extended resources waits, too.
#[test]
fn devices_that_are_ready_are_given_first() {
    let lines = r#"
node n1
deviceclass gpu spec.extendedResourceName="example.com/gpu"
resourceslice s spec.driver="d" spec.nodeName="n1" spec.pool={"name":"p","generation":1,"resourceSliceCount":1} spec.devices=[{"name":"a","bindingConditions":["Attached"]}]
resourceslice t spec.driver="d" spec.nodeName="n1" spec.pool={"name":"q","generation":1,"resourceSliceCount":1} spec.devices=[{"name":"b"}]
pod a priority=1 spec.containers=[{"name":"c","resources":{"requests":{"example.com/gpu":"1"}}}]
pod b spec.containers=[{"name":"c","resources":{"requests":{"example.com/gpu":"1"}}}]
"#;
    let world = world(lines);
    let mut scheduler = told(&world);
    let effects = scheduler.step(Event::Tick, world.now);
    let text = describe(&effects, world.now);
    assert!(text.contains("bind default/a to n1") && text.contains("do not bind default/b yet"), "{text}");
    let made = effects.iter().find_map(|it| match it {
        Effect::Reserve { extended: Some(ExtendedClaimWrite::Make(it)), .. } => Some(&**it),
        _ => None,
    });
    let NewClaim { claim, status, .. } = made.expect("a claim is made");
    let mut claim = claim.clone();
    claim["metadata"]["name"] = json!("made");
    claim["status"] = status.clone();
    assert!(binds(&mut scheduler, seen::<DeviceClaim>(&claim), world.now).is_empty());
    claim["status"]["devices"] = json!([{"driver": "d", "pool": "p", "device": "a", "conditions": says("Attached")}]);
    let text = describe(&scheduler.step(seen::<DeviceClaim>(&claim), world.now), world.now);
    assert_eq!(text, "bind default/b to n1\n");
}

/// Claims have one device between them, each a share with an id of its own, until it is used up.
#[test]
fn a_device_is_shared() {
    let claim = |name: &str| {
        format!(
            r#"resourceclaim {name} spec.devices.requests=[{{"name":"r","exactly":{{"deviceClassName":"nic","count":2,"capacity":{{"requests":{{"bandwidth":"3"}}}}}}}}]"#
        )
    };
    let pod = |name: &str| {
        format!(
            r#"pod {name} spec.resourceClaims=[{{"name":"c","resourceClaimName":"{name}"}}] spec.containers=[{{"name":"c"}}]"#
        )
    };
    let lines: Vec<String> = ["a", "b", "c"].iter().flat_map(|it| [claim(it), pod(it)]).collect();
    let slice = r#"resourceslice s spec.driver="d" spec.nodeName="n1" spec.pool={"name":"p","generation":1,"resourceSliceCount":1} spec.devices=[{"name":"nic","allowMultipleAllocations":true,"capacity":{"bandwidth":{"value":"12"}}}]"#;
    let world = world(&format!("node n1\ndeviceclass nic\n{slice}\n{}\n", lines.join("\n")));
    let mut scheduler = told(&world);
    let effects = scheduler.step(Event::Tick, world.now);
    let mut shares = Vec::new();
    for effect in &effects {
        let Effect::Bind { pod, claims, .. } = effect else { continue };
        for it in claims[0].status["allocation"]["devices"]["results"].as_array().expect("results") {
            assert_eq!((&it["device"], &it["consumedCapacity"]), (&json!("nic"), &json!({"bandwidth": "3"})), "{pod}");
            shares.push(it["shareID"].as_str().expect("a share").to_owned());
        }
    }
    assert_eq!(shares.len(), 4, "for two pods there is enough");
    shares.sort();
    shares.dedup();
    assert_eq!(shares.len(), 4, "each has an id of its own");

    // Once it is seen, the claim itself says what it has; and what it had is the next one's when it is gone.
    for name in ["a", "b"] {
        let mut claim = world.get(&RESOURCE_CLAIMS, &Key::new("default", name)).expect("it is there").clone();
        let written = effects.iter().find_map(|it| match it {
            Effect::Bind { pod, claims, .. } if pod.name == name => claims.first(),
            _ => None,
        });
        claim["status"] = written.expect("it is bound").status.clone();
        scheduler.step(seen::<DeviceClaim>(&claim), world.now);
    }
    assert_eq!(binds(&mut scheduler, Event::Tick, later(world.now)), ["c!"]);
    let gone = Event::StorageGone(RESOURCE_CLAIMS, Key::new("default", "a"));
    scheduler.step(gone, later(world.now));
    assert_eq!(binds(&mut scheduler, Event::Tick, later(later(world.now))), ["c>n1"]);
}

/// Two shares of a device become ready one after the other.
#[test]
fn shares_become_ready_each_by_itself() {
    let lines = TO_BE_ATTACHED.replace(
        r#""name":"a","bindingConditions""#,
        r#""name":"a","allowMultipleAllocations":true,"bindingConditions""#,
    );
    let lines = lines.replace(r#""deviceClassName":"gpu""#, r#""deviceClassName":"gpu","count":2"#);
    let world = world(&lines);
    let mut scheduler = told(&world);
    let effects = scheduler.step(Event::Tick, world.now);
    let mut claim = reserved(&effects, &json!([]));
    let ids: Vec<Value> = claim["status"]["allocation"]["devices"]["results"]
        .as_array()
        .expect("two")
        .iter()
        .map(|it| it["shareID"].clone())
        .collect();
    let told_of = |ids: &[Value]| {
        let share = |id: &Value| json!({"driver": "d", "pool": "p", "device": "a", "shareID": id, "conditions": says("Attached")});
        ids.iter().map(share).collect::<Value>()
    };
    claim["status"]["devices"] = told_of(&ids[..1]);
    assert!(binds(&mut scheduler, seen::<DeviceClaim>(&claim), world.now).is_empty(), "one is ready");
    claim["status"]["devices"] = told_of(&ids);
    assert_eq!(binds(&mut scheduler, seen::<DeviceClaim>(&claim), world.now), ["a>n1"]);
}
