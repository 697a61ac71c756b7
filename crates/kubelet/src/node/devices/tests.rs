//! Who gets which devices.

use corten_api::core::v1::Pod;
use serde_json::{Value, json};

use super::*;
use crate::{
    Granted, PluginDevice,
    node::topology::{HintProvider, Hints, Numa, TopologyHint},
};

const FAKE: &str = "example.com/fake";

fn resource(devices: &[(&str, bool, &[i64])]) -> DeviceResource {
    let one = |(id, is_healthy, numa): &(&str, bool, &[i64])| {
        ((*id).to_owned(), PluginDevice { is_healthy: *is_healthy, numa_nodes: numa.to_vec() })
    };
    DeviceResource { devices: devices.iter().map(one).collect(), is_connected: true }
}

fn with(devices: &[(&str, bool, &[i64])]) -> Devices {
    let mut it = Devices::default();
    it.take(DeviceNews { resources: [(FAKE.to_owned(), resource(devices))].into(), ..DeviceNews::default() });
    it
}

fn pod(init: Value, counts: &[i64]) -> Pod {
    let container = |(idx, count): (usize, &i64)| json!({"name": format!("c{idx}"), "resources": {"limits": {FAKE: count.to_string()}}});
    let containers: Vec<Value> = counts.iter().enumerate().map(container).collect();
    serde_json::from_value(json!({"spec": {"initContainers": init, "containers": containers}})).expect("a pod")
}

fn given(wish: &DeviceWish) -> AllocatedDevices {
    let (container, resource) = (wish.container.clone(), wish.resource.clone());
    AllocatedDevices { container, resource, ids: wish.ids.clone(), granted: Granted::default() }
}

/// Gives a pod all it asks for; says what each container got, or why it got nothing.
fn fill(devices: &mut Devices, uid: &str, pod: &Pod) -> Result<Vec<String>, String> {
    let mut got = Vec::new();
    loop {
        match devices.next(uid, pod) {
            Next::Ask(wish) => {
                devices.ask(uid);
                assert_eq!(devices.next("another", pod), Next::Wait);
                got.push(format!("{}: {}", wish.container, wish.ids.join(" ")));
                devices.answered(uid, Some(given(&wish)));
            }
            Next::Refuse(why) => return Err(why),
            Next::Done => return Ok(got),
            Next::Wait => panic!("nothing is under way"),
        }
    }
}

#[test]
fn each_device_is_given_once_and_comes_back_with_its_pods_end() {
    let mut devices = with(&[("a", true, &[]), ("b", true, &[]), ("c", false, &[])]);
    assert_eq!(devices.counts()[FAKE], (3, 2));
    let two = pod(json!([]), &[2]);
    assert_eq!(fill(&mut devices, "1", &two), Ok(vec!["c0: a b".to_owned()]));
    let why = format!("requested number of devices unavailable for {FAKE}. Requested: 2, Available: 0");
    assert_eq!(fill(&mut devices, "2", &two), Err(why));
    assert_eq!(devices.release(|it| it != "1"), ["1"]);
    assert_eq!(fill(&mut devices, "2", &two), Ok(vec!["c0: a b".to_owned()]));
}

#[test]
fn what_init_containers_had_is_used_again_and_what_sidecars_have_is_not() {
    let init = |restart: &str| json!([{"name": "i", "restartPolicy": restart, "resources": {"limits": {FAKE: "2"}}}]);
    let mut devices = with(&[("a", true, &[]), ("b", true, &[]), ("c", true, &[])]);
    let got = fill(&mut devices, "1", &pod(init("Never"), &[1, 2]));
    assert_eq!(got, Ok(vec!["i: a b".to_owned(), "c0: a".to_owned(), "c1: b c".to_owned()]));
    let mut devices = with(&[("a", true, &[]), ("b", true, &[]), ("c", true, &[])]);
    let got = fill(&mut devices, "1", &pod(init("Always"), &[1, 1]));
    let why = format!("requested number of devices unavailable for {FAKE}. Requested: 1, Available: 0");
    assert_eq!(got, Err(why));
}

#[test]
fn devices_of_one_numa_node_go_together() {
    let mut devices =
        with(&[("a", true, &[0]), ("b", true, &[1]), ("c", true, &[1]), ("d", true, &[0]), ("e", true, &[0])]);
    assert_eq!(fill(&mut devices, "1", &pod(json!([]), &[2])), Ok(vec!["c0: b c".to_owned()]));
    assert_eq!(fill(&mut devices, "2", &pod(json!([]), &[3])), Ok(vec!["c0: a d e".to_owned()]));
}

