//! Contents that are to be taken, and claims that begin with what others hold.

use super::*;

const GROUP: &str = "snapshot.storage.kubernetes.io";

fn synced() -> World {
    let mut world = World::new();
    world.tell(Event::Synced);
    world
}

impl World {
    fn content(&mut self, patch: Value) -> Vec<String> {
        let content = serde_json::from_value(content(patch)).expect("a content");
        self.tell(Event::Content(Arc::new(content)))
    }

    fn snapshot(&mut self, patch: Value) -> Vec<String> {
        let mut snapshot = json!({
            "metadata": { "name": "s", "namespace": "default", "uid": "u1" },
            "spec": { "source": { "persistentVolumeClaimName": "old" } },
            "status": { "boundVolumeSnapshotContentName": "snapcontent-u1", "readyToUse": true },
        });
        merge(&mut snapshot, patch);
        self.tell(Event::Snapshot(Arc::new(serde_json::from_value(snapshot).expect("a snapshot"))))
    }

    fn class(&mut self) -> Vec<String> {
        let mut class = crate::default_snapshot_class(DRIVER);
        class["parameters"] = json!({ "a": "b", "csi.storage.k8s.io/snapshotter-secret-name": "s" });
        self.tell(Event::SnapshotClass(Arc::new(serde_json::from_value(class).expect("a class"))))
    }
}

fn content(patch: Value) -> Value {
    let mut content = json!({
        "metadata": { "name": "snapcontent-u1", "uid": "k1", "labels": { format!("{GROUP}/managed-by"): "n1" } },
        "spec": {
            "driver": DRIVER,
            "deletionPolicy": "Delete",
            "source": { "volumeHandle": "pvc-h" },
            "sourceVolumeMode": "Filesystem",
            "volumeSnapshotClassName": "local",
            "volumeSnapshotRef": { "namespace": "default", "name": "s", "uid": "u1" },
        },
    });
    merge(&mut content, patch);
    content
}

fn ready() -> Value {
    json!({ "status": { "snapshotHandle": "h1", "readyToUse": true, "restoreSize": 1 << 30 } })
}

fn of_snapshot(patch: Value) -> Value {
    let mut claim = selected();
    merge(
        &mut claim,
        json!({ "spec": { "dataSourceRef":
        { "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s" } } }),
    );
    merge(&mut claim, patch);
    claim
}

fn failed(why: &str) -> String {
    format!("Warning ProvisioningFailed: failed to provision volume with StorageClass \"local\": {why}")
}

#[test]
fn a_content_is_taken_once_its_class_is_known() {
    let mut world = synced();
    assert!(world.content(json!({})).is_empty(), "the class may come yet");
    assert_eq!(world.class(), ["take snapshot-u1 of pvc-h {\"a\": \"b\"}"]);
    assert!(world.content(json!({ "status": { "readyToUse": false } })).is_empty(), "it is under way");
    let taking = |result| {
        let asked_at = Time::from_unix_seconds(0);
        let [content, driver, name, volume] = ["snapcontent-u1", DRIVER, "snapshot-u1", "pvc-h"].map(str::to_owned);
        let taking = crate::Taking { content, driver, name, volume, parameters: [].into(), secret: None, asked_at };
        Event::Done(Outcome::SnapshotTaken { taking, result })
    };
    let failure = Failure { message: "no room".into(), is_exhausted: true, ..Failure::default() };
    assert_eq!(
        world.tell(taking(Err(failure))),
        ["Warning SnapshotContentCheckandUpdateFailed: Failed to check and update snapshot \
         content: failed to take snapshot of the volume pvc-h: \"no room\"",]
    );
    assert_eq!(world.wait(2), ["take snapshot-u1 of pvc-h {\"a\": \"b\"}"]);
    assert_eq!(world.tell(taking(Ok(true))), ["capacity local"]);
    assert!(world.content(ready()).is_empty());
}

#[test]
fn a_content_of_another_node_or_without_a_class() {
    let mut world = synced();
    world.content(json!({ "metadata": { "labels": { format!("{GROUP}/managed-by"): "n2" } } }));
    assert!(world.class().is_empty());
    let mut world = synced();
    world.content(json!({}));
    assert_eq!(
        world.tell(Event::SnapshotsSynced),
        ["Warning SnapshotContentCheckandUpdateFailed: failed to get snapshot class \
         \"local\": not found",]
    );
}

