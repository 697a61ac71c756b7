//! Volumes that grow or get another VolumeAttributesClass.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_volume_is_changed_as_another_class_says_with_the_drivers_words_before() {
    let world = World::new();
    let class = json!({ "metadata": { "name": "fast" }, "driverName": DRIVER, "parameters": { "iops": "9" } });
    world.api.put("/apis/storage.k8s.io/v1/volumeattributesclasses/fast", class);
    let csi = json!({ "driver": DRIVER, "volumeHandle": "h1" });
    let spec = json!({ "capacity": { "storage": "1Gi" }, "csi": csi });
    let annotations = json!({ "volume.kubernetes.io/controller-modify-secret-name": "login",
        "volume.kubernetes.io/controller-modify-secret-namespace": "storage" });
    let metadata = json!({ "name": "pv1", "annotations": annotations });
    world.api.put(&format!("{VOLUMES}/pv1"), json!({ "metadata": metadata, "spec": spec }));
    world.api.put("/api/v1/namespaces/storage/secrets/login", json!({ "data": { "user": "YQ==" } }));
    *world.hands.refusal.lock() = Some(refusal("too busy", FailureKind::Open));
    let path = format!("{CLAIMS}/data");
    let mut bound = claim(&json!({ "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } } }));
    bound["spec"]["volumeName"] = "pv1".into();
    bound["spec"]["volumeAttributesClassName"] = "fast".into();
    world.api.put(&path, bound);
    let status = |api: &FakeApi| api.object(&path).map(|it| it["status"].clone()).unwrap_or_default();
    world.until("refused", |api| status(api)["conditions"][0]["type"] == "ModifyVolumeError").await;
    let told = status(&world.api);
    assert_eq!(
        told["modifyVolumeStatus"],
        json!({ "status": "InProgress", "targetVolumeAttributesClassName": "fast" })
    );
    let words = "ModifyVolume failed with error: too busy. Waiting for retry.";
    assert_eq!(told["conditions"][0]["message"], words);
    world.until("changed", |api| status(api)["currentVolumeAttributesClassName"] == "fast").await;
    let told = status(&world.api);
    assert!(told["modifyVolumeStatus"].is_null() && told["conditions"] == json!([]), "{told}");
    let volume = world.api.object(&format!("{VOLUMES}/pv1")).expect("there");
    assert_eq!(volume["spec"]["volumeAttributesClassName"], "fast");
    let asked = world.hands.asked.lock().iter().filter(|it| *it == r#"modify h1 {"iops": "9"} {"user"}"#).count();
    assert_eq!(asked, 2);
}

/// Drivers make volumes larger than they are asked to, and what was larger before is not made smaller.
#[tokio::test(start_paused = true)]
async fn a_volume_that_was_grown_is_as_large_as_its_driver_says() {
    for (grown, volume_has, expected, is_patched) in [
        (0, "1Gi", "2Gi", true),
        (3 << 30, "1Gi", "3Gi", true),
        (1 << 30, "1Gi", "2Gi", true),
        (0, "4Gi", "4Gi", false),
    ] {
        let world = World::new();
        *world.hands.grown.lock() = grown;
        let csi = json!({ "driver": DRIVER, "volumeHandle": "h1" });
        let volume = format!("{VOLUMES}/pv1");
        let spec = json!({ "capacity": { "storage": volume_has }, "csi": csi });
        world.api.put(&volume, json!({ "metadata": { "name": "pv1" }, "spec": spec }));
        let path = format!("{CLAIMS}/data");
        let mut bound = claim(&json!({ "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } } }));
        bound["spec"]["volumeName"] = "pv1".into();
        bound["spec"]["resources"]["requests"]["storage"] = "2Gi".into();
        world.api.put(&path, bound);
        let capacity = |api: &FakeApi, path: &str, of: &str| {
            api.object(path).map(|it| it[of]["capacity"]["storage"].clone()).unwrap_or_default()
        };
        world.until("grown", |api| capacity(api, &path, "status") == expected).await;
        assert_eq!(capacity(&world.api, &volume, "spec"), expected);
        assert_eq!(world.api.writes().contains(&format!("PATCH {volume}")), is_patched);
    }
}

#[tokio::test(start_paused = true)]
async fn what_others_say_of_a_claim_while_its_volume_grows_stays() {
    let world = World::new();
    *world.hands.is_growing.lock() = true;
    let csi = json!({ "driver": DRIVER, "volumeHandle": "h1" });
    let spec = json!({ "capacity": { "storage": "1Gi" }, "csi": csi });
    world.api.put(&format!("{VOLUMES}/pv1"), json!({ "metadata": { "name": "pv1" }, "spec": spec }));
    let path = format!("{CLAIMS}/data");
    let moving = json!({ "type": "VolumeMoving", "status": "True" });
    let status = json!({ "phase": "Bound", "capacity": { "storage": "1Gi" }, "conditions": [moving] });
    let mut bound = claim(&json!({ "status": status }));
    bound["spec"]["volumeName"] = "pv1".into();
    bound["spec"]["resources"]["requests"]["storage"] = "2Gi".into();
    world.api.put(&path, bound);
    let conditions = |api: &FakeApi| -> Vec<String> {
        let status = api.object(&path).expect("there")["status"].clone();
        let all = status["conditions"].as_array().cloned().unwrap_or_default();
        all.iter().map(|it| it["type"].as_str().unwrap_or_default().to_owned()).collect()
    };
    world.until("asked", |_| world.hands.asked.lock().iter().any(|it| it.starts_with("expand"))).await;
    assert_eq!(conditions(&world.api), ["VolumeMoving", "Resizing"]);
    let mut moved = world.api.object(&path).expect("there");
    moved["status"]["conditions"] = json!([{ "type": "Unused", "status": "True" }, moved["status"]["conditions"][1]]);
    world.api.put(&path, moved);
    *world.hands.is_growing.lock() = false;
    let has = |api: &FakeApi| api.object(&path).expect("there")["status"]["capacity"]["storage"].clone();
    world.until("grown", |api| has(api) == "2Gi").await;
    assert_eq!(conditions(&world.api), ["Unused"], "one is over, and one is new");
}
