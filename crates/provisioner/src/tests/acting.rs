//! Claims of a driver of others whose selected node, or whose source, is not where this node is.

use super::*;
use crate::CsiDriverSettings;

const LEADS: &str = "corten-csi-sample";

fn zone(of: &str) -> crate::Topology {
    [("zone".to_owned(), of.to_owned())].into()
}

/// This node is in zone a, n3 and n4 as well, n2 in zone b.
fn world(is_placed: bool, held: &[String]) -> World {
    let mut world = World::new();
    for (mode, name) in [("WaitForFirstConsumer", "waits"), ("Immediate", "sample")] {
        let class = json!({ "metadata": { "name": name }, "provisioner": "sample", "volumeBindingMode": mode });
        world.tell(Event::Class(Arc::new(serde_json::from_value(class).expect("a class"))));
    }
    for (node, of) in [("n1", "a"), ("n2", "b"), ("n3", "a"), ("n4", "a")] {
        world.tell(Event::Node(node.into(), zone(of)));
    }
    world.add_driver(|it| {
        (it.clones, it.snapshots) = (true, true);
        if is_placed {
            it.topology = zone("a");
        }
    });
    world.tell(Event::Leads(held.iter().cloned().collect()));
    world
}

fn of_place(of: &str) -> String {
    crate::leases::of_place("sample", &zone(of))
}

fn waiting(node: &str) -> Value {
    json!({
        "metadata": { "annotations": {
            "volume.kubernetes.io/storage-provisioner": "sample", "volume.kubernetes.io/selected-node": node,
        } },
        "spec": { "storageClassName": "waits" },
    })
}

fn seen(of: &str, result: Result<bool, Failure>) -> Event {
    Event::Done(Outcome::LeaseSeen { claim: Key::new("default", "data"), lease: of_place(of), result })
}

#[test]
fn who_holds_the_lease_makes_the_volume_wherever_its_pod_goes() {
    for (is_placed, held, node, is_made) in [
        (false, vec![LEADS.to_owned()], "n1", true),
        (false, vec![LEADS.to_owned()], "n4", true),
        (false, vec![], "n1", false),
        (true, vec![of_place("a")], "n1", true),
        (true, vec![of_place("a")], "n4", true),
        (true, vec![of_place("a")], "n2", false),
        (true, vec![LEADS.to_owned()], "n4", false),
        (true, vec![LEADS.to_owned(), of_place("a")], "n2", false),
    ] {
        let told = world(is_placed, &held).claim(waiting(node));
        assert_eq!(told.iter().any(|it| it.starts_with("provision ")), is_made, "{held:?} {node}: {told:?}");
    }
}

#[test]
fn that_nobody_acts_in_the_selected_nodes_place_is_told() {
    let mut world = world(true, &[LEADS.to_owned(), of_place("a")]);
    assert_eq!(world.claim(waiting("n2")), [""; 0], "they elect who acts there");
    assert_eq!(world.wait(10), [""; 0]);
    let look = format!("look at {} for default/data", of_place("b"));
    assert_eq!(world.wait(10), [look.as_str()]);
    assert_eq!(world.tell(seen("b", Ok(true))), [""; 0], "who holds it acts");
    assert_eq!(world.wait(10), [look.as_str()]);
    let why = "Warning ProvisioningFailed: failed to provision volume with StorageClass \"waits\": no node acts for sample in \
               the place of node n2 (zone=b): of joined nodes those may that csidriver/sample names in its annotation \
               csi.corten.dev/controller-nodes";
    assert_eq!(world.tell(seen("b", Ok(false))), [why]);
    assert_eq!(world.wait(60), [look.as_str()], "it is looked at again");
    // Whom the CSIDriver names says who could act, if there were such nodes.
    for (named, more) in [("n2, n3", ""), ("*", ""), ("n2,n7, n8", "; there is no node n7, n8")] {
        let settings = CsiDriverSettings { controller_nodes: named.into(), ..CsiDriverSettings::default() };
        world.tell(Event::CsiDriver("sample".into(), settings));
        assert_eq!(world.tell(seen("b", Ok(false))), [format!("{why}{more}")], "{named}");
        world.wait(300);
    }
}

