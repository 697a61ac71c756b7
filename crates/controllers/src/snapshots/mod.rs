//! Snapshots of volumes: which content is whose, and when either may go; what external-snapshotter's snapshot-controller does.
//! Taking and removing them is the drivers', at their nodes.
//!
//! A key with a namespace is a VolumeSnapshot's, one without a VolumeSnapshotContent's.

mod content;
mod creation;
mod deletion;
mod snapshot;

use corten_api::{
    resources,
    snapshots::{
        APP_MANAGED_BY, MANAGER, VOLUME_SNAPSHOT_CLASSES, VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS, VolumeSnapshot,
        VolumeSnapshotClass, VolumeSnapshotContent,
    },
};
use corten_meta::{Key, ObjectMeta, Resource, Time};
use corten_reconcile::{Controller, Effect, Plan, Verb, View, Wake, Watch, Write, served, status::exact_patch};
use serde_json::{Value, json};

use crate::{
    projections::{Definition, Node, defined},
    volumes::{Claim, Volume},
};

pub struct VolumeSnapshots;

impl Controller for VolumeSnapshots {
    fn name(&self) -> &'static str {
        "volume-snapshot"
    }

    fn component(&self) -> String {
        "snapshot-controller".into()
    }

    fn watches(&self) -> Vec<Watch> {
        let is_any = |view: &View| {
            view.list_in::<VolumeSnapshot>(&VOLUME_SNAPSHOTS).next().is_some()
                || view.list_in::<VolumeSnapshotContent>(&VOLUME_SNAPSHOT_CONTENTS).next().is_some()
        };
        vec![
            Watch::new::<Definition>(Wake::Nobody).leading_to(own_watches),
            served::registrations(Wake::Nobody),
            Watch::new::<Claim>(Wake::With(claim_changed)).once(is_any),
            Watch::new::<Volume>(Wake::With(volume_changed)).once(is_any),
            Watch::new::<Node>(Wake::Nobody).once(is_any),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Create, resource: VOLUME_SNAPSHOT_CONTENTS, fields: &[] },
                Write { verb: Verb::Delete, resource: VOLUME_SNAPSHOT_CONTENTS, fields: &[] },
                Write {
                    verb: Verb::Patch,
                    resource: VOLUME_SNAPSHOT_CONTENTS,
                    fields: &["metadata.annotations", "metadata.finalizers", "spec.volumeSnapshotRef"],
                },
                Write {
                    verb: Verb::Patch,
                    resource: VOLUME_SNAPSHOTS,
                    fields: &["metadata.finalizers", "spec.volumeSnapshotClassName", "status"],
                },
                Write {
                    verb: Verb::Patch,
                    resource: resources::PERSISTENT_VOLUME_CLAIMS,
                    fields: &["metadata.finalizers"],
                },
            ]
        }
    }

    fn about(&self) -> Option<Resource> {
        Some(VOLUME_SNAPSHOTS)
    }

    fn subject(&self, _view: &View, key: &Key) -> Option<(Resource, Key)> {
        let resource = if key.namespace.is_empty() { VOLUME_SNAPSHOT_CONTENTS } else { VOLUME_SNAPSHOTS };
        Some((resource, key.clone()))
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        if !is_ours(view) {
            return Plan::default();
        }
        if key.namespace.is_empty() {
            return content_of(view, &key.name).map(|it| content::plan(view, it)).unwrap_or_default();
        }
        let Some(snapshot) = view.get_in::<VolumeSnapshot>(&VOLUME_SNAPSHOTS, key) else {
            // What protected its claim is taken away by whoever of its namespace is looked at next.
            return Plan::default();
        };
        if snapshot.metadata.is_deleting() {
            deletion::plan(view, snapshot)
        } else {
            snapshot::plan(view, snapshot, now)
        }
    }
}

/// The definitions are Corten's, and no other controller looks after their objects.
fn is_ours(view: &View) -> bool {
    [VOLUME_SNAPSHOTS, VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOT_CLASSES].iter().all(|it| {
        let key = Key::cluster(format!("{}.{}", it.plural, it.group));
        let labels = view.get::<Definition>(&key).map(|it| &it.metadata.labels);
        labels.and_then(|it| it.get(APP_MANAGED_BY)).is_some_and(|it| it == MANAGER)
    })
}

