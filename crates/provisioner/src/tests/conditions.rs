//! Volumes that their drivers say are not well.

use super::*;

fn told(condition: Option<&str>) -> Event {
    let told = [("h1".to_owned(), condition.map(str::to_owned)), ("h9".to_owned(), Some("nobody's".to_owned()))];
    Event::Conditions("sample".into(), Some(told.into()))
}

impl World {
    fn standing(&mut self, name: &str, handle: &str, phase: &str) {
        self.volume(json!({
            "metadata": { "name": name },
            "spec": { "claimRef": { "namespace": "default", "name": "data", "uid": "c1" },
                "csi": { "driver": "sample", "volumeHandle": handle } },
            "status": { "phase": phase },
        }));
    }
}

fn monitored(tells_conditions: bool) -> World {
    let mut world = World::new();
    world.claim(json!({ "spec": { "volumeName": "pv1" }, "status": { "phase": "Bound" } }));
    world.standing("pv1", "h1", "Bound");
    world.standing("pv2", "h2", "Released");
    world.add_driver(|it| it.tells_conditions = tells_conditions);
    world
}

#[test]
fn claims_are_told_of_volumes_that_are_not_well_and_that_are_again() {
    const ASK: &str = "ask sample of {\"h1\"}";
    let asks = |told: &[String]| told.iter().filter(|it| it.starts_with("ask")).count();
    let mut world = monitored(true);
    assert_eq!(asks(&world.wait(60)), 0, "it has not answered yet");
    let abnormal = ["Warning VolumeConditionAbnormal: the disk has bad blocks"];
    assert_eq!(world.tell(told(Some("the disk has bad blocks"))), abnormal);
    assert!(world.wait(60).contains(&ASK.to_owned()));
    assert_eq!(world.tell(told(Some("the disk has bad blocks"))), abnormal, "as long as it is so");
    assert_eq!(asks(&world.wait(30)), 0, "not before its time");
    assert_eq!(asks(&world.wait(30)), 1);
    assert!(world.tell(Event::Conditions("sample".into(), None)).is_empty(), "it did not say");
    assert_eq!(asks(&world.wait(60)), 1);
    let normal = ["Normal VolumeConditionNormal: The Volume returns to the healthy state"];
    assert_eq!(world.tell(told(None)), normal);
    assert_eq!(asks(&world.wait(60)), 1);
    assert!(world.tell(told(None)).is_empty(), "once");
}

#[test]
fn who_does_not_act_for_a_driver_does_not_ask() {
    let asks = |told: Vec<String>| told.iter().any(|it| it.starts_with("ask"));
    let mut world = monitored(false);
    assert!(!asks(world.wait(60)), "the driver does not say");
    let mut world = monitored(true);
    world.tell(told(None));
    world.tell(Event::Leads([].into()));
    assert!(!asks(world.wait(60)), "another node has the driver's Lease");
    world.tell(Event::Leads([crate::leases::of_driver("sample")].into()));
    assert!(asks(world.wait(60)));
}
