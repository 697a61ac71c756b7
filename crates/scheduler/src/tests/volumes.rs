//! Pods that have their node and wait for their volumes, step by step.

use std::time::Duration;

use corten_meta::{Key, Time};
use corten_reconcile::Projection;

use super::{describe, storage, told, world};
use crate::{Claim, Effect, Event, Scheduler, arguments::BIND_TIMEOUT};

const WORLD: &str = "node n1 labels=kubernetes.io/hostname=n1\n\
    pvc data class=std\n\
    storage-class std waits\n\
    pod a claim=data\n";

/// Steps the scheduler with all of storage that the lines name, and says what it does beside waking up.
fn step(scheduler: &mut Scheduler, lines: &str, now: Time) -> String {
    let world = world(lines);
    let effects: Vec<Effect> = storage(&world).into_iter().flat_map(|it| scheduler.step(it, now)).collect();
    short(&effects, now)
}

fn short(effects: &[Effect], now: Time) -> String {
    let is_told =
        |it: &&Effect| !matches!(it, Effect::WakeAt(_) | Effect::PatchCondition { .. } | Effect::Record { .. });
    describe(&effects.iter().filter(is_told).cloned().collect::<Vec<_>>(), now)
}

/// A pod that has its node; its claim is to get a volume there.
fn waiting() -> (Scheduler, Time) {
    let world = world(WORLD);
    let mut scheduler = told(&world);
    let effects = scheduler.step(Event::Tick, world.now);
    assert!(short(&effects, world.now).contains("selected-node\":\"n1"), "{}", short(&effects, world.now));
    (scheduler, world.now)
}

#[test]
fn the_pod_is_bound_after_its_volumes() {
    let (mut scheduler, now) = waiting();
    assert_eq!(step(&mut scheduler, "pvc data class=std selected=n1", now), "");
    assert_eq!(
        step(&mut scheduler, "pvc data class=std selected=n1 volume=v bound", now),
        "",
        "the volume is not seen yet"
    );
    let bound = step(&mut scheduler, "pv v class=std on=n1 claim=default/data:pvc-data", now);
    assert_eq!(bound, "bind default/a to n1\n");
}

#[test]
fn a_provisioner_that_cannot_sends_the_pod_back() {
    let (mut scheduler, now) = waiting();
    step(&mut scheduler, "pvc data class=std selected=n1", now);
    let said = step(&mut scheduler, "pvc data class=std", now);
    assert!(said.contains("selectedNode annotation value \"\" not set to scheduled node \"n1\""), "{said}");
    assert_eq!(scheduler.placed().count(), 0, "its room is free");
    let later = now.after(Duration::from_secs(2));
    let effects = scheduler.step(Event::Tick, later);
    assert!(short(&effects, later).contains("selected-node"), "it is tried again");
}

#[test]
fn a_volume_that_was_made_elsewhere_sends_the_pod_back() {
    let (mut scheduler, now) = waiting();
    let said = step(
        &mut scheduler,
        "pvc data class=std selected=n1 volume=v bound\npv v on=n2 claim=default/data:pvc-data",
        now,
    );
    assert!(said.contains("pv \"v\" node affinity doesn't match node \"n1\""), "{said}");
}

#[test]
fn a_claim_that_goes_sends_the_pod_back() {
    let (mut scheduler, now) = waiting();
    let gone = Event::StorageGone(Claim::RESOURCE, Key::new("default", "data"));
    let said = short(&scheduler.step(gone, now), now);
    assert!(said.contains("persistentvolumeclaim \"data\" not found"), "{said}");
}

#[test]
fn nobody_waits_for_ever() {
    let (mut scheduler, now) = waiting();
    let later = now.after(BIND_TIMEOUT);
    let said = short(&scheduler.step(Event::Tick, later), later);
    assert!(said.contains("binding volumes: context deadline exceeded"), "{said}");
}

