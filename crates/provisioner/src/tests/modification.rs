//! Claims that ask for another VolumeAttributesClass.

use serde_json::{Value, json};

use super::*;
use crate::FailureKind;

fn world() -> World {
    let mut world = World::new();
    world.add_driver(|it| it.modifies = true);
    world.attributes_class("fast", "sample");
    world.volume(json!({
        "metadata": { "name": "pv1" },
        "spec": {
            "capacity": { "storage": "1Gi" },
            "csi": { "driver": "sample", "volumeHandle": "h1" },
            "claimRef": { "namespace": "default", "name": "data" },
        },
    }));
    world
}

impl World {
    fn attributes_class(&mut self, name: &str, driver: &str) -> Vec<String> {
        let class = json!({ "metadata": { "name": name }, "driverName": driver, "parameters": { "iops": "9" } });
        self.tell(Event::AttributesClass(Arc::new(serde_json::from_value(class).expect("a class"))))
    }

    fn bound(&mut self, class: &str, status: Value) -> Vec<String> {
        let mut patch = json!({
            "spec": { "volumeName": "pv1", "volumeAttributesClassName": class },
            "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } },
        });
        merge(&mut patch["status"], status);
        self.claim(patch)
    }
}

fn modified(class: &str, result: Result<(), FailureKind>) -> Event {
    let result = result.map_err(|kind| Failure { message: "no".into(), kind, ..Failure::default() });
    let (claim, driver) = (Key::new("default", "data"), "sample".into());
    Event::Done(Outcome::Modified { claim, class: class.into(), driver, result })
}

fn under_way(said: &str, target: &str) -> Value {
    json!({ "modifyVolumeStatus": { "status": said, "targetVolumeAttributesClassName": target } })
}

const FAST: &str = r#"modify h1 fast {"iops": "9"}"#;

#[test]
fn a_volume_is_changed_once() {
    let mut world = world();
    assert_eq!(
        world.bound("fast", json!({})),
        ["Normal VolumeModify: external resizer is modifying volume data with vac fast", FAST]
    );
    assert_eq!(
        world.tell(modified("fast", Ok(()))),
        ["Normal VolumeModifySuccessful: external resizer modified volume data with vac fast successfully"]
    );
    assert!(world.bound("fast", json!({ "currentVolumeAttributesClassName": "fast" })).is_empty());
}

#[test]
fn the_driver_is_told_the_volumes_secret_for_it() {
    let mut world = world();
    world.volume(json!({
        "metadata": { "name": "pv1", "annotations": {
            "volume.kubernetes.io/controller-modify-secret-name": "s",
            "volume.kubernetes.io/controller-modify-secret-namespace": "x",
        } },
        "spec": {
            "capacity": { "storage": "1Gi" },
            "csi": { "driver": "sample", "volumeHandle": "h1" },
            "claimRef": { "namespace": "default", "name": "data" },
        },
    }));
    assert_eq!(world.bound("fast", json!({})).last(), Some(&format!("{FAST} with x/s")));
}

#[test]
fn a_class_that_is_missing_is_waited_for() {
    let mut world = world();
    let pending = r#"status {"modifyVolumeStatus":{"status":"Pending"}}"#;
    assert_eq!(world.bound("later", json!({})), ["Warning VolumeModifyFailed: VAC later does not exist.", pending]);
    let claim = Key::new("default", "data");
    world.tell(Event::Done(Outcome::StatusWritten { claim, result: Ok(()) }));
    assert!(world.bound("later", json!({ "modifyVolumeStatus": { "status": "Pending" } })).is_empty());
    assert!(world.attributes_class("later", "other").is_empty(), "another driver's");
    assert_eq!(
        world.attributes_class("later", "sample").last().map(String::as_str),
        Some(r#"modify h1 later {"iops": "9"}"#)
    );
}

#[test]
fn what_is_infeasible_is_asked_once_more_and_not_soon_and_may_be_taken_back() {
    let mut world = world();
    world.bound("fast", json!({}));
    assert_eq!(world.tell(modified("fast", Err(FailureKind::Infeasible))), ["Warning VolumeModifyFailed: no"]);
    assert!(world.bound("fast", under_way("Infeasible", "fast")).is_empty());
    assert!(world.wait(200).is_empty());
    assert!(world.wait(101).last().is_some_and(|it| it == FAST));
    world.tell(modified("fast", Err(FailureKind::Infeasible)));
    // To what it has: the driver did nothing, and is asked nothing.
    let settled = world.bound("", under_way("Infeasible", "fast"));
    let expected = r#"status {"currentVolumeAttributesClassName":null,"modifyVolumeStatus":null,"conditions":[]}"#;
    assert_eq!(settled, [expected]);
}

#[test]
fn a_change_that_may_be_under_way_is_finished_first() {
    let mut world = world();
    world.attributes_class("slow", "sample");
    world.bound("fast", json!({}));
    world.tell(modified("fast", Err(FailureKind::Open)));
    // The claim asks for another one meanwhile.
    assert_eq!(world.bound("slow", under_way("InProgress", "fast")), [FAST]);
    // It was not done, for certain: now the other one is.
    world.tell(modified("fast", Err(FailureKind::Refused)));
    assert_eq!(world.wait(300), [r#"modify h1 slow {"iops": "9"}"#]);
}

#[test]
fn a_volume_is_made_as_its_class_says() {
    let mut world = World::new();
    world.add_driver(|it| it.modifies = true);
    let class = json!({ "metadata": { "name": "sample" }, "provisioner": "sample" });
    world.tell(Event::Class(Arc::new(serde_json::from_value(class).expect("a class"))));
    let claim = json!({
        "metadata": { "annotations": { "volume.kubernetes.io/storage-provisioner": "sample" } },
        "spec": { "storageClassName": "sample", "volumeAttributesClassName": "fast" },
    });
    let failed = world.claim(claim.clone());
    assert!(failed[1].contains(r#"volumeattributesclass.storage.k8s.io "fast" not found"#), "{failed:?}");
    world.attributes_class("fast", "sample");
    assert!(world.wait(2).iter().any(|it| it.starts_with("provision pvc-c1")));
}