fn finding(result: Result<bool, Failure>) -> Event {
    let [content, driver, handle] = ["snapcontent-u1", DRIVER, "h0"].map(str::to_owned);
    let finding = crate::Finding { content, driver, handle, secret: None, asked_at: Time::from_unix_seconds(0) };
    Event::Done(Outcome::SnapshotFound { finding, result })
}

#[test]
fn a_snapshot_that_was_there_before_is_asked_for() {
    let given = |patch: Value| {
        let mut given = json!({ "spec": { "source": { "volumeHandle": null, "snapshotHandle": "h0" } } });
        merge(&mut given, patch);
        given
    };
    let class = |parameters: Value| {
        let mut class = crate::default_snapshot_class(DRIVER);
        class["parameters"] = parameters;
        Event::SnapshotClass(Arc::new(serde_json::from_value(class).expect("a class")))
    };
    let refused = |why: &str| format!("Warning SnapshotContentCheckandUpdateFailed: {why}");
    let mut world = synced();
    assert!(world.content(given(json!({}))).is_empty(), "the class may come yet");
    let secret = json!({ "csi.storage.k8s.io/snapshotter-list-secret-name": "of-${volumesnapshotcontent.name}",
        "csi.storage.k8s.io/snapshotter-list-secret-namespace": "vault" });
    assert_eq!(world.tell(class(secret)), ["find h0 of snapcontent-u1 with vault/of-snapcontent-u1"]);
    let missing = failure("can not find snapshot for snapshotID h0", false);
    let why = "Failed to check and update snapshot content: failed to list snapshot for content snapcontent-u1: \
               \"can not find snapshot for snapshotID h0\"";
    assert_eq!(world.tell(finding(Err(missing))), [refused(why)]);
    let again = ["find h0 of snapcontent-u1 with vault/of-snapcontent-u1"];
    assert_eq!(world.wait(2), again);
    assert!(world.tell(finding(Ok(false))).is_empty(), "it is there, and not ready yet");
    assert_eq!(world.wait(4), again);
    world.tell(finding(Ok(true)));
    let found = json!({ "status": { "snapshotHandle": "h0", "readyToUse": true } });
    assert!(world.content(given(found)).is_empty());

    let mut world = synced();
    world.tell(class(json!({ "csi.storage.k8s.io/snapshotter-list-secret-name": "half" })));
    let told = world.content(given(json!({})));
    assert!(told.len() == 1 && told[0].contains("Both must be specified"), "{told:?}");
    let classless = given(json!({ "spec": { "volumeSnapshotClassName": null } }));
    assert_eq!(synced().content(classless), ["find h0 of snapcontent-u1"]);
}

#[test]
fn what_a_driver_says_of_a_snapshot_is_told() {
    let asked_at = Time::from_unix_seconds(5);
    let [content, driver, handle] = ["snapcontent-u1", DRIVER, "h0"].map(str::to_owned);
    let finding = crate::Finding { content, driver, handle: handle.clone(), secret: None, asked_at };
    let told = crate::Snapshotted { handle, bytes: 7, created_at: 9, is_ready: false };
    assert_eq!(
        crate::snapshot_found(&finding, Some(&told)),
        json!({ "snapshotHandle": "h0", "creationTime": 9, "restoreSize": 7, "readyToUse": false, "error": null })
    );
    assert_eq!(
        crate::snapshot_found(&finding, None),
        json!({ "snapshotHandle": "h0", "creationTime": 5_000_000_000_i64, "restoreSize": 0, "readyToUse": true,
            "error": null })
    );
    let refused = crate::snapshot_not_found(&finding, "gone");
    assert_eq!((&refused["readyToUse"], refused["snapshotHandle"].is_null()), (&json!(false), true));
}

