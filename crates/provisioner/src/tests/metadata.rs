//! Drivers that are told for whom they make what they make.

use super::*;
use crate::CsiDriverSettings;

fn driver(name: &str, wants_metadata: bool) -> Event {
    Event::CsiDriver(name.into(), CsiDriverSettings { wants_metadata, ..CsiDriverSettings::default() })
}

fn told(world: &mut World, event: Event) -> Vec<(String, String)> {
    let effects = world.provisioner.step(event, world.now);
    let jobs = effects.into_iter().filter_map(|it| match it {
        Effect::Do(job) => Some(*job),
        _ => None,
    });
    let parameters = jobs.filter_map(|it| match it {
        Job::Provision { request, .. } => Some(request.parameters),
        Job::TakeSnapshot(it) => Some(it.parameters),
        _ => None,
    });
    parameters.flatten().map(|(name, it)| (name.trim_start_matches("csi.storage.k8s.io/").to_owned(), it)).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|it| (it.0.to_owned(), it.1.to_owned())).collect()
}

#[test]
fn a_driver_is_told_whose_volume_it_makes_where_its_object_says_so() {
    for (events, expected) in [
        (vec![], pairs(&[("x", "y")])),
        (vec![driver("other", true)], pairs(&[("x", "y")])),
        (vec![driver("sample", true), driver("sample", false)], pairs(&[("x", "y")])),
        (
            vec![driver("sample", true)],
            pairs(&[("pv/name", "pvc-c1"), ("pvc/name", "data"), ("pvc/namespace", "default"), ("x", "y")]),
        ),
    ] {
        let mut world = World::new();
        world.add_driver(|_| {});
        let class = json!({ "metadata": { "name": "local" }, "provisioner": "sample", "parameters": { "x": "y" } });
        world.tell(Event::Class(Arc::new(serde_json::from_value(class).expect("a class"))));
        let said = format!("{events:?}");
        events.into_iter().for_each(|it| _ = world.tell(it));
        let by = json!({ "metadata": { "annotations": { "volume.kubernetes.io/storage-provisioner": "sample" } } });
        let claim = serde_json::from_value(claim(by)).expect("a claim");
        assert_eq!(told(&mut world, Event::Claim(Arc::new(claim))), expected, "{said}");
    }
}

#[test]
fn a_driver_is_told_whose_snapshot_it_takes_where_its_object_says_so() {
    let mut world = World::new();
    world.add_driver(|it| it.snapshots = true);
    world.tell(Event::SnapshotsSynced);
    world.tell(driver("sample", true));
    let content = json!({
        "metadata": { "name": "snapcontent-u1", "uid": "k1" },
        "spec": {
            "driver": "sample", "deletionPolicy": "Delete", "source": { "volumeHandle": "h1" },
            "volumeSnapshotRef": { "namespace": "default", "name": "snap", "uid": "u1" },
        },
    });
    let content = serde_json::from_value(content).expect("a content");
    let expected = [
        ("volumesnapshot/name", "snap"),
        ("volumesnapshot/namespace", "default"),
        ("volumesnapshotcontent/name", "snapcontent-u1"),
    ];
    assert_eq!(told(&mut world, Event::Content(Arc::new(content))), pairs(&expected));
}

#[test]
fn the_built_in_driver_is_told_nothing_more() {
    let mut world = World::new();
    world.tell(Event::Synced);
    world.tell(driver(DRIVER, true));
    let claim = serde_json::from_value(claim(selected())).expect("a claim");
    assert_eq!(told(&mut world, Event::Claim(Arc::new(claim))), []);
}
