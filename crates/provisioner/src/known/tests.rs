//! Which nodes changes affect, told as objects.

use serde_json::{Value, json};

use super::*;

const DRIVER: &str = "local.corten.dev";

macro_rules! read {
    ($object:expr) => {
        Arc::new(serde_json::from_value($object).expect("an object"))
    };
}

fn class(name: &str, mode: &str) -> Event {
    Event::Class(read!(json!({ "metadata": { "name": name }, "provisioner": DRIVER, "volumeBindingMode": mode })))
}

fn claim(name: &str, selected: Option<&str>, spec: &Value) -> Event {
    let mut annotations = json!({ "volume.kubernetes.io/storage-provisioner": DRIVER });
    if let Some(node) = selected {
        annotations[SELECTED_NODE] = node.into();
    }
    let meta = json!({ "name": name, "namespace": "default", "uid": name, "annotations": annotations });
    Event::Claim(read!(json!({ "metadata": meta, "spec": spec })))
}

fn volume(name: &str, driver: &str, node: Option<&str>, claim: &str) -> Event {
    let on = |node: &str| json!([{ "matchExpressions": [{ "key": HOSTNAME, "operator": "In", "values": [node] }] }]);
    let affinity = node.map(|it| json!({ "required": { "nodeSelectorTerms": on(it) } }));
    let of = json!({ "namespace": "default", "name": claim });
    let spec = json!({ "csi": { "driver": driver, "volumeHandle": name }, "claimRef": of, "nodeAffinity": affinity });
    Event::Volume(read!(json!({ "metadata": { "name": name }, "spec": spec })))
}

fn nodes(nodes: &[&str]) -> AffectedNodes {
    AffectedNodes::Nodes(nodes.iter().map(|it| (*it).to_owned()).collect())
}

fn known() -> Known {
    let mut known = Known::new(DRIVER);
    assert_eq!(known.take(&class("local", "WaitForFirstConsumer")), AffectedNodes::All);
    assert_eq!(known.take(&class("at-once", "Immediate")), AffectedNodes::All);
    known
}

#[test]
fn a_claim_is_for_the_node_that_was_selected_and_then_for_that_of_its_volume() {
    let mut known = known();
    let spec = json!({ "storageClassName": "local" });
    assert_eq!(known.take(&claim("data", None, &spec)), nodes(&[]), "the scheduler selects a node first");
    assert_eq!(known.take(&claim("data", Some("n2"), &spec)), nodes(&["n2"]));
    assert_eq!(known.take(&volume("pv", DRIVER, Some("n2"), "data")), nodes(&["n2"]));
    let bound = json!({ "storageClassName": "local", "volumeName": "pv" });
    assert_eq!(known.take(&claim("data", Some("n2"), &bound)), nodes(&["n2"]));
    // Moved.
    assert_eq!(known.take(&volume("pv", DRIVER, Some("n3"), "data")), nodes(&["n3"]));
    assert_eq!(known.take(&claim("data", Some("n2"), &bound)), nodes(&["n3"]));
    assert_eq!(known.take(&Event::VolumeGone("pv".into())), nodes(&["n3"]));
    assert_eq!(known.take(&Event::VolumeGone("pv".into())), nodes(&[]));
}

#[test]
fn what_no_node_is_named_for_is_everybodys_and_what_is_of_another_driver_nobodys() {
    let mut known = known();
    assert_eq!(known.take(&claim("now", None, &json!({ "storageClassName": "at-once" }))), AffectedNodes::All);
    assert_eq!(known.take(&claim("odd", None, &json!({ "storageClassName": "unknown" }))), AffectedNodes::All);
    assert_eq!(known.take(&volume("free", DRIVER, None, "x")), AffectedNodes::All);
    assert_eq!(known.take(&volume("theirs", "csi.example", None, "x")), nodes(&[]));
    let other = json!({ "metadata": { "name": "other" }, "provisioner": "csi.example" });
    assert_eq!(known.take(&Event::Class(read!(other))), nodes(&[]));
    assert_eq!(known.take(&Event::Synced), AffectedNodes::All);
}

#[test]
fn a_volume_that_goes_has_its_claim_given_another_one() {
    let mut known = known();
    known.take(&claim("data", Some("n4"), &json!({ "storageClassName": "local" })));
    known.take(&volume("pv", "csi.example", None, "data"));
    assert_eq!(known.take(&Event::VolumeGone("pv".into())), nodes(&["n4"]));
}

#[test]
fn an_attachment_is_for_the_node_of_its_volume() {
    let mut known = known();
    known.take(&volume("pv", DRIVER, Some("n2"), "data"));
    let attachment = json!({ "metadata": { "name": "a" },
        "spec": { "attacher": DRIVER, "nodeName": "n9", "source": { "persistentVolumeName": "pv" } } });
    assert_eq!(known.take(&Event::Attachment(read!(attachment))), nodes(&["n2"]));
    assert_eq!(known.take(&Event::AttachmentGone("a".into())), nodes(&["n2"]));
}

#[test]
fn a_snapshot_is_for_its_node_and_for_those_that_make_a_volume_of_it() {
    let mut known = known();
    let of = json!({ "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s" });
    known.take(&claim("restored", Some("n5"), &json!({ "storageClassName": "local", "dataSourceRef": of })));
    let snapshot = json!({ "metadata": { "name": "s", "namespace": "default" }, "spec": { "source": {} } });
    assert_eq!(known.take(&Event::Snapshot(read!(snapshot))), nodes(&["n5"]));
    let content = |labels: Value| {
        let of = json!({ "namespace": "default", "name": "s" });
        let spec = json!({ "driver": DRIVER, "deletionPolicy": "Delete", "source": {}, "volumeSnapshotRef": of });
        Event::Content(read!(json!({ "metadata": { "name": "c", "labels": labels }, "spec": spec })))
    };
    assert_eq!(known.take(&content(json!({ CONTENT_MANAGED_BY: "n2" }))), nodes(&["n2", "n5"]));
    assert_eq!(known.take(&content(json!({}))), AffectedNodes::All);
}

#[test]
fn a_loop_that_begins_is_told_all_there_is() {
    let mut known = known();
    known.take(&volume("pv", DRIVER, Some("n2"), "data"));
    known.take(&claim("data", None, &json!({ "storageClassName": "local", "volumeName": "pv" })));
    known.take(&claim("gone", None, &json!({ "storageClassName": "local" })));
    known.take(&Event::ClaimGone(Key::new("default", "gone")));
    assert_eq!(known.told().len(), 4);
    assert_eq!(known.take(&Event::CsiDriver("csi.example".into(), CsiDriverSettings::default())), nodes(&[]));
    known.take(&Event::CsiDriver("csi.gone".into(), CsiDriverSettings::default()));
    known.take(&Event::CsiDriverGone("csi.gone".into()));
    assert_eq!(known.told().last(), Some(&Event::CsiDriver("csi.example".into(), CsiDriverSettings::default())));
    known.take(&Event::Synced);
    assert_eq!(known.told().last(), Some(&Event::Synced));
}
