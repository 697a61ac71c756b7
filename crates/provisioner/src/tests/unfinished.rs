//! Claims that go while a driver may be making their volume.

use serde_json::json;

use super::*;
use crate::FailureKind;

const PROVISION: &str = "provision pvc-c1 1073741824 false";

fn of_sample(uid: &str) -> Value {
    json!({
        "metadata": { "uid": uid, "annotations": { "volume.kubernetes.io/storage-provisioner": "sample" } },
        "spec": { "storageClassName": "sample" },
    })
}

/// The driver has been asked for the claim's volume.
fn world() -> World {
    let mut world = World::new();
    world.add_driver(|_| {});
    let class = json!({ "metadata": { "name": "sample" }, "provisioner": "sample" });
    world.tell(Event::Class(Arc::new(serde_json::from_value(class).expect("a class"))));
    assert_eq!(world.claim(of_sample("c1")).last().map(String::as_str), Some(PROVISION));
    world
}

fn ended(kind: FailureKind, is_exhausted: bool) -> Event {
    provisioned(Err(Failure { message: "no answer".into(), kind, is_exhausted, ..Failure::default() }))
}

fn gone() -> Event {
    Event::ClaimGone(Key::new("default", "data"))
}

/// As external-provisioner's `claimsInProgress`: else nobody would ever remove what the driver has made.
#[test]
fn a_driver_is_asked_on_for_a_claim_that_is_gone_until_it_says_how_it_ended() {
    for (kind, is_exhausted, is_asked_on) in [
        (FailureKind::Open, false, true),
        (FailureKind::Open, true, false),
        (FailureKind::Unasked, false, false),
        (FailureKind::Refused, false, false),
        (FailureKind::Infeasible, false, false),
    ] {
        let mut world = world();
        world.tell(ended(kind, is_exhausted));
        assert_eq!(world.tell(gone()), [""; 0], "after its pause");
        let expected = if is_asked_on { vec![PROVISION] } else { Vec::new() };
        assert_eq!(world.wait(1), expected, "{kind:?} {is_exhausted}");
    }
}

#[test]
fn what_is_left_open_stays_so_until_the_driver_says_otherwise() {
    let mut world = world();
    assert_eq!(world.tell(gone()), [""; 0], "its answer is waited for");
    assert_eq!(world.tell(ended(FailureKind::Open, false)), [""; 0]);
    assert_eq!(world.wait(1), [PROVISION]);
    world.tell(ended(FailureKind::Unasked, false));
    assert_eq!(world.wait(2), [PROVISION], "its Secret could not be read meanwhile");
    world.tell(provisioned(Ok(())));
    assert_eq!(world.wait(600), [""; 0], "it has its PersistentVolume, which is released");
}

#[test]
fn another_claim_of_the_same_name_has_a_volume_of_its_own() {
    let mut world = world();
    world.tell(ended(FailureKind::Open, false));
    let told = world.claim(of_sample("c2"));
    assert_eq!(told.last().map(String::as_str), Some("provision pvc-c2 1073741824 false"));
    assert_eq!(world.wait(1), [PROVISION]);
    // It was made, and the answer of the API lost.
    world.tell(ended(FailureKind::Open, false));
    world.volume(json!({ "metadata": { "name": "pvc-c1" }, "spec": {} }));
    assert_eq!(world.wait(600), [""; 0]);
}
