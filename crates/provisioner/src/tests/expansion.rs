//! Who does which part of a growth.

use serde_json::json;

use super::*;
use crate::FailureKind;

const GROWS: &str = "Normal Resizing: External resizer is resizing volume pv1";

/// A claim that asks for two GB of a volume of one, of a driver of somebody else's.
fn world(change: impl FnOnce(&mut DriverFacts)) -> World {
    let mut world = World::new();
    world.add_driver(change);
    let claim = json!({ "namespace": "default", "name": "data", "uid": "c1" });
    world.volume(sample_volume(json!({ "spec": { "capacity": { "storage": "1Gi" }, "claimRef": claim } })));
    world
}

fn asks(status: Value) -> Value {
    let mut claim = json!({
        "spec": { "volumeName": "pv1", "resources": { "requests": { "storage": "2Gi" } } },
        "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } },
    });
    merge(&mut claim, json!({ "status": status }));
    claim
}

fn show_growth(effects: &[Effect]) -> Vec<String> {
    let growths = effects.iter().filter_map(|it| match it {
        Effect::Do(job) => match &**job {
            Job::Expand(it) => {
                Some((it.is_asked, it.told.access_mode.clone(), it.waits_for_node["conditions"].clone()))
            }
            _ => None,
        },
        _ => None,
    });
    growths.map(|(is_asked, mode, conditions)| format!("{is_asked} {mode} {}", conditions[0]["type"])).collect()
}

/// As external-resizer's `trivialResizer`: the volume is called grown, and waits for its node.
#[test]
fn a_driver_whose_nodes_alone_grow_volumes_is_not_asked_at_its_controller() {
    let claim = || Event::Claim(Arc::new(serde_json::from_value(claim(asks(json!({})))).expect("a claim")));
    for (expands, is_asked) in [(true, true), (false, false)] {
        let mut world = world(|it| (it.expands, it.expands_nothing, it.node_expands) = (expands, !expands, true));
        let effects = world.provisioner.step(claim(), world.now);
        let expected = format!("{is_asked} ReadWriteOnce \"FileSystemResizePending\"");
        assert_eq!(show_growth(&effects), [expected]);
    }
    // A sidecar does it.
    let mut world = world(|it| (it.expands_nothing, it.node_expands) = (true, true));
    let container = crate::PodContainer { image: "csi-resizer:v2".into(), program: String::new() };
    let folders = vec!["/var/lib/kubelet/plugins/sample".to_owned()];
    let pod = crate::DriverPod { node: "n1".into(), folders, containers: vec![container], is_finished: false };
    world.tell(Event::Pod(Key::new("x", "controller"), pod));
    assert!(world.provisioner.step(claim(), world.now).is_empty());
}

#[test]
fn the_part_of_a_node_in_growing_others_volumes_is_left_to_that_node() {
    let mut world = world(|it| (it.expands, it.node_expands) = (true, true));
    world.volume(sample_volume(json!({ "spec": { "capacity": { "storage": "2Gi" } } })));
    let pending = json!({
        "allocatedResources": { "storage": "2Gi" },
        "allocatedResourceStatuses": { "storage": "NodeResizePending" },
    });
    assert_eq!(world.claim(asks(pending)), [""; 0]);
}

/// As external-resizer, which looks at it anew every ten minutes, and never asks for less than the volume has.
#[test]
fn a_growth_that_its_node_has_refused_is_begun_anew_and_not_soon() {
    let growth = "expand pv1 vol-1 2147483648";
    let infeasible = asks(json!({
        "allocatedResources": { "storage": "2Gi" },
        "allocatedResourceStatuses": { "storage": "NodeResizeInfeasible" },
    }));
    let with = |size: &str| {
        let mut claim = infeasible.clone();
        merge(&mut claim, json!({ "spec": { "resources": { "requests": { "storage": size } } } }));
        claim
    };
    let refused = || {
        let mut world = world(|it| (it.expands, it.node_expands) = (true, true));
        world.volume(sample_volume(json!({ "spec": { "capacity": { "storage": "2Gi" } } })));
        assert_eq!(world.claim(infeasible.clone()), [""; 0]);
        world
    };
    let mut world = refused();
    assert_eq!(world.wait(599), [""; 0]);
    assert_eq!(world.wait(1), [GROWS, growth]);
    for size in ["1536Mi", "3Gi"] {
        assert_eq!(refused().claim(with(size)), [GROWS, growth], "{size}");
    }
}

/// KEP-1790: what the volume's object has, what is said of its growth, to how much that was; and what is asked for where the driver left
/// open whether it was done, and where it was not done. It has one, and the claim asks for `asked`.
const GROWTHS: [(u64, &str, u64, u64, [u64; 2]); 12] = [
    (1, "", 0, 3, [3, 3]),
    (1, "ControllerResizeInProgress", 4, 4, [4, 4]),
    (1, "ControllerResizeInProgress", 4, 2, [4, 2]),
    (1, "ControllerResizeInProgress", 4, 5, [4, 5]),
    (1, "ControllerResizeInfeasible", 4, 2, [2, 2]),
    (1, "NodeResizePending", 4, 5, [4, 4]),
    (4, "NodeResizePending", 4, 5, [0, 0]),
    (4, "NodeResizeInProgress", 4, 2, [0, 0]),
    (4, "ControllerResizeInProgress", 4, 2, [4, 4]),
    (4, "ControllerResizeInfeasible", 4, 2, [4, 4]),
    (4, "", 4, 2, [4, 4]),
    (4, "", 0, 2, [2, 2]),
];

