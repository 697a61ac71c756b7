//! Snapshots.

use super::*;

const CONTENTS: &str = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents";

impl World {
    /// As the server does: kinds are served a moment after they were defined.
    async fn serve_snapshots(&self) {
        const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/";
        self.until("defined", |api| {
            for mut definition in api.objects(DEFINITIONS).into_iter().filter(|it| it["status"].is_null()) {
                definition["status"] = json!({ "conditions": [{ "type": "Established", "status": "True" }] });
                let name = definition["metadata"]["name"].as_str().expect("a name").to_owned();
                api.put(&format!("{DEFINITIONS}{name}"), definition);
            }
            *self.hands.has_snapshots.lock()
        })
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_taken_and_removed() {
    let world = World::new();
    world.serve_snapshots().await;
    let class = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses/local";
    assert_eq!(world.api.object(class).expect("there")["driver"], DRIVER);
    *world.hands.refusal.lock() = Some(Refusal { is_exhausted: true, ..refusal("no room", FailureKind::Infeasible) });
    let path = format!("{CONTENTS}/snapcontent-u1");
    let content = json!({
        "metadata": {
            "name": "snapcontent-u1", "uid": "k1",
            "finalizers": ["snapshot.storage.kubernetes.io/volumesnapshotcontent-bound-protection"],
        },
        "spec": {
            "driver": DRIVER, "deletionPolicy": "Delete", "volumeSnapshotClassName": "local",
            "source": { "volumeHandle": "pvc-h" },
            "volumeSnapshotRef": { "namespace": "default", "name": "s", "uid": "u1" },
        },
    });
    world.api.put(&path, content);
    let status = |api: &FakeApi| api.object(&path).expect("there")["status"].clone();
    world.until("refused", |api| status(api)["error"]["message"].as_str().is_some()).await;
    let why = status(&world.api)["error"]["message"].clone();
    assert!(
        why.as_str().expect("a text").ends_with("failed to take snapshot of the volume pvc-h: \"no room\""),
        "{why}"
    );
    world.until("taken", |api| status(api)["readyToUse"] == true).await;
    assert_eq!(status(&world.api)["snapshotHandle"], "snapshot-u1");
    assert!(status(&world.api)["error"].is_null());
    let mark = "snapshot.storage.kubernetes.io/volumesnapshot-being-created";
    world
        .until("unmarked", |api| api.object(&path).expect("there")["metadata"]["annotations"].get(mark).is_none())
        .await;

    let mut deleted = world.api.object(&path).expect("there");
    deleted["metadata"]["deletionTimestamp"] = "2026-11-20T11:00:00Z".into();
    deleted["metadata"]["annotations"] =
        json!({ "snapshot.storage.kubernetes.io/volumesnapshot-being-deleted": "yes" });
    world.api.put(&path, deleted);
    let is_let_go = |api: &FakeApi| api.object(&path).expect("there")["metadata"]["finalizers"] == json!([]);
    world.until("let go", is_let_go).await;
    let asked = world.hands.asked.lock().clone();
    assert_eq!(
        asked,
        ["snapshot snapshot-u1 of pvc-h", "snapshot snapshot-u1 of pvc-h", "delete snapshot snapshot-u1"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_was_there_before_is_found() {
    let world = World::new();
    world.serve_snapshots().await;
    let secret = "/api/v1/namespaces/vault/secrets/key";
    let class = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses/listed";
    world.api.put(
        class,
        json!({
            "metadata": { "name": "listed" }, "driver": DRIVER, "deletionPolicy": "Retain",
            "parameters": { "csi.storage.k8s.io/snapshotter-list-secret-name": "key",
                "csi.storage.k8s.io/snapshotter-list-secret-namespace": "vault" },
        }),
    );
    let path = format!("{CONTENTS}/given");
    world.api.put(
        &path,
        json!({
            "metadata": { "name": "given", "uid": "k2" },
            "spec": {
                "driver": DRIVER, "deletionPolicy": "Retain", "volumeSnapshotClassName": "listed",
                "source": { "snapshotHandle": "h0" },
                "volumeSnapshotRef": { "namespace": "default", "name": "s" },
            },
        }),
    );
    let status = |api: &FakeApi| api.object(&path).expect("there")["status"].clone();
    world.until("without its Secret", |api| status(api)["error"]["message"].is_string()).await;
    let why = status(&world.api)["error"]["message"].to_string();
    assert!(why.contains("failed to list snapshot for content given") && why.contains("key"), "{why}");
    assert!(world.hands.asked.lock().is_empty(), "not without what it is to be told");
    world.api.put(secret, json!({ "metadata": { "name": "key", "namespace": "vault" }, "data": { "a": "Yg==" } }));
    world.until("found", |api| status(api)["readyToUse"] == true).await;
    let told = status(&world.api);
    assert_eq!(
        (&told["snapshotHandle"], &told["restoreSize"], &told["creationTime"]),
        (&json!("h0"), &json!(1 << 20), &json!(9))
    );
    assert!(told["error"].is_null());
    let asked = world.hands.asked.lock().clone();
    assert!(asked.len() == 1 && asked[0].starts_with("find snapshot h0 ") && asked[0].contains('a'), "{asked:?}");
}
