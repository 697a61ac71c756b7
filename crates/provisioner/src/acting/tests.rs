//! Who acts, as a table: for each cluster, who does what.

use serde_json::json;

use super::*;

/// A node: its zone as the driver's label has it (empty: none), and the Leases that it holds, `driver` or `place`.
type Node = (&'static str, &'static str, &'static [&'static str]);

fn zone(of: &str) -> Topology {
    if of.is_empty() { Topology::new() } else { [("zone".to_owned(), of.to_owned())].into() }
}

fn claim(selected: &str) -> PersistentVolumeClaim {
    let annotations = if selected.is_empty() { json!({}) } else { json!({ SELECTED_NODE: selected }) };
    serde_json::from_value(json!({ "metadata": { "annotations": annotations } })).expect("a claim")
}

fn volume(zone: &str) -> PersistentVolume {
    let expression = json!({ "key": "zone", "operator": "In", "values": [zone] });
    let affinity = json!({ "required": { "nodeSelectorTerms": [{ "matchExpressions": [expression] }] } });
    let affinity = if zone.is_empty() { json!(null) } else { affinity };
    serde_json::from_value(json!({ "metadata": { "name": "pv" }, "spec": { "nodeAffinity": affinity } }))
        .expect("a volume")
}

/// The nodes of the cluster for which this holds, each told what it knows.
fn those(is_built_in: bool, cluster: &[Node], holds: impl Fn(Acting<'_>, &DriverFacts) -> bool) -> String {
    let nodes = cluster.iter().map(|it| (it.0.to_owned(), zone(it.1))).collect();
    let is_it = |(node, place, held): &&Node| {
        let driver = DriverFacts {
            name: "d".into(),
            socket: (!is_built_in).then(|| "/s".into()),
            topology: zone(place),
            ..DriverFacts::default()
        };
        let lease = |it: &&str| match *it {
            "driver" => leases::of_driver("d"),
            _ => leases::of_place("d", &zone(place)),
        };
        let leases = held.iter().map(lease).collect();
        holds(Acting { node, leases: &leases, nodes: &nodes, volumes: &BTreeMap::new() }, &driver)
    };
    cluster.iter().filter(is_it).map(|it| it.0).collect::<Vec<_>>().join(" ")
}

const ONE_NODE: &[Node] = &[("n1", "", &["driver"])];
/// Which do not say where they are; those that do not act know nothing of the driver, or hold nothing.
const ONE_PLACE: &[Node] = &[("n2", "", &["driver"]), ("n3", "", &[]), ("n4", "", &[])];
const ONE_ZONE: &[Node] = &[("n2", "a", &["driver", "place"]), ("n3", "a", &[]), ("n4", "a", &[])];
const THREE_PLACES: &[Node] = &[("n1", "a", &["driver", "place"]), ("n2", "b", &["place"]), ("n3", "c", &["place"])];
/// No node may act in b.
const ONE_ACTS: &[Node] = &[("n1", "a", &["driver", "place"]), ("n2", "b", &[])];
/// Beside the control plane, and on a machine that has joined, whose CSIDriver says nothing.
const BESIDE: &[Node] = &[("n1", "", &["driver"]), ("joined", "", &[])];
const BUILT_IN: &[Node] = &[("n1", "a", &[]), ("n2", "b", &[])];

#[test]
fn who_makes_a_claims_volume() {
    for (cluster, selected, expected) in [
        (ONE_NODE, "", "n1"),
        (ONE_NODE, "n1", "n1"),
        (ONE_PLACE, "", "n2"),
        (ONE_PLACE, "n2", "n2"),
        (ONE_PLACE, "n4", "n2"),
        (ONE_ZONE, "", "n2"),
        (ONE_ZONE, "n4", "n2"),
        (THREE_PLACES, "", "n1"),
        (THREE_PLACES, "n1", "n1"),
        (THREE_PLACES, "n3", "n3"),
        (ONE_ACTS, "n1", "n1"),
        (ONE_ACTS, "n2", ""),
        (BESIDE, "", "n1"),
        (BESIDE, "joined", "n1"),
        (BUILT_IN, "", "n1 n2"),
        (BUILT_IN, "n2", "n2"),
        (BUILT_IN, "n9", ""),
    ] {
        let made = those(cluster == BUILT_IN, cluster, |acting, driver| {
            acting.of_claim(&claim(selected), None, driver).is_ok_and(|it| acting.is(&it, driver))
        });
        assert_eq!(made, expected, "{cluster:?} {selected}");
    }
}

#[test]
fn who_makes_a_volume_that_begins_with_another() {
    for (cluster, selected, source, expected) in [
        (ONE_NODE, "", "", "n1"),
        (ONE_PLACE, "", "", "n2"),
        (ONE_ZONE, "", "a", "n2"),
        (THREE_PLACES, "", "c", "n3"),
        (THREE_PLACES, "", "", "n1"),
        (THREE_PLACES, "n2", "c", "n2"),
        (ONE_ACTS, "", "b", ""),
        (BESIDE, "joined", "", "n1"),
        (BUILT_IN, "", "", "n1 n2"),
    ] {
        let made = those(cluster == BUILT_IN, cluster, |acting, driver| {
            let source = acting.place_of_volume(&volume(source), driver);
            acting.of_claim(&claim(selected), source, driver).is_ok_and(|it| acting.is(&it, driver))
        });
        assert_eq!(made, expected, "{cluster:?} {selected} {source}");
    }
}

fn content(topology: &str, label: &str) -> VolumeSnapshotContent {
    let labels = if label.is_empty() { json!({}) } else { json!({ CONTENT_MANAGED_BY: label }) };
    let annotations = match topology {
        "" => json!({}),
        zone => json!({ CONTENT_TOPOLOGY: json!({ "zone": zone, "rack": "7" }).to_string() }),
    };
    let source = json!({ "volumeHandle": "h" });
    let spec = json!({ "driver": "d", "deletionPolicy": "Delete", "source": source, "volumeSnapshotRef": {} });
    let meta = json!({ "name": "c", "labels": labels, "annotations": annotations });
    serde_json::from_value(json!({ "metadata": meta, "spec": spec })).expect("a content")
}

#[test]
fn who_takes_and_removes_a_snapshot() {
    for (cluster, of, label, expected) in [
        (ONE_NODE, "", "", "n1"),
        (ONE_NODE, "", "n1", "n1"),
        (ONE_PLACE, "", "", "n2"),
        (ONE_PLACE, "", "n3", "n2"),
        (ONE_ZONE, "a", "", "n2"),
        (ONE_ZONE, "", "n4", "n2"),
        (THREE_PLACES, "b", "", "n2"),
        (THREE_PLACES, "", "n3", "n3"),
        (THREE_PLACES, "", "", "n1"),
        (THREE_PLACES, "", "gone", "n1"),
        (ONE_ACTS, "b", "", ""),
        (BESIDE, "", "joined", "n1"),
        (BUILT_IN, "", "n2", "n2"),
        (BUILT_IN, "", "", "n1 n2"),
    ] {
        let content = content(of, label);
        let own = those(cluster == BUILT_IN, cluster, |acting, driver| {
            acting.is(&acting.of_content(&content, driver), driver)
        });
        assert_eq!(own, expected, "{cluster:?} {of} {label}");
    }
}

#[test]
fn where_a_volume_is() {
    let in_zones = |operator: &str, zones: &[&str]| {
        let expression = json!({ "key": "zone", "operator": operator, "values": zones });
        let terms = json!([{ "matchExpressions": [expression] }]);
        let spec = json!({ "nodeAffinity": { "required": { "nodeSelectorTerms": terms } } });
        serde_json::from_value(json!({ "metadata": { "name": "pv" }, "spec": spec })).expect("a volume")
    };
    for (volume, expected) in [
        (volume("b"), Some("b")),
        (volume(""), None),
        (in_zones("In", &["c", "b"]), Some("c")),
        (in_zones("NotIn", &["a"]), Some("b")),
        (in_zones("In", &["elsewhere"]), Some("elsewhere")),
    ] {
        let agreed =
            those(false, THREE_PLACES, |acting, driver| acting.place_of_volume(&volume, driver) == expected.map(zone));
        assert_eq!(agreed, "n1 n2 n3", "{expected:?}");
    }
}

#[test]
fn where_a_selected_node_is_must_be_known() {
    let unknown: &[Node] = &[("n1", "a", &["driver", "place"]), ("n2", "", &[])];
    for (selected, expected) in
        [("n2", "node n2 has no label zone, by which d says where it is"), ("n9", "node \"n9\" not found")]
    {
        let told = those(false, &unknown[..1], |_, driver| {
            let nodes = unknown.iter().map(|it| (it.0.to_owned(), zone(it.1))).collect();
            let acting = Acting { node: "n1", leases: &BTreeSet::new(), nodes: &nodes, volumes: &BTreeMap::new() };
            acting.of_claim(&claim(selected), None, driver) == Err(expected.to_owned())
        });
        assert_eq!(told, "n1", "{selected}");
    }
}

#[test]
fn who_removes_and_grows_a_volume() {
    for (cluster, of, expected) in [
        (ONE_NODE, "", "n1"),
        (ONE_PLACE, "", "n2"),
        (ONE_ZONE, "a", "n2"),
        (ONE_ZONE, "", "n2"),
        (THREE_PLACES, "b", "n2"),
        (THREE_PLACES, "", "n1"),
        (ONE_ACTS, "b", ""),
        (BESIDE, "", "n1"),
        (BUILT_IN, "b", "n2"),
    ] {
        let own = those(cluster == BUILT_IN, cluster, |acting, driver| acting.is_of_volume(&volume(of), driver));
        assert_eq!(own, expected, "{cluster:?} {of}");
    }
}