#[test]
fn a_growth_that_may_be_under_way_is_finished_before_another_size_is_asked_for() {
    let gib = |it: u64| format!("{it}Gi");
    for (volume, said, allocated, asked, expected) in GROWTHS {
        for (kind, expected) in [FailureKind::Open, FailureKind::Refused].into_iter().zip(expected) {
            let mut world = world(|it| it.expands = true);
            let mut claim = asks(json!({}));
            claim["spec"]["resources"]["requests"]["storage"] = "4Gi".into();
            assert_eq!(world.claim(claim.clone()), [GROWS, "expand pv1 vol-1 4294967296"]);
            let failure = Failure { message: "no".into(), kind, ..Failure::default() };
            world.tell(expanded(4 << 30, Err(failure)));
            world.volume(sample_volume(json!({ "spec": { "capacity": { "storage": gib(volume) } } })));
            if allocated > 0 {
                claim["status"]["allocatedResources"] = json!({ "storage": gib(allocated) });
            }
            if !said.is_empty() {
                claim["status"]["allocatedResourceStatuses"] = json!({ "storage": said });
            }
            claim["spec"]["resources"]["requests"]["storage"] = gib(asked).into();
            world.now = world.now.after_seconds(600);
            let told = match expected {
                0 => Vec::new(),
                bytes => vec![GROWS.to_owned(), format!("expand pv1 vol-1 {}", bytes << 30)],
            };
            assert_eq!(world.claim(claim), told, "{volume} {said} {allocated} {asked} {kind:?}");
        }
    }
}

#[test]
fn what_the_built_in_driver_says_at_its_node_is_told() {
    let mut world = World::new();
    world.tell(Event::Synced);
    let mut volume = released("Delete", DRIVER, "n1");
    volume["status"] = json!({ "phase": "Bound" });
    volume["spec"]["capacity"]["storage"] = "2Gi".into();
    world.volume(volume);
    let pending = json!({ "status": {
        "allocatedResources": { "storage": "2Gi" },
        "allocatedResourceStatuses": { "storage": "NodeResizePending" },
    } });
    assert_eq!(world.claim(bound("2Gi", "1Gi", pending)), ["expand on node pvc-c1 2147483648"]);
    let ended_with = |is_in_use, kind| {
        let result = Err(Failure { message: "it is damaged".into(), is_in_use, kind, ..Failure::default() });
        let (claim, volume) = (Key::new("default", "data"), "pvc-c1".to_owned());
        Event::Done(Outcome::ExpandedOnNode { claim, volume, driver: DRIVER.into(), result })
    };
    let ended = |is_in_use| ended_with(is_in_use, FailureKind::Open);
    let told =
        "Warning VolumeResizeFailed: NodeExpandVolume.NodeExpandVolume failed for volume \"pvc-c1\" : it is damaged";
    assert_eq!(world.tell(ended(false)), [told]);
    assert_eq!(world.wait(1)[0], "expand on node pvc-c1 2147483648");
    assert_eq!(world.tell(ended(true)), [""; 0], "the claim says already that it waits for a Pod");
    // What it refuses for good may be seen in the claim before it is heard of.
    assert_eq!(world.wait(2)[0], "expand on node pvc-c1 2147483648");
    let infeasible = json!({ "status": {
        "allocatedResources": { "storage": "2Gi" },
        "allocatedResourceStatuses": { "storage": "NodeResizeInfeasible" },
    } });
    assert_eq!(world.claim(bound("2Gi", "1Gi", infeasible)), [""; 0]);
    world.tell(ended_with(false, FailureKind::Infeasible));
    assert!(world.wait(599).iter().all(|it| it.starts_with("capacity ")));
    assert!(world.wait(1).contains(&"expand pvc-c1 pvc-c1 2147483648".to_owned()));
}

/// As the resizer's slow set; where room may be made the pause is the ordinary one.
#[test]
fn what_is_infeasible_is_asked_again_and_not_soon_and_what_has_no_room_after_the_ordinary_pause() {
    for (kind, is_exhausted, pause) in [
        (FailureKind::Infeasible, false, 300),
        (FailureKind::Infeasible, true, 1),
        (FailureKind::Refused, false, 1),
        (FailureKind::Open, true, 1),
    ] {
        let mut world = world(|it| it.expands = true);
        let growth = "expand pv1 vol-1 2147483648";
        assert_eq!(world.claim(asks(json!({}))), [GROWS, growth]);
        world.tell(expanded(2 << 30, Err(Failure { message: "no".into(), is_exhausted, kind, ..Failure::default() })));
        let said = if kind == FailureKind::Infeasible { "Infeasible" } else { "InProgress" };
        let status = json!({
            "allocatedResources": { "storage": "2Gi" },
            "allocatedResourceStatuses": { "storage": format!("ControllerResize{said}") },
        });
        assert_eq!(world.claim(asks(status)), [""; 0]);
        assert_eq!(world.wait(pause - 1), [""; 0], "{kind:?} {is_exhausted}");
        assert_eq!(world.wait(1), [GROWS, growth], "{kind:?} {is_exhausted}");
    }
}

fn expanded(bytes: u64, result: Result<bool, Failure>) -> Event {
    let (claim, volume) = (Key::new("default", "data"), "pv1".to_owned());
    Event::Done(Outcome::Expanded { claim, volume, driver: "sample".into(), bytes, result })
}