#[test]
fn a_content_goes_when_it_may() {
    let begun = json!({ "metadata": { "annotations": { format!("{GROUP}/volumesnapshot-being-created"): "yes" } } });
    let deleting = json!({ "metadata": { "deletionTimestamp": "2026-11-20T11:00:00Z",
        "finalizers": [format!("{GROUP}/volumesnapshotcontent-bound-protection")] } });
    let marked = json!({ "metadata": { "annotations": { format!("{GROUP}/volumesnapshot-being-deleted"): "yes" } } });
    let secret = json!({ "metadata": { "annotations": {
        format!("{GROUP}/deletion-secret-name"): "key", format!("{GROUP}/deletion-secret-namespace"): "vault" } } });
    let kept = json!({ "spec": { "deletionPolicy": "Retain" } });
    let given = json!({ "spec": { "source": { "volumeHandle": null, "snapshotHandle": "h0" },
        "volumeSnapshotRef": { "uid": "" } } });
    for (patches, expected) in [
        (vec![&deleting], ""),
        (vec![&deleting, &marked], "remove snapcontent-u1 "),
        (vec![&deleting, &marked, &ready()], "remove snapcontent-u1 h1"),
        (vec![&deleting, &marked, &ready(), &secret], "remove snapcontent-u1 h1 with vault/key"),
        (vec![&deleting, &marked, &kept, &ready()], ""),
        (vec![&secret], "take snapshot-u1 of pvc-h {\"a\": \"b\"} with vault/key"),
        (vec![&deleting, &marked, &begun], "take snapshot-u1 of pvc-h {\"a\": \"b\"}"),
        (vec![&given], "find h0 of snapcontent-u1"),
        (vec![&given, &json!({ "status": { "snapshotHandle": "h0", "readyToUse": true } })], ""),
        (vec![&deleting, &given], "remove snapcontent-u1 h0"),
    ] {
        let mut world = synced();
        world.class();
        let mut patch = json!({});
        patches.into_iter().for_each(|it| merge(&mut patch, it.clone()));
        assert_eq!(world.content(patch.clone()).join(","), expected, "{patch}");
    }
}

#[test]
fn a_content_on_its_way_out_is_removed_once() {
    let mut world = synced();
    world.class();
    let mut going = json!({ "metadata": {
        "deletionTimestamp": "2026-11-20T11:00:00Z",
        "finalizers": [format!("{GROUP}/volumesnapshotcontent-bound-protection")],
        "annotations": { format!("{GROUP}/volumesnapshot-being-deleted"): "yes" },
    } });
    merge(&mut going, ready());
    assert_eq!(world.content(going.clone()), ["remove snapcontent-u1 h1"]);
    let removed = Outcome::SnapshotRemoved { content: "snapcontent-u1".into(), driver: DRIVER.into(), result: Ok(()) };
    world.tell(Event::Done(removed));
    assert_eq!(world.content(going.clone()), [""; 0]);
    world.tell(Event::ContentGone("snapcontent-u1".into()));
    assert_eq!(world.content(going), ["remove snapcontent-u1 h1"]);
}

#[test]
fn a_claim_begins_with_what_a_snapshot_holds() {
    let mut world = synced();
    let missing = "error getting snapshot s from api server: volumesnapshots.snapshot.storage.k8s.io \"s\" not found";
    assert_eq!(world.claim(of_snapshot(json!({}))), [BEGUN, &failed(missing)]);
    // It is looked at when that changes.
    let unbound = json!({ "status": { "boundVolumeSnapshotContentName": "" } });
    assert_eq!(world.snapshot(unbound), [BEGUN, &failed("snapshot s not bound")]);
    let missing = "error getting snapshotcontent snapcontent-u1 for snapshot default/s from api server: not found";
    assert_eq!(world.snapshot(json!({})), [BEGUN, &failed(missing)]);
    let provision = [BEGUN, "provision pvc-c1 1073741824 false of Snapshot(\"h1\")"];
    assert_eq!(world.content(ready()), provision);
}

