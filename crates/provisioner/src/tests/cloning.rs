//! Claims that clones of drivers of others begin with.

use super::*;
use crate::FailureKind;

const FINALIZER: &str = "provisioner.storage.kubernetes.io/cloning-protection";
const HELD: &str = "hold default/old 5 by kubernetes.io/pvc-protection";

fn of_sample(patch: Value) -> Value {
    let mut claim = json!({
        "metadata": { "annotations": { "volume.kubernetes.io/storage-provisioner": "sample" } },
        "spec": { "storageClassName": "sample" },
    });
    merge(&mut claim, patch);
    claim
}

/// The source, with more finalizers than others put on it.
fn old(finalizers: &[&str], patch: Value) -> Value {
    let finalizers: Vec<&str> = [&["kubernetes.io/pvc-protection"], finalizers].concat();
    let mut claim = of_sample(json!({
        "metadata": { "name": "old", "uid": "c0", "resourceVersion": "5", "finalizers": finalizers },
        "spec": { "volumeName": "pv0" },
        "status": { "phase": "Bound", "capacity": { "storage": "1Gi" } },
    }));
    merge(&mut claim, patch);
    claim
}

fn deleted() -> Value {
    json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } })
}

fn clone(phase: &str) -> Value {
    of_sample(json!({
        "spec": { "dataSourceRef": { "kind": "PersistentVolumeClaim", "name": "old" } },
        "status": { "phase": phase },
    }))
}

fn world(change: impl FnOnce(&mut DriverFacts)) -> World {
    let mut world = World::new();
    let class = json!({ "metadata": { "name": "sample" }, "provisioner": "sample" });
    world.tell(Event::Class(Arc::new(serde_json::from_value(class).expect("a class"))));
    world.add_driver(|it| {
        it.clones = true;
        change(it);
    });
    world.volume(json!({
        "metadata": { "name": "pv0" },
        "spec": { "claimRef": { "namespace": "default", "name": "old", "uid": "c0" },
            "csi": { "driver": "sample", "volumeHandle": "h0" } },
    }));
    world
}

fn ended(kind: FailureKind) -> Event {
    let failure = Failure { message: "no answer".into(), kind, ..Failure::default() };
    let (claim, volume) = (Key::new("default", "data"), "pvc-c1".to_owned());
    Event::Done(Outcome::Provisioned { claim, volume, driver: "sample".into(), result: Err(failure) })
}

fn asked(told: &[String]) -> String {
    told.last().cloned().unwrap_or_default()
}

const MADE: &str = "provision pvc-c1 1073741824 false of Volume(\"h0\")";

#[test]
fn the_source_is_held_before_a_driver_of_others_is_asked() {
    let mut world = world(|_| {});
    world.claim(old(&[], json!({})));
    assert_eq!(asked(&world.claim(clone("Pending"))), format!("{MADE} and {HELD} {FINALIZER}"));
    assert!(asked(&world.tell(ended(FailureKind::Open))).starts_with("Warning"));
    world.claim(old(&[FINALIZER], json!({})));
    assert_eq!(asked(&world.wait(10)), MADE, "it is held already");
}

#[test]
fn the_built_in_driver_needs_no_hold() {
    let mut world = World::new();
    world.tell(Event::Synced);
    let of_local = |mut claim: Value| {
        let own = json!({
            "metadata": { "annotations": { "volume.kubernetes.io/storage-provisioner": DRIVER } },
            "spec": { "storageClassName": "local" },
        });
        merge(&mut claim, own);
        claim
    };
    world.volume(json!({
        "metadata": { "name": "pv0" },
        "spec": { "claimRef": { "namespace": "default", "name": "old", "uid": "c0" },
            "csi": { "driver": DRIVER, "volumeHandle": "h0" } },
    }));
    world.claim(of_local(old(&[], json!({}))));
    let mut claim = of_local(clone("Pending"));
    merge(&mut claim, selected());
    assert_eq!(asked(&world.claim(claim)), MADE);
}

#[test]
fn a_source_that_is_deleted_is_let_go_when_no_clone_waits_for_it() {
    let other = |patch: Value| {
        let mut claim = clone("Pending");
        merge(&mut claim, patch);
        claim
    };
    for (clone, is_held) in [
        (clone("Pending"), true),
        (clone("Bound"), false),
        (clone("Lost"), false),
        (other(json!({ "metadata": { "namespace": "elsewhere" } })), false),
        (other(json!({ "spec": { "dataSourceRef": { "name": "older" } } })), false),
        (other(json!({ "spec": { "dataSourceRef": { "apiGroup": "a.example.com" } } })), false),
        (other(json!({ "spec": { "dataSourceRef": { "namespace": "elsewhere" } } })), false),
    ] {
        let mut world = world(|_| {});
        world.claim(clone.clone());
        assert_eq!(world.claim(old(&[FINALIZER], json!({}))), [""; 0], "it is not deleted");
        let told = world.claim(old(&[FINALIZER], deleted()));
        assert_eq!(told, if is_held { vec![] } else { vec![HELD.to_owned()] }, "{clone}");
    }
}

