//! Volumes that drivers answer with and that are somebody else's.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_anothers_is_not_taken() {
    let world = World::new();
    *world.hands.foreign.lock() = true;
    let csi = json!({ "driver": DRIVER, "volumeHandle": "pvc-c1" });
    world.api.put(&format!("{VOLUMES}/taken"), json!({ "metadata": { "name": "taken" }, "spec": { "csi": csi } }));
    world.until("introduced", |api| api.object("/apis/storage.k8s.io/v1/csinodes/n1").is_some()).await;
    world.api.put(&format!("{CLAIMS}/data"), claim(&Value::Null));
    let is_told = |api: &FakeApi| {
        let events = api.objects("/api/v1/namespaces/default/events/");
        events
            .iter()
            .any(|it| it["message"].as_str().is_some_and(|it| it.contains("is that of PersistentVolume taken")))
    };
    world.until("refused", is_told).await;
    assert!(world.api.object(&format!("{VOLUMES}/pvc-c1")).is_none());
}

#[tokio::test(start_paused = true)]
async fn one_volume_is_not_given_to_two_claims() {
    let world = World::new();
    *world.hands.repeats.lock() = true;
    for uid in ["c1", "c2"] {
        let mut claim = claim(&Value::Null);
        (claim["metadata"]["name"], claim["metadata"]["uid"]) = (uid.into(), uid.into());
        world.api.put(&format!("{CLAIMS}/{uid}"), claim);
    }
    let asked = |what: &str| world.hands.asked.lock().iter().filter(|it| it.starts_with(what)).count();
    world.until("both asked for", |_| asked("create pvc-c1") > 0 && asked("create pvc-c2") > 0).await;
    world.until("asked for again", |_| asked("create") > 2).await;
    let made = ["c1", "c2"].into_iter().filter(|it| world.api.object(&format!("{VOLUMES}/pvc-{it}")).is_some());
    assert_eq!(made.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn anothers_volume_that_a_driver_answers_with_is_not_removed() {
    let world = World::new();
    (*world.hands.foreign.lock(), *world.hands.repeats.lock()) = (true, true);
    let csi = json!({ "driver": DRIVER, "volumeHandle": "one" });
    world.api.put(&format!("{VOLUMES}/taken"), json!({ "metadata": { "name": "taken" }, "spec": { "csi": csi } }));
    world.until("introduced", |api| api.object("/apis/storage.k8s.io/v1/csinodes/n1").is_some()).await;
    *world.hands.refused.lock() = Some("too small".into());
    world.api.put(&format!("{CLAIMS}/data"), claim(&Value::Null));
    let asked = |what: &str| world.hands.asked.lock().iter().filter(|it| it.starts_with(what)).count();
    world.until("asked for again", |_| asked("create") > 1).await;
    assert_eq!(asked("delete"), 0);
}
