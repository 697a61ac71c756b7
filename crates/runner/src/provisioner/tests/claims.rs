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
    *world.hands.refusal.lock() = Some(refusal("in use", FailureKind::Open));
    world.api.remove(&format!("{CLAIMS}/data"));
    world.api.put(&volume, released);
    world.until("removed", |api| api.object(&volume).is_none_or(|it| it["metadata"]["finalizers"] == json!([]))).await;
    let asked = world.hands.asked.lock().clone();
    assert_eq!(asked.iter().filter(|it| *it == "delete pvc-c1 {}").count(), 2, "in use at first: {asked:?}");
}

/// The namespace that it was in is gone with it.
#[tokio::test(start_paused = true)]
async fn a_volume_is_removed_without_the_secret_that_is_gone() {
    for (is_there, told) in [(true, r#"delete pvc-c1 {"user"}"#), (false, "delete pvc-c1 {}")] {
        let world = World::new();
        world.api.put(&format!("{CLAIMS}/data"), claim(&Value::Null));
        let path = format!("{VOLUMES}/pvc-c1");
        world.until("provisioned", |api| api.object(&path).is_some()).await;
        let mut released = world.api.object(&path).expect("there");
        released["status"] = json!({ "phase": "Released" });
        let annotations = &mut released["metadata"]["annotations"];
        annotations["volume.kubernetes.io/provisioner-deletion-secret-name"] = "login".into();
        annotations["volume.kubernetes.io/provisioner-deletion-secret-namespace"] = "storage".into();
        if is_there {
            world.api.put("/api/v1/namespaces/storage/secrets/login", json!({ "data": { "user": "YQ==" } }));
        }
        world.api.remove(&format!("{CLAIMS}/data"));
        world.api.put(&path, released);
        world.until("asked to remove it", |_| world.hands.asked.lock().iter().any(|it| it.starts_with("delete"))).await;
        assert_eq!(world.hands.asked.lock().last().map(String::as_str), Some(told));
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_finds_no_room_is_given_back_to_the_scheduler() {
    let world = World::new();
    *world.hands.refusal.lock() = Some(Refusal { is_exhausted: true, ..refusal("no room", FailureKind::Infeasible) });
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
    assert_eq!(*world.hands.asked.lock(), [create, "delete pvc-c1 {}", create]);
}

/// Its answer was lost, and its claim is gone: the object says whose it was, and is released.
#[tokio::test(start_paused = true)]
async fn a_volume_whose_claim_went_meanwhile_is_made_known_and_removed() {
    let world = World::new();
    *world.hands.refusal.lock() = Some(refusal("no answer", FailureKind::Open));
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
    world.until("removed", |_| world.hands.asked.lock().contains(&"delete pvc-c1 {}".to_owned())).await;
}

/// The claim that a clone begins with stays until the clone is made.
#[tokio::test(start_paused = true)]
async fn a_clones_source_is_held_before_the_driver_is_asked_and_let_go_after() {
    const FINALIZER: &str = "provisioner.storage.kubernetes.io/cloning-protection";
    let world = World::new();
    *world.hands.foreign.lock() = true;
    let csi = json!({ "driver": DRIVER, "volumeHandle": "h0" });
    let of = json!({ "namespace": "default", "name": "old", "uid": "c0" });
    let spec = json!({ "csi": csi, "claimRef": of });
    world.api.put(&format!("{VOLUMES}/pv0"), json!({ "metadata": { "name": "pv0" }, "spec": spec }));
    let source = format!("{CLAIMS}/old");
    let mut old = claim(&json!({ "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } } }));
    (old["metadata"]["name"], old["metadata"]["uid"]) = ("old".into(), "c0".into());
    (old["spec"]["volumeName"], old["metadata"]["finalizers"]) = ("pv0".into(), json!(["somebodys/own"]));
    world.api.put(&source, old);
    world.until("introduced", |api| api.object("/apis/storage.k8s.io/v1/csinodes/n1").is_some()).await;

    world.api.fault(Fault::Refused("PATCH", 500, "InternalError"));
    let path = format!("{CLAIMS}/data");
    let mut clone = claim(&Value::Null);
    clone["spec"]["dataSourceRef"] = json!({ "kind": "PersistentVolumeClaim", "name": "old" });
    world.api.put(&path, clone);
    let failures = |api: &FakeApi| {
        api.objects("/api/v1/namespaces/default/events/")
            .iter()
            .filter(|it| it["reason"] == "ProvisioningFailed")
            .count()
    };
    world.until("not held", |api| failures(api) == 1).await;
    assert_eq!(*world.hands.asked.lock(), [""; 0], "not before it is held");
    world.until("made", |api| api.object(&format!("{VOLUMES}/pvc-c1")).is_some()).await;
    let mut old = world.api.object(&source).expect("there");
    assert_eq!(old["metadata"]["finalizers"], json!(["somebodys/own", FINALIZER]));

    old["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    world.api.put(&source, old);
    let mut bound = world.api.object(&path).expect("there");
    bound["status"] = json!({ "phase": "Bound" });
    world.api.put(&path, bound);
    let is_let_go =
        |api: &FakeApi| api.object(&source).expect("there")["metadata"]["finalizers"] == json!(["somebodys/own"]);
    world.until("let go", is_let_go).await;
}

/// The driver's node leads, and the Lease of the other one's place is nobody's.
#[tokio::test(start_paused = true)]
async fn that_nobody_acts_for_a_driver_in_a_place_is_told() {
    let world = World::new();
    *world.hands.foreign.lock() = true;
    for node in ["n1", "n2"] {
        let labels = json!({ "kubernetes.io/hostname": node });
        world.api.put(&format!("/api/v1/nodes/{node}"), json!({ "metadata": { "name": node, "labels": labels } }));
    }
    let mut claim = claim(&Value::Null);
    claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] = "n2".into();
    world.api.put(&format!("{CLAIMS}/data"), claim);
    let words = format!("no node acts for {DRIVER} in the place of node n2 (kubernetes.io/hostname=n2)");
    world
        .until("told", |api| {
            let events = api.objects("/api/v1/namespaces/default/events/");
            events.iter().any(|it| it["message"].as_str().is_some_and(|it| it.contains(&words)))
        })
        .await;
    assert!(world.hands.asked.lock().is_empty(), "n1 is not where it is to be");
}

#[tokio::test(start_paused = true)]
async fn a_driver_is_told_whose_volume_it_makes_where_its_object_says_so() {
    let world = World::new();
    *world.hands.foreign.lock() = true;
    let annotations = json!({ "csi.corten.dev/extra-create-metadata": "true" });
    let meta = json!({ "name": DRIVER, "annotations": annotations });
    world.api.put(&format!("/apis/storage.k8s.io/v1/csidrivers/{DRIVER}"), json!({ "metadata": meta }));
    world.api.put(&format!("{CLAIMS}/data"), claim(&Value::Null));
    world.until("made", |api| api.object(&format!("{VOLUMES}/pvc-c1")).is_some()).await;
    let of = |what| format!("\"csi.storage.k8s.io/{what}");
    let told = [("pv/name", "pvc-c1"), ("pvc/name", "data"), ("pvc/namespace", "default")];
    let told = told.map(|(what, it)| format!("{}\": {it:?}", of(what))).join(", ");
    assert!(world.hands.asked.lock().contains(&format!("create pvc-c1 1073741824 {{{told}}}")));
}