/// A content that is to be taken, or one that is to be removed after its volume went.
fn content(patch: Value) -> Event {
    let mut content = json!({
        "metadata": { "name": "c", "uid": "k1" },
        "spec": {
            "driver": "sample", "deletionPolicy": "Delete", "source": { "volumeHandle": "h0" },
            "volumeSnapshotRef": { "namespace": "default", "name": "s", "uid": "u1" },
        },
    });
    merge(&mut content, patch);
    Event::Content(Arc::new(serde_json::from_value(content).expect("a content")))
}

fn volume_in(of: &str) -> Value {
    let required = json!([{ "matchExpressions": [{ "key": "zone", "operator": "In", "values": [of] }] }]);
    json!({
        "metadata": { "name": "pv0" },
        "spec": {
            "claimRef": { "namespace": "default", "name": "old", "uid": "c0" },
            "csi": { "driver": "sample", "volumeHandle": "h0" },
            "nodeAffinity": { "required": { "nodeSelectorTerms": required } },
        },
    })
}

#[test]
fn who_acts_in_the_volumes_place_takes_its_snapshots_whatever_node_is_named() {
    let managed = "snapshot.storage.kubernetes.io/managed-by";
    for label in [json!({}), json!({ managed: "n3" }), json!({ managed: "n2" })] {
        for (zone, is_taken) in [("a", true), ("b", false)] {
            let mut world = world(true, &[of_place("a")]);
            world.volume(volume_in(zone));
            let told = world.tell(content(json!({ "metadata": { "labels": label } })));
            assert_eq!(!told.is_empty(), is_taken, "{zone} {label}: {told:?}");
        }
    }
}

#[test]
fn a_snapshot_whose_volume_is_gone_is_removed_where_it_was_taken() {
    for (zone, is_removed) in [("a", true), ("b", false)] {
        let group = "snapshot.storage.kubernetes.io";
        let meta = json!({
            "deletionTimestamp": "2026-11-20T11:00:00Z",
            "finalizers": [format!("{group}/volumesnapshotcontent-bound-protection")],
            "annotations": {
                format!("{group}/volumesnapshot-being-deleted"): "yes",
                "csi.corten.dev/topology": json!({ "zone": zone }).to_string(),
            },
        });
        let told = world(true, &[of_place("a")]).tell(content(json!({ "metadata": meta })));
        assert_eq!(told.len(), usize::from(is_removed), "{zone}: {told:?}");
    }
}

#[test]
fn a_snapshot_is_restored_on_any_node_of_its_place() {
    for (zone, expected) in
        [("a", "provision pvc-c1 1073741824 false of Snapshot(\"h1\")"), ("b", "reschedule default/data")]
    {
        let mut world = world(true, &[of_place("a")]);
        let meta = json!({ "labels": { "snapshot.storage.kubernetes.io/managed-by": "n3" },
            "annotations": { "csi.corten.dev/topology": json!({ "zone": zone }).to_string() } });
        let status = json!({ "snapshotHandle": "h1", "readyToUse": true });
        world.tell(content(json!({ "metadata": meta, "status": status })));
        world.tell(Event::Snapshot(Arc::new(snapshot())));
        let mut claim = waiting("n4");
        merge(&mut claim, restored());
        let told = world.claim(claim);
        assert_eq!(told.last().map(String::as_str), Some(expected), "{told:?}");
    }
}

fn snapshot() -> corten_api::snapshots::VolumeSnapshot {
    let status = json!({ "boundVolumeSnapshotContentName": "c", "readyToUse": true });
    let meta = json!({ "name": "s", "namespace": "default", "uid": "u1" });
    serde_json::from_value(json!({ "metadata": meta, "spec": { "source": {} }, "status": status })).expect("a snapshot")
}

fn restored() -> Value {
    let source = json!({ "apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s" });
    json!({ "spec": { "dataSourceRef": source } })
}

