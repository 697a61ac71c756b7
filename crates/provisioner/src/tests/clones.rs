//! Claims whose volumes others begin with.

use serde_json::json;

use super::*;
use crate::CLONING_PROTECTION;

fn source(finalizers: &[&str], is_leaving: bool) -> Value {
    let deleted = is_leaving.then_some("2026-01-01T00:00:00Z");
    bound("1Gi", "1Gi", json!({ "metadata": { "finalizers": finalizers, "deletionTimestamp": deleted } }))
}

fn clone(name: &str, phase: &str, of: Value) -> Value {
    json!({
        "metadata": { "name": name, "uid": name },
        "spec": { "storageClassName": "not-here", "dataSourceRef": of },
        "status": { "phase": phase },
    })
}

#[test]
fn a_claim_goes_when_no_clone_of_it_is_made_any_more() {
    let mut world = World::new();
    world.tell(Event::Synced);
    let mut volume = released("Delete", DRIVER, "n1");
    volume["status"] = json!({ "phase": "Bound" });
    world.volume(volume);
    let of = |kind: &str, name: &str| json!({ "kind": kind, "name": name });
    let held = [CLONING_PROTECTION];
    assert_eq!(world.claim(clone("clone", "Pending", of("PersistentVolumeClaim", "data"))), [""; 0]);
    world.claim(clone("another", "Pending", of("PersistentVolumeClaim", "other")));
    world.claim(clone("restored", "Pending", of("VolumeSnapshot", "data")));
    assert_eq!(world.claim(source(&held, false)), [""; 0], "it is not to go");
    assert_eq!(world.claim(source(&[], true)), [""; 0], "it is not held");
    assert_eq!(world.claim(source(&held, true)), [""; 0], "a clone of it has no volume yet");
    let done = world.claim(clone("clone", "Bound", of("PersistentVolumeClaim", "data")));
    assert_eq!(done, ["let go of source default/data"]);
}

#[test]
fn a_clone_that_is_given_up_holds_nothing() {
    let mut world = World::new();
    world.tell(Event::Synced);
    let mut volume = released("Delete", DRIVER, "n1");
    volume["status"] = json!({ "phase": "Bound" });
    world.volume(volume);
    world.claim(clone("clone", "Pending", json!({ "kind": "PersistentVolumeClaim", "name": "data" })));
    assert_eq!(world.claim(source(&[CLONING_PROTECTION], true)), [""; 0]);
    assert_eq!(world.tell(Event::ClaimGone(Key::new("default", "clone"))), ["let go of source default/data"]);
}
