//! What comes of several keys that are asked about side by side, as the runner does.

use std::collections::BTreeSet;

use corten_meta::Key;
use corten_reconcile::{Controller, Effect, View, Wake, fixture::World};

use super::AttachDetach;

/// All that the objects of the world wake.
fn keys(view: &View) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    for watch in AttachDetach.watches() {
        for (_, meta) in view.all_meta().filter(|it| *it.0 == watch.resource) {
            match watch.wake {
                Wake::Itself => keys.extend([meta.key()]),
                Wake::With(of) => keys.extend(of(view, meta)),
                _ => {}
            }
        }
    }
    keys
}

fn effects(text: &str) -> Vec<Effect> {
    let world = World::parse(text).expect("a world");
    let view = world.view(&AttachDetach.watches());
    keys(&view).iter().flat_map(|it| AttachDetach.reconcile(&view, it, world.now).effects).collect()
}

fn creates(text: &str) -> usize {
    effects(text).iter().filter(|it| matches!(it, Effect::Create { .. })).count()
}

/// None of the plans knows of the others: together they must not attach the volume twice.
#[test]
fn a_volume_for_one_node_is_given_to_one_of_two_that_are_asked_about_at_once() {
    let world = |modes: &str| {
        format!(
            "node n1\nnode n2\npvc data volume=a bound modes={modes}\n\
             pv a driver=d modes={modes} claim=default/data:pvc-data phase=Bound\n\
             pod one claim=data node=n1\npod two claim=data node=n2\n"
        )
    };
    assert_eq!(creates(&world("RWO")), 1);
    assert_eq!(creates(&world("RWOP")), 1);
    assert_eq!(creates(&world("RWX")), 2);
}

/// Two PersistentVolumes that name the same volume of a driver are one volume.
#[test]
fn a_volume_that_two_objects_stand_for_is_attached_once() {
    let world = "node n1\nnode n2\n\
        pvc x volume=a bound\npv a driver=d claim=default/x:pvc-x phase=Bound spec.csi.volumeHandle=same\n\
        pvc y volume=b bound\npv b driver=d claim=default/y:pvc-y phase=Bound spec.csi.volumeHandle=same\n\
        pod one claim=x node=n1\npod two claim=y node=n2\n";
    assert_eq!(creates(world), 1);
}

#[test]
fn who_waits_is_told_ever_more_rarely() {
    let world = World::parse(
        "node n1\nnode n2\npvc data volume=a bound\npv a driver=d claim=default/data:pvc-data phase=Bound\n\
         volume-attachment csi-1 of=d/a on=n2 attached\npod one claim=data node=n1\npod two claim=data node=n2\n",
    );
    let world = world.expect("a world");
    let (mut view, key) = (world.view(&AttachDetach.watches()), Key::new("volumes", "d^a"));
    let (mut now, mut told) = (world.now, Vec::new());
    while told.len() < 11 {
        let plan = AttachDetach.reconcile(&view, &key, now);
        for effect in plan.effects {
            match effect {
                Effect::Event { message, about, .. } => {
                    assert_eq!(message, "Multi-Attach error for volume \"a\" Volume is already used by pod(s) two");
                    assert_eq!(about.name, "one");
                    told.push(now.unix_millis() - world.now.unix_millis());
                }
                Effect::Remember { note } => view.record_note(&key, note),
                other => panic!("{other}"),
            }
        }
        now = plan.wake_at.expect("it is looked at again");
    }
    let pauses: Vec<i64> = told.windows(2).map(|it| it[1] - it[0]).collect();
    assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 122_000, 122_000]);
}