/// A claim of a class that binds at once, that begins with what is in this zone.
fn of_zone(world: &mut World, zone: &str, kind: &str) -> Vec<String> {
    world.volume(volume_in(zone));
    let status = json!({ "snapshotHandle": "h1", "readyToUse": true });
    world.tell(content(json!({ "status": status })));
    world.tell(Event::Snapshot(Arc::new(snapshot())));
    world.claim(json!({
        "metadata": { "name": "old", "uid": "c0", "finalizers": ["provisioner.storage.kubernetes.io/cloning-protection"] },
        "spec": { "volumeName": "pv0" },
        "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } },
    }));
    let source = match kind {
        "snapshot" => restored(),
        _ => json!({ "spec": { "dataSourceRef": { "kind": "PersistentVolumeClaim", "name": "old" } } }),
    };
    let mut claim = json!({
        "metadata": { "annotations": { "volume.kubernetes.io/storage-provisioner": "sample" } },
        "spec": { "storageClassName": "sample" },
    });
    merge(&mut claim, source);
    world.claim(claim)
}

#[test]
fn what_begins_with_another_is_made_where_that_is() {
    let both = [LEADS.to_owned(), of_place("a")];
    for kind in ["snapshot", "clone"] {
        for (held, zone, is_made) in [
            (&both[1..], "a", true),
            (&both[1..], "b", false),
            (&both[..1], "a", false),
            (&both[..], "b", false),
            (&both[..], "a", true),
        ] {
            let told = of_zone(&mut world(true, held), zone, kind);
            let made = told.iter().any(|it| it.starts_with("provision "));
            assert_eq!(made, is_made, "{kind} {held:?} {zone}: {told:?}");
        }
    }
}

#[test]
fn where_nobody_acts_in_the_sources_place_the_driver_is_asked_by_who_leads() {
    for (kind, source) in [("snapshot", "Snapshot(\"h1\")"), ("clone", "Volume(\"h0\")")] {
        let mut world = world(true, &[LEADS.to_owned(), of_place("a")]);
        assert_eq!(of_zone(&mut world, "b", kind), [""; 0], "they elect who acts there");
        let look = format!("look at {} for default/data", of_place("b"));
        assert_eq!(world.wait(20), [look.as_str()]);
        let made = format!("provision pvc-c1 1073741824 false of {source}");
        assert_eq!(world.tell(seen("b", Ok(false))).last(), Some(&made));
        let (claim, volume) = (Key::new("default", "data"), "pvc-c1".to_owned());
        let result = Err(failure("rpc error: code = NotFound desc = it is not here", false));
        let told = world.tell(Event::Done(Outcome::Provisioned { claim, volume, driver: "sample".into(), result }));
        assert!(told[0].contains("ProvisioningFailed") && told[0].contains("it is not here"), "{told:?}");
        assert_eq!(world.wait(20), [look], "somebody may act there by then");
    }
}

#[test]
fn a_clone_is_looked_at_when_it_is_known_where_its_source_is() {
    let mut world = world(true, &[of_place("a")]);
    let claim = json!({
        "metadata": { "annotations": { "volume.kubernetes.io/storage-provisioner": "sample" } },
        "spec": { "storageClassName": "sample", "dataSourceRef": { "kind": "PersistentVolumeClaim", "name": "old" } },
    });
    assert_eq!(world.claim(claim), [""; 0], "who leads says what is missing");
    world.volume(volume_in("a"));
    let told = world.claim(json!({
        "metadata": { "name": "old", "uid": "c0", "finalizers": ["provisioner.storage.kubernetes.io/cloning-protection"] },
        "spec": { "volumeName": "pv0" },
        "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } },
    }));
    assert!(told.iter().any(|it| it.starts_with("provision pvc-c1 ")), "{told:?}");
}

#[test]
fn a_node_that_does_not_say_where_it_is_is_told_of() {
    let mut world = world(true, &[LEADS.to_owned(), of_place("a")]);
    world.tell(Event::Node("n5".into(), crate::Topology::new()));
    let told = world.claim(waiting("n5")).join(" ");
    assert!(told.contains("ProvisioningFailed") && told.contains("node n5 has no label zone"), "{told}");
    let told = world.tell(Event::Node("n5".into(), zone("a")));
    assert!(told.iter().any(|it| it.starts_with("provision ")), "now it does: {told:?}");
}
