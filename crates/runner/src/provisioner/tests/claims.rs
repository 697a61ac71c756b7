//! Claims that are given volumes.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_claim_is_given_a_volume_which_goes_when_it_is_released() {
    let world = World::new();
    world.api.fault(Fault::Refused("POST", 500, "InternalError"));
    world.api.put(&format!("{CLAIMS}/data"), claim(&Value::Null));
    let volume = format!("{VOLUMES}/pvc-c1");
    world.until("provisioned", |api| api.object(&volume).is_some()).await;
    let made = world.api.object(&volume).expect("there");
    assert_eq!(
        (&made["spec"]["claimRef"]["uid"], &made["spec"]["csi"]["volumeHandle"]),
        (&json!("c1"), &json!("pvc-c1"))
    );
    let mut released = made;
    released["status"] = json!({ "phase": "Released" });
    *world.hands.refusal.lock() = Some(refusal("in use", Finality::Open));
    world.api.remove(&format!("{CLAIMS}/data"));
    world.api.put(&volume, released);
    world.until("removed", |api| api.object(&volume).is_none_or(|it| it["metadata"]["finalizers"] == json!([]))).await;
    let asked = world.hands.asked.lock().clone();
    assert_eq!(asked.iter().filter(|it| *it == "delete pvc-c1").count(), 2, "in use at first: {asked:?}");
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_finds_no_room_is_given_back_to_the_scheduler() {
    let world = World::new();
    *world.hands.refusal.lock() = Some(Refusal { is_exhausted: true, ..refusal("no room", Finality::Infeasible) });
    let path = format!("{CLAIMS}/data");
    world.api.put(&path, claim(&Value::Null));
    let selected = |api: &FakeApi| {
        let claim = api.object(&path).expect("there");
        claim["metadata"]["annotations"].get("volume.kubernetes.io/selected-node").is_some_and(|it| !it.is_null())
    };
    world.until("given back", |api| !selected(api)).await;
    assert!(world.api.objects(VOLUMES).is_empty());
}

/// Nobody else knows of it, and it would stay for ever.
#[tokio::test(start_paused = true)]
async fn a_volume_that_is_not_what_was_asked_for_is_removed_again() {
    let world = World::new();
    *world.hands.refused.lock() = Some("too small".into());
    world.api.put(&format!("{CLAIMS}/data"), claim(&Value::Null));
    world.until("made", |api| api.object(&format!("{VOLUMES}/pvc-c1")).is_some()).await;
    let create = "create pvc-c1 1073741824";
    assert_eq!(*world.hands.asked.lock(), [create, "delete pvc-c1", create]);
}

/// Its answer was lost, and its claim is gone: the object says whose it was, and is released.
#[tokio::test(start_paused = true)]
async fn a_volume_whose_claim_went_meanwhile_is_made_known_and_removed() {
    let world = World::new();
    *world.hands.refusal.lock() = Some(refusal("no answer", Finality::Open));
    let path = format!("{CLAIMS}/data");
    world.api.put(&path, claim(&Value::Null));
    world.until("asked for", |_| !world.hands.asked.lock().is_empty()).await;
    world.api.remove(&path);
    let volume = format!("{VOLUMES}/pvc-c1");
    world.until("made known", |api| api.object(&volume).is_some()).await;
    let mut made = world.api.object(&volume).expect("there");
    assert_eq!(made["spec"]["claimRef"]["uid"], "c1");
    made["status"] = json!({ "phase": "Released" });
    world.api.put(&volume, made);
    world.until("removed", |_| world.hands.asked.lock().contains(&"delete pvc-c1".to_owned())).await;
}
