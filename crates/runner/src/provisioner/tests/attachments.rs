//! Volumes that are attached to nodes.

use super::*;

const ATTACHMENT: &str = "/apis/storage.k8s.io/v1/volumeattachments/csi-1";

/// A driver of others, known by the fake's name, that attaches.
fn attaching(world: &World) {
    *world.hands.foreign.lock() = true;
    world.api.put(
        &format!("{VOLUMES}/pv1"),
        json!({
            "metadata": { "name": "pv1" },
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "csi": {
                    "driver": DRIVER, "volumeHandle": "vol-1",
                    "controllerPublishSecretRef": { "name": "s", "namespace": "default" },
                },
            },
        }),
    );
    let data = json!({ "metadata": { "name": "s", "namespace": "default" }, "data": { "key": "eA==" } });
    world.api.put("/api/v1/namespaces/default/secrets/s", data);
    let attachment = json!({
        "metadata": { "name": "csi-1", "finalizers": ["somebodys/own"] },
        "spec": { "attacher": DRIVER, "nodeName": "n1", "source": { "persistentVolumeName": "pv1" } },
    });
    world.api.put(ATTACHMENT, attachment);
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_attached_and_detached_with_the_drivers_words() {
    let world = World::new();
    let refused = |message: &str, is_exhausted| {
        *world.hands.refusal.lock() = Some(Refusal { is_exhausted, ..refusal(message, FailureKind::Open) });
    };
    refused("no place", true);
    attaching(&world);
    let error = |api: &FakeApi| api.object(ATTACHMENT).expect("there")["status"]["attachError"].clone();
    world.until("refused", |api| error(api)["message"] == "no place").await;
    assert_eq!(error(&world.api)["errorCode"], 8, "the node is to learn of it");
    refused("no such disk", false);
    world.until("refused", |api| error(api)["message"] == "no such disk").await;
    assert_eq!(error(&world.api).get("errorCode"), None);
    let is_attached = |api: &FakeApi| api.object(ATTACHMENT).expect("there")["status"]["attached"] == true;
    world.until("attached", is_attached).await;
    let found = world.api.object(ATTACHMENT).expect("there");
    assert_eq!(found["status"]["attachmentMetadata"]["device"], "sdb");
    assert_eq!(found["status"].get("attachError"), None);
    let held = format!("external-attacher/{DRIVER}");
    assert_eq!(found["metadata"]["finalizers"], json!(["somebodys/own", held]));
    assert_eq!(found["metadata"]["annotations"]["csi.alpha.kubernetes.io/node-id"], "n1");
    let volume = world.api.object(&format!("{VOLUMES}/pv1")).expect("there");
    assert_eq!(volume["metadata"]["finalizers"], json!([held]));
    assert!(
        world.hands.asked.lock().contains(&"attach vol-1 n1 {\"key\"}".to_owned()),
        "{:?}",
        world.hands.asked.lock()
    );

    let mut leaving = found;
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    world.api.put(ATTACHMENT, leaving);
    let is_let_go = |api: &FakeApi| {
        api.object(ATTACHMENT).is_none_or(|it| it["metadata"]["finalizers"] == json!(["somebodys/own"]))
    };
    world.until("let go", is_let_go).await;
    assert!(world.hands.asked.lock().contains(&"detach vol-1 n1".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_its_driver_does_not_list_is_attached_again() {
    let world = World::new();
    attaching(&world);
    let n_asked = || world.hands.asked.lock().iter().filter(|it| it.starts_with("attach vol-1 n1")).count();
    let is_attached = |api: &FakeApi| api.object(ATTACHMENT).expect("there")["status"]["attached"] == true;
    world.until("attached", is_attached).await;
    assert_eq!(n_asked(), 1);
    *world.hands.is_detached.lock() = true;
    world.until("attached again", |_| n_asked() == 2).await;
    assert!(is_attached(&world.api), "it stays so meanwhile");
    assert!(!*world.hands.is_detached.lock());
}
