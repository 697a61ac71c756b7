//! What drivers are asked for, and what the PersistentVolume says of it.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::{Created, Request};

fn asked(class: Value, patch: Value) -> Result<(Request, Value), String> {
    let facts = DriverFacts { name: "sample".into(), ..DriverFacts::default() };
    asked_of(&facts, class, patch)
}

fn asked_of(facts: &DriverFacts, class: Value, patch: Value) -> Result<(Request, Value), String> {
    let mut with = json!({ "metadata": { "name": "sample" }, "provisioner": "sample" });
    merge(&mut with, class);
    let class: corten_api::storage::v1::StorageClass = serde_json::from_value(with).expect("a class");
    let claim = serde_json::from_value(claim(patch)).expect("a claim");
    let request = crate::provision::request(&claim, &class, facts, Vec::new(), None, None)?;
    let created = Created { handle: "h1".into(), ..Created::default() };
    let volume = crate::volume_object(&claim, &class, &request, &created);
    Ok((request, volume["spec"]["csi"].clone()))
}

/// As external-provisioner without `--default-fstype`.
#[test]
fn a_driver_is_told_the_file_system_that_its_class_names_and_no_other() {
    let bare = json!({ "fsType": "xfs", "x": "y" });
    for (parameters, expected, told) in [
        (json!({}), Value::Null, json!({})),
        (json!({ "csi.storage.k8s.io/fstype": "xfs" }), json!("xfs"), json!({})),
        (json!({ "csi.storage.k8s.io/fstype": "" }), Value::Null, json!({})),
        (bare.clone(), json!("xfs"), bare),
        (json!({ "FSTYPE": "ext3" }), json!("ext3"), json!({ "FSTYPE": "ext3" })),
    ] {
        let class = json!({ "parameters": parameters });
        let (request, csi) = asked(class.clone(), json!({})).expect("asked");
        assert_eq!(csi["fsType"], expected, "{parameters}");
        assert_eq!(request.fs_type, expected.as_str().unwrap_or_default(), "{parameters}");
        let told: BTreeMap<String, String> = serde_json::from_value(told).expect("parameters");
        assert_eq!(request.parameters, told);
        let (_, csi) = asked(class, json!({ "spec": { "volumeMode": "Block" } })).expect("asked");
        assert_eq!(csi["fsType"], Value::Null, "a disk has none");
    }
    let twice = json!({ "parameters": { "csi.storage.k8s.io/fstype": "xfs", "fsType": "xfs" } });
    let why = asked(twice, json!({})).expect_err("which of both");
    assert!(why.contains("fstype specified in parameters with both"), "{why}");
}

#[test]
fn a_driver_that_is_not_everywhere_is_asked_once_all_places_are_known() {
    let mut world = World::new();
    let place = |it: &str| [("zone".to_owned(), it.to_owned())].into();
    let facts = DriverFacts {
        name: "sample".into(),
        provisions: true,
        socket: Some("/x/csi.sock".into()),
        topology: place("b"),
        ..DriverFacts::default()
    };
    let class = json!({ "metadata": { "name": "sample" }, "provisioner": "sample" });
    world.tell(Event::Class(Arc::new(serde_json::from_value(class).expect("a class"))));
    world.tell(Event::Drivers(vec![facts]));
    world.tell(Event::Leads([crate::leases::of_place("sample", &place("b"))].into()));
    world.tell(Event::PodsSynced);
    world.tell(Event::Synced);
    let mut patch = selected();
    merge(&mut patch, json!({ "spec": { "storageClassName": "sample" } }));
    merge(
        &mut patch,
        json!({ "metadata": { "annotations": { "volume.kubernetes.io/storage-provisioner": "sample" } } }),
    );
    assert_eq!(world.claim(patch), [""; 0]);
    for (node, zone) in [("n1", "b"), ("n2", "a"), ("n3", "c")] {
        world.tell(Event::Node(node.into(), place(zone)));
    }
    world.tell(Event::NodeGone("n3".into()));
    let effects = world.provisioner.step(Event::NodesSynced, world.now);
    let asked = effects.iter().find_map(|it| match it {
        Effect::Do(job) => match &**job {
            Job::Provision { request, .. } => Some(request.topologies.clone()),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(asked, Some(vec![place("b"), place("a")]));
}

/// As external-provisioner: the driver is told at each use, and may say it itself.
#[test]
fn a_volume_says_who_has_made_it() {
    let mut world = World::new();
    world.add_driver(|_| {});
    let class = json!({ "metadata": { "name": "sample" }, "provisioner": "sample" });
    let class: corten_api::storage::v1::StorageClass = serde_json::from_value(class).expect("a class");
    world.tell(Event::Class(Arc::new(class.clone())));
    let of_sample = claim(json!({
        "metadata": { "annotations": { "volume.kubernetes.io/storage-provisioner": "sample" } },
        "spec": { "storageClassName": "sample" },
    }));
    let claim: corten_api::core::v1::PersistentVolumeClaim = serde_json::from_value(of_sample).expect("a claim");
    let effects = world.provisioner.step(Event::Claim(Arc::new(claim.clone())), world.now);
    let request = effects.iter().find_map(|it| match it {
        Effect::Do(job) => match &**job {
            Job::Provision { request, .. } => Some(request.clone()),
            _ => None,
        },
        _ => None,
    });
    let request = request.expect("asked for");
    let attributes = |context: &[(&str, &str)]| {
        let context = context.iter().map(|it| (it.0.to_owned(), it.1.to_owned())).collect();
        let created = Created { handle: "h1".into(), context, ..Created::default() };
        crate::volume_object(&claim, &class, &request, &created)["spec"]["csi"]["volumeAttributes"].clone()
    };
    let identity = "storage.kubernetes.io/csiProvisionerIdentity";
    assert_eq!(attributes(&[("a", "b")]), json!({ "a": "b", identity: "1700-4-sample-n1" }));
    assert_eq!(attributes(&[(identity, "own")]), json!({ identity: "own" }));
}

#[test]
fn a_volume_that_is_for_readers_alone_is_read_only_where_the_driver_attaches_it_so() {
    for (attaches_read_only, modes, expected) in [
        (true, json!(["ReadOnlyMany"]), json!(true)),
        (false, json!(["ReadOnlyMany"]), Value::Null),
        (true, json!(["ReadOnlyMany", "ReadWriteOnce"]), Value::Null),
        (true, json!(["ReadWriteOnce"]), Value::Null),
    ] {
        let facts = DriverFacts { name: "sample".into(), attaches_read_only, ..DriverFacts::default() };
        let patch = json!({ "spec": { "accessModes": modes } });
        let (_, csi) = asked_of(&facts, json!({}), patch).expect("asked");
        assert_eq!(csi["readOnly"], expected, "{attaches_read_only} {modes}");
    }
}
