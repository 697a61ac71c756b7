//! Claims of a driver of others whose selected node, or whose source, is not where this node is.

use super::*;

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
    assert_eq!(world.wait(60), [look], "it is looked at again");
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