#[test]
fn nothing_is_given_of_a_plugin_that_is_away_and_nothing_is_lost() {
    let mut devices = with(&[("a", true, &[])]);
    let one = pod(json!([]), &[1]);
    fill(&mut devices, "1", &one).expect("it is there");
    let away = DeviceResource { is_connected: false, ..resource(&[("a", true, &[])]) };
    devices.take(DeviceNews { resources: [(FAKE.to_owned(), away)].into(), ..DeviceNews::default() });
    assert_eq!(devices.counts()[FAKE], (1, 0));
    assert_eq!(devices.next("1", &one), Next::Done);
    assert_eq!(devices.given("1", "c0").allocated, [(FAKE.to_owned(), vec!["a".to_owned()])]);
    assert_eq!(devices.health("1", "c0"), [(FAKE.to_owned(), vec![("a".to_owned(), None)])]);
    let why = format!("no healthy devices present; cannot allocate unhealthy devices {FAKE}");
    assert_eq!(devices.next("2", &one), Next::Refuse(why));
    devices
        .take(DeviceNews { resources: [(FAKE.to_owned(), DeviceResource::default())].into(), ..DeviceNews::default() });
    assert_eq!(devices.next("2", &one), Next::Refuse(format!("cannot allocate unregistered device {FAKE}")));
}

#[test]
fn what_an_earlier_run_gave_is_not_given_again() {
    let mut devices = Devices::default();
    let one = pod(json!([]), &[1]);
    assert_eq!(devices.next("2", &one), Next::Wait);
    let wish = DeviceWish {
        container: "c0".into(),
        resource: FAKE.into(),
        ids: vec!["a".into()],
        available: vec![],
        must_include: vec![],
    };
    let allocated = [("1".to_owned(), vec![given(&wish)])].into();
    devices.take(DeviceNews {
        resources: [(FAKE.to_owned(), resource(&[("a", true, &[]), ("b", true, &[])]))].into(),
        allocated,
    });
    assert_eq!(fill(&mut devices, "2", &one), Ok(vec!["c0: b".to_owned()]));
    assert_eq!(devices.release(|_| true), Vec::<String>::new());
}

#[test]
fn devices_lie_where_the_rest_of_the_container_does() {
    let machine = crate::MachineTopology {
        numa_nodes: [(0, crate::NumaNode::default()), (1, crate::NumaNode::default())].into(),
        ..Default::default()
    };
    let numa = Numa::of(&machine);
    let mut devices = with(&[("a", true, &[0]), ("b", true, &[1]), ("c", true, &[1])]);
    let two = pod(json!([]), &[2]);
    let container = two.spec.as_ref().expect("a spec").containers[0].clone();
    let shown = |hints: &Hints| -> Vec<String> {
        let all = hints[FAKE].as_ref().expect("it matters where").iter();
        all.map(|it| format!("{}{}", it.nodes.expect("nodes"), if it.is_preferred { "!" } else { "" })).collect()
    };
    let mut hints = DeviceHints { devices: &mut devices, numa: &numa };
    assert_eq!(shown(&hints.hints(&two, &container)), ["1!", "0-1"]);
    assert_eq!(hints.hints(&two, &container), hints.pod_hints(&two));
    let affinity = TopologyHint { nodes: Some([0].into_iter().collect()), is_preferred: false };
    hints.allocate(&two, &container, affinity).expect("kept");
    let Next::Ask(wish) = devices.next("", &two) else { panic!("they are there") };
    // Not all of them can be on that node: what is there has to be among them.
    assert_eq!((wish.ids, wish.must_include), (vec!["a".to_owned(), "b".to_owned()], vec!["a".to_owned()]));
    let mut hints = DeviceHints { devices: &mut devices, numa: &numa };
    hints.release("");
    assert_eq!(
        shown(&hints.hints(&pod(json!([]), &[3]), &pod(json!([]), &[3]).spec.expect("a spec").containers[0])),
        ["0-1!"]
    );
    assert_eq!(hints.pod_hints(&pod(json!([]), &[4]))[FAKE], Some(Vec::new()));
    let mut anywhere = with(&[("a", true, &[])]);
    assert_eq!(DeviceHints { devices: &mut anywhere, numa: &numa }.pod_hints(&pod(json!([]), &[1]))[FAKE], None);
}