#[test]
fn a_refused_patch_sends_the_pod_back() {
    let (mut scheduler, now) = waiting();
    let failed = |uid: &str| Event::VolumesFailed {
        pod: Key::new("default", "a"),
        uid: uid.into(),
        message: "the object has been modified".into(),
    };
    let said = short(&scheduler.step(failed("pod-a"), now), now);
    assert!(said.contains("binding volumes: the object has been modified"), "{said}");
    assert_eq!(short(&scheduler.step(failed("pod-a"), now), now), "", "once");
}

#[test]
fn a_pod_that_goes_leaves_its_volume_to_others() {
    let lines = "node n1\npvc a class=std\npvc b class=std\nstorage-class std waits provisioner=kubernetes.io/no-provisioner\n\
        pv v class=std\npod a claim=a\npod b claim=b\n";
    let world = world(lines);
    let (mut scheduler, now) = (told(&world), world.now);
    let said = short(&scheduler.step(Event::Tick, now), now);
    assert!(said.contains("patch PersistentVolume v") && said.contains("Pod/b FailedScheduling"), "{said}");
    // Nobody has written it, so it is free again when the pod goes; that it is seen so wakes the other.
    scheduler.step(Event::PodGone(Key::new("default", "a")), now);
    let later = now.after(Duration::from_secs(2));
    step(&mut scheduler, "pv v class=std", later);
    let said = short(&scheduler.step(Event::Tick, later), later);
    assert!(said.contains("patch PersistentVolume v") && said.contains("\"name\":\"b\""), "{said}");
}

#[test]
fn a_parked_pod_waits_for_what_its_volumes_need() {
    let without_room = "node n1 labels=kubernetes.io/hostname=n1\npvc data class=std size=5Gi\nstorage-class std waits\n\
        csi-driver example.com/disk spec.storageCapacity=true\npod a claim=data\n";
    let immediate = "node n1\npvc data class=std\nstorage-class std\npod a claim=data\n";
    for (what, lines, happening, outcome) in [
        ("capacity", without_room, "csi-storage-capacity c class=std room=5Gi on=n1", "selected-node"),
        ("another class's capacity", without_room, "csi-storage-capacity c class=other room=5Gi on=n1", ""),
        ("a volume", without_room, "pv v class=std size=6Gi", "patch PersistentVolume v"),
        (
            "the claim is bound",
            immediate,
            "pv v claim=default/data\npvc data class=std volume=v bound",
            "bind default/a to n1",
        ),
        ("another claim", immediate, "pvc other class=std volume=v bound", ""),
        (
            "the claim comes",
            "node n1\npod a claim=data\n",
            "pv v claim=default/data\npvc data volume=v bound",
            "bind default/a",
        ),
    ] {
        let world = world(lines);
        let mut scheduler = told(&world);
        let first = short(&scheduler.step(Event::Tick, world.now), world.now);
        assert!(first.contains("FailedScheduling"), "{what}: {first}");
        let later = world.now.after(Duration::from_secs(20));
        step(&mut scheduler, happening, later);
        let said = short(&scheduler.step(Event::Tick, later), later);
        assert!(said.contains(outcome) && said.is_empty() == outcome.is_empty(), "{what}: {said}");
    }
}

#[test]
fn what_a_scheduler_before_this_one_began_is_ended() {
    // It chose the node and gave the claim its volume, and neither is to be written again.
    let world = world(
        "node n1 labels=kubernetes.io/hostname=n1\npvc data class=std\nstorage-class std waits\n\
        pv v class=std on=n1 claim=default/data:pvc-data by-controller\npod a claim=data\n",
    );
    let mut scheduler = told(&world);
    assert_eq!(short(&scheduler.step(Event::Tick, world.now), world.now), "");
    let bound = step(&mut scheduler, "pvc data class=std volume=v bound", world.now);
    assert_eq!(bound, "bind default/a to n1\n");
}

#[test]
fn a_node_that_is_gone_was_never_chosen() {
    let world = world("node n1\npvc data class=std selected=gone\nstorage-class std waits\npod a claim=data\n");
    let mut scheduler = told(&world);
    let said = short(&scheduler.step(Event::Tick, world.now), world.now);
    assert!(said.contains("selected-node\":\"n1"), "{said}");
}