fn own_watches(view: &View) -> Vec<Watch> {
    let is_served = |resource: &Resource| defined(view).any(|it| it == *resource);
    if !is_ours(view) || ![VOLUME_SNAPSHOTS, VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOT_CLASSES].iter().all(is_served) {
        return Vec::new();
    }
    vec![
        Watch::of::<VolumeSnapshot>(VOLUME_SNAPSHOTS, Wake::With(snapshot_changed)),
        Watch::of::<VolumeSnapshotContent>(VOLUME_SNAPSHOT_CONTENTS, Wake::With(content_changed)),
        Watch::of::<VolumeSnapshotClass>(VOLUME_SNAPSHOT_CLASSES, Wake::With(class_changed)),
    ]
}

fn snapshots(view: &View) -> impl Iterator<Item = &VolumeSnapshot> {
    view.list_in::<VolumeSnapshot>(&VOLUME_SNAPSHOTS)
}

fn content_of<'v>(view: &'v View, name: &str) -> Option<&'v VolumeSnapshotContent> {
    view.get_in(&VOLUME_SNAPSHOT_CONTENTS, &Key::cluster(name))
}

/// Itself, and its content: of one that is gone, those that were for it.
fn snapshot_changed(view: &View, meta: &ObjectMeta) -> Vec<Key> {
    let mut keys = vec![meta.key()];
    match view.get_in::<VolumeSnapshot>(&VOLUME_SNAPSHOTS, &meta.key()) {
        Some(snapshot) => keys.push(Key::cluster(snapshot.content_name())),
        None => {
            let contents = view.list_in::<VolumeSnapshotContent>(&VOLUME_SNAPSHOT_CONTENTS);
            let of = |it: &&VolumeSnapshotContent| {
                let to = &it.spec.volume_snapshot_ref;
                to.namespace == meta.namespace && to.name == meta.name
            };
            keys.extend(contents.filter(of).map(|it| it.metadata.key()));
            // Others of the claim, which it may have protected.
            keys.extend(
                view.in_namespace_of::<VolumeSnapshot>(&VOLUME_SNAPSHOTS, &meta.namespace).map(|it| it.metadata.key()),
            );
        }
    }
    keys
}

/// Itself, its snapshot, and those that name it.
fn content_changed(view: &View, meta: &ObjectMeta) -> Vec<Key> {
    let to = content_of(view, &meta.name).map(|it| {
        let of = &it.spec.volume_snapshot_ref;
        Key::new(&*of.namespace, &*of.name)
    });
    let named = snapshots(view).filter(|it| it.content_name() == meta.name).map(|it| it.metadata.key());
    named.chain(to).chain([meta.key()]).collect()
}

fn class_changed(view: &View, _: &ObjectMeta) -> Vec<Key> {
    snapshots(view).filter(|it| !it.is_ready()).map(|it| it.metadata.key()).collect()
}

/// Snapshots that are taken of it, and those it is made of.
fn claim_changed(view: &View, claim: &ObjectMeta) -> Vec<Key> {
    let waits = |it: &&VolumeSnapshot| {
        it.metadata.is_deleting() || it.spec.source.persistent_volume_claim_name.as_ref() == Some(&claim.name)
    };
    let found = view.in_namespace_of::<VolumeSnapshot>(&VOLUME_SNAPSHOTS, &claim.namespace).filter(waits);
    found.map(|it| it.metadata.key()).collect()
}

fn volume_changed(view: &View, volume: &ObjectMeta) -> Vec<Key> {
    let claim = view.get::<Volume>(&volume.key()).and_then(Volume::claim);
    let Some(claim) = claim.and_then(|it| view.get::<Claim>(&it)) else { return Vec::new() };
    claim_changed(view, &claim.metadata)
}

/// A patch of an object's finalizers, as they are to be.
fn finalizers(resource: Resource, meta: &ObjectMeta, all: &[&str]) -> Effect {
    let all = if all.is_empty() { Value::Null } else { json!(all) };
    exact_patch(resource, meta, json!({ "metadata": { "finalizers": all } }))
}

/// Adds those that are not there; `None`: all are.
fn with_finalizers(resource: Resource, meta: &ObjectMeta, wanted: &[&str]) -> Option<Effect> {
    let mut all: Vec<&str> = meta.finalizers.iter().map(|it| &**it).collect();
    all.extend(wanted.iter().filter(|it| !meta.finalizers.iter().any(|held| held == *it)));
    (all.len() > meta.finalizers.len()).then(|| finalizers(resource, meta, &all))
}

/// Takes those away that are there; `None`: none is.
fn without_finalizers(resource: Resource, meta: &ObjectMeta, unwanted: &[&str]) -> Option<Effect> {
    let left: Vec<&str> = meta.finalizers.iter().map(|it| &**it).filter(|it| !unwanted.contains(it)).collect();
    (left.len() < meta.finalizers.len()).then(|| finalizers(resource, meta, &left))
}