#[test]
fn a_snapshot_that_cannot_be_a_claims() {
    let small = json!({ "spec": { "resources": { "requests": { "storage": "512Mi" } } } });
    let block = json!({ "spec": { "volumeMode": "Block" } });
    let other = json!({ "spec": { "volumeSnapshotRef": { "uid": "u0" } } });
    let foreign = json!({ "spec": { "driver": "x.example.com" } });
    let allowed = json!({ "metadata": { "annotations": { format!("{GROUP}/allow-volume-mode-change"): "true" } } });
    let away = json!({ "metadata": { "labels": { format!("{GROUP}/managed-by"): "n2" } } });
    let deleted = json!({ "metadata": { "deletionTimestamp": "2026-11-20T11:00:00Z" } });
    let [early, late] =
        ["10:59:59", "11:00:01"].map(|it| json!({ "metadata": { "creationTimestamp": format!("2026-11-20T{it}Z") } }));
    let none = json!({});
    for (of_claim, of_content, of_snapshot_, expected) in [
        (
            &small,
            &none,
            &none,
            "requested volume size 536870912 is less than the size 1073741824 for the source snapshot s",
        ),
        (&block, &none, &none, "modifies the mode of the source volume"),
        (&block, &allowed, &none, "provision pvc-c1 1073741824 true of Snapshot"),
        (&none, &other, &none, "is bound to a different snapshot"),
        (&none, &foreign, &none, "is of driver x.example.com"),
        (&none, &away, &none, "reschedule default/data to n2"),
        (&none, &none, &json!({ "status": { "readyToUse": false } }), "snapshot s is not Ready"),
        (&none, &none, &deleted, "is currently being deleted"),
        (&late, &none, &deleted, "is currently being deleted"),
        // The snapshot is there until this one has its volume.
        (&early, &none, &deleted, "provision pvc-c1 1073741824 false of Snapshot"),
    ] {
        let mut world = synced();
        world.class();
        let mut patch = ready();
        merge(&mut patch, of_content.clone());
        world.content(patch);
        world.snapshot(of_snapshot_.clone());
        let told = world.claim(of_snapshot(of_claim.clone())).join("\n");
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

#[test]
fn a_claim_begins_with_what_another_holds() {
    let of = |patch: Value| {
        let mut claim = selected();
        merge(&mut claim, json!({ "spec": { "dataSourceRef": { "kind": "PersistentVolumeClaim", "name": "old" } } }));
        merge(&mut claim, patch);
        claim
    };
    let old = |phase: &str| {
        json!({
            "metadata": { "name": "old", "uid": "c0" },
            "spec": { "volumeName": "pv0" },
            "status": { "phase": phase, "capacity": { "storage": "1Gi" } },
        })
    };
    let volume = |driver: &str| {
        json!({
            "metadata": { "name": "pv0" },
            "spec": { "claimRef": { "namespace": "default", "name": "old", "uid": "c0" },
                "csi": { "driver": driver, "volumeHandle": "h0" } },
        })
    };
    for (old, volume, patch, expected) in [
        (None, volume(DRIVER), json!({}), "persistentvolumeclaims \"old\" not found"),
        (Some(old("Pending")), volume(DRIVER), json!({}), "must be bound to a PersistentVolume, and is Pending"),
        (Some(old("Bound")), volume("x"), json!({}), "is not of driver local.corten.dev"),
        (
            Some(old("Bound")),
            volume(DRIVER),
            json!({ "spec": { "volumeMode": "Block" } }),
            "must have the same volume mode",
        ),
        (
            Some(old("Bound")),
            volume(DRIVER),
            json!({ "spec": { "resources": { "requests": { "storage": "1Mi" } } } }),
            "requested 1048576 but source is 1073741824",
        ),
        (
            Some(old("Bound")),
            volume(DRIVER),
            json!({ "spec": { "dataSourceRef": { "namespace": "other" } } }),
            "is in another namespace",
        ),
        (Some(old("Bound")), volume(DRIVER), json!({}), "provision pvc-c1 1073741824 false of Volume(\"h0\")"),
    ] {
        let mut world = synced();
        world.volume(volume);
        old.into_iter().for_each(|it| drop(world.claim(it)));
        let told = world.claim(of(patch)).join("\n");
        assert!(told.contains(expected), "{expected}: {told}");
    }
}

#[test]
fn what_a_populator_makes_is_left_to_it() {
    let mut world = synced();
    let mut claim = selected();
    let source = json!({ "apiGroup": "hello.example.com", "kind": "Hello", "name": "world" });
    merge(&mut claim, json!({ "spec": { "dataSourceRef": source } }));
    let told = "Normal Provisioning: Assuming an external populator will provision the volume";
    assert_eq!(world.claim(claim.clone()), [told]);
    assert!(world.claim(claim).is_empty(), "it is told once");
    assert!(world.wait(10).is_empty());
}
