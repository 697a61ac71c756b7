//! How much is left of each class: when it is asked, and when what was told goes.

use super::*;

fn class(name: &str) -> Event {
    let class = json!({ "metadata": { "name": name }, "provisioner": DRIVER });
    Event::Class(Arc::new(serde_json::from_value(class).expect("a class")))
}

fn name(world: &World, driver: &str, class: &str) -> String {
    crate::capacity_name(driver, class, world.provisioner.config())
}

#[test]
fn a_driver_that_has_not_said_what_is_left_is_not_asked_again() {
    let mut world = World::new();
    world.is_capacity_silent = true;
    assert_eq!(world.tell(Event::Synced), ["capacity local"]);
    assert_eq!(world.wait(60), [""; 0]);
    assert_eq!(world.wait(60), [""; 0], "its time is no news");
    let told = Event::CapacityTold(name(&world, DRIVER, "local"));
    assert_eq!(world.tell(told.clone()), [""; 0]);
    assert_eq!(world.wait(60), ["capacity local"]);
    // What changes meanwhile is told after that, once; of another class at once.
    assert_eq!(world.tell(class("other")), ["capacity other"]);
    assert_eq!(world.tell(class("other")), [""; 0]);
    assert_eq!(world.tell(told.clone()), ["capacity local"]);
    assert_eq!(world.tell(told), [""; 0]);
}

#[test]
fn what_goes_while_it_is_being_told_goes_after_that() {
    let mut world = World::new();
    world.is_capacity_silent = true;
    world.tell(Event::Synced);
    assert_eq!(world.tell(Event::ClassGone("local".into())), [""; 0]);
    assert_eq!(world.tell(Event::CapacityTold(name(&world, DRIVER, "local"))), ["withdraw"]);
    let mut world = World::new();
    world.tell(Event::Synced);
    assert_eq!(world.tell(Event::ClassGone("local".into())), ["withdraw"]);
}

#[test]
fn what_an_earlier_run_told_of_a_driver_that_is_gone_goes() {
    let mut world = World::new();
    let own = name(&world, DRIVER, "local");
    let found = [(own, DRIVER.to_owned()), ("csisc-1".to_owned(), "gone".to_owned())];
    world.tell(Event::Capacities(found.into()));
    assert_eq!(world.tell(Event::Synced), ["capacity local"], "it may be there soon");
    assert_eq!(world.wait(60), ["withdraw", "capacity local"]);
    assert_eq!(world.wait(60), ["capacity local"], "once");
}

#[test]
fn what_an_earlier_run_told_stays_until_it_is_known_who_tells_it() {
    let mut world = World::new();
    let found = [(name(&world, "sample", "sample"), "sample".to_owned())];
    let facts = DriverFacts {
        name: "sample".into(),
        tells_capacity: true,
        provisions: true,
        socket: Some("/var/lib/kubelet/plugins/sample/csi.sock".into()),
        ..DriverFacts::default()
    };
    world.tell(Event::Drivers(vec![facts]));
    world.tell(Event::Capacities(found.into()));
    let of_sample = json!({ "metadata": { "name": "sample" }, "provisioner": "sample" });
    world.tell(Event::Class(Arc::new(serde_json::from_value(of_sample).expect("a class"))));
    world.tell(Event::Synced);
    assert_eq!(world.wait(60), [""; 0]);
    assert_eq!(world.wait(60), [""; 0], "its Pods are not known: a sidecar may do it");
    assert_eq!(world.tell(Event::PodsSynced), ["capacity sample"]);
    assert_eq!(world.wait(60), ["capacity sample"]);
}