#[test]
fn a_source_is_let_go_as_soon_as_its_last_clone_is_made_or_gone() {
    for gone in [false, true] {
        let mut world = world(|_| {});
        world.claim(clone("Pending"));
        assert_eq!(world.claim(old(&[FINALIZER], deleted())), [""; 0]);
        let told = match gone {
            true => world.tell(Event::ClaimGone(Key::new("default", "data"))),
            false => world.claim(clone("Bound")),
        };
        assert!(told.contains(&HELD.to_owned()), "{told:?}");
    }
}

#[test]
fn what_an_earlier_run_has_held_is_let_go() {
    let mut world = World::new();
    let claim = serde_json::from_value(claim(old(&[FINALIZER], deleted()))).expect("a claim");
    assert_eq!(world.tell(Event::Claim(Arc::new(claim))), [""; 0], "not before all is known");
    // Its volume is gone, too: its provisioner lets it go.
    assert_eq!(world.add_driver(|it| it.clones = true), [HELD]);
}

#[test]
fn a_source_of_a_driver_that_a_sidecar_acts_for_is_the_sidecars_to_let_go() {
    let mut world = world(|it| it.provisions = false);
    assert_eq!(world.claim(old(&[FINALIZER], deleted())), [""; 0]);
}

/// What was asked for before is made, also after a restart and a refusal: else the source would wait for the clone, and the clone for the source.
#[test]
fn of_a_source_that_is_deleted_the_clones_are_made_that_it_is_held_for() {
    let why = "the PVC DataSource old is currently being deleted";
    for (finalizers, created, expected) in [
        (&[FINALIZER][..], "2025-12-31T23:59:59Z", MADE),
        (&[FINALIZER], "2026-01-01T00:00:01Z", why),
        (&[], "2025-12-31T23:59:59Z", why),
    ] {
        let mut world = world(|_| {});
        world.claim(old(finalizers, deleted()));
        let mut clone = clone("Pending");
        merge(&mut clone, json!({ "metadata": { "creationTimestamp": created } }));
        let told = asked(&world.claim(clone));
        assert!(told.contains(expected), "{created}: {told}");
        if expected == MADE {
            world.tell(ended(FailureKind::Refused));
            let told = asked(&world.wait(10));
            assert!(told.contains(MADE), "refused: {told}");
        }
    }
}

/// The claim of the clone is gone, and its driver has not said yet what became of the volume.
#[test]
fn a_source_is_held_while_a_driver_may_be_making_a_clone_that_nobody_has_any_more() {
    let mut world = world(|_| {});
    world.claim(old(&[], json!({})));
    world.claim(clone("Pending"));
    world.tell(ended(FailureKind::Open));
    world.claim(old(&[FINALIZER], json!({})));
    world.tell(Event::ClaimGone(Key::new("default", "data")));
    let told = world.claim(old(&[FINALIZER], deleted()));
    assert!(!told.contains(&HELD.to_owned()), "{told:?}");
    let asked = asked(&world.wait(10));
    assert!(asked.contains(MADE), "{asked}");
    let told = world.tell(ended(FailureKind::Refused));
    assert!(told.contains(&HELD.to_owned()), "{told:?}");
}

/// Each is called by its name, with what it is to begin with; the last of them is looked at.
#[test]
fn claims_that_are_to_begin_with_themselves_say_so() {
    let unbound = "the PVC DataSource old must be bound to a PersistentVolume, and is Pending";
    for (claims, why) in [
        (&[("data", "data")][..], "the PVC data is its own data source: it never has a volume"),
        (
            &[("old", "data"), ("data", "old")],
            "the PVCs data, old are each other's data sources: they never have volumes",
        ),
        (
            &[("a", "b"), ("b", "data"), ("data", "a")],
            "the PVCs data, a, b are each other's data sources: they never have volumes",
        ),
        (&[("old", "old"), ("data", "old")], "the PVC old is its own data source: it never has a volume"),
        (&[("older", ""), ("old", "older"), ("data", "old")], unbound),
    ] {
        let mut world = world(|_| {});
        let mut told = Vec::new();
        for (name, source) in claims {
            let source = (!source.is_empty()).then(|| json!({ "kind": "PersistentVolumeClaim", "name": source }));
            told = world.claim(of_sample(json!({
                "metadata": { "name": name, "uid": name },
                "spec": { "dataSourceRef": source },
                "status": { "phase": "Pending" },
            })));
        }
        let expected = format!("failed to provision volume with StorageClass \"sample\": {why}");
        assert!(told.iter().any(|it| it.ends_with(&expected)), "{expected}: {told:?}");
    }
}
