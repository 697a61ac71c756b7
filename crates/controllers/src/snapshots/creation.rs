//! The content of a snapshot that is to be taken of a claim: which class, which driver, which volume, at which node.

use std::collections::BTreeMap;

use corten_api::{
    snapshots::{
        CLAIM_FINALIZER, CONTENT_MANAGED_BY, CONTENT_TOPOLOGY, SECRET_NAME, SECRET_NAMESPACE, VOLUME_SNAPSHOT_CLASSES,
        VOLUME_SNAPSHOT_CONTENTS, VOLUME_SNAPSHOTS, VolumeSnapshot, VolumeSnapshotClass,
    },
    volumes::{CsiSource, LOCAL_DRIVER},
};
use corten_meta::Key;
use corten_reconcile::{Actor, Effect, EventType, Plan, Projection, View, status::exact_patch};
use serde_json::{Value, json};

use super::{snapshot::SnapshotProblem, with_finalizers};
use crate::{
    projections::Node,
    volumes::{Claim, Volume},
};

pub(super) fn plan(view: &View, snapshot: &VolumeSnapshot) -> Result<Plan, SnapshotProblem> {
    let (claim, volume, csi) = source(view, snapshot)?;
    let class = match snapshot.spec.volume_snapshot_class_name.as_deref() {
        Some(name) => named_class(view, name)?,
        None => {
            let class = default_class(view, &csi.driver)?;
            let patch = json!({ "spec": { "volumeSnapshotClassName": class.metadata.name } });
            let effects = vec![exact_patch(VOLUME_SNAPSHOTS, &snapshot.metadata, patch)];
            return Ok(Plan { effects, ..Plan::default() });
        }
    };
    if class.driver != csi.driver {
        let message = format!(
            "Failed to create snapshot content with error VolumeSnapshotClass {} is of driver {}, and the volume is of {}",
            class.metadata.name, class.driver, csi.driver
        );
        return Err(SnapshotProblem::new("SnapshotContentCreationFailed", message, Actor::Author));
    }
    let secret = class.snapshotter_secret(snapshot).map_err(|why| {
        let message = format!("Failed to create snapshot content with error {why}");
        SnapshotProblem::new("SnapshotContentCreationFailed", message, Actor::Operator)
    })?;
    let mut plan = Plan::default();
    // First of all: a claim that goes would take the volume along.
    if let Some(effect) = with_finalizers(Claim::RESOURCE, &claim.metadata, &[CLAIM_FINALIZER]) {
        plan.effects.push(effect);
        return Ok(plan);
    }
    let name = snapshot.metadata.key();
    plan.effects.push(Effect::Create {
        resource: VOLUME_SNAPSHOT_CONTENTS,
        object: content(view, snapshot, volume, csi, (class, secret)),
    });
    plan.effects.push(Effect::Event {
        about: snapshot.reference(),
        event_type: EventType::Normal,
        reason: "CreatingSnapshot",
        message: format!("Waiting for a snapshot {name} to be created by the CSI driver."),
    });
    Ok(plan)
}

fn source<'v>(
    view: &'v View,
    snapshot: &VolumeSnapshot,
) -> Result<(&'v Claim, &'v Volume, &'v CsiSource), SnapshotProblem> {
    let failed = |why: String, actor| {
        let message = format!("Failed to create snapshot content with error {why}");
        SnapshotProblem::new("SnapshotContentCreationFailed", message, actor)
    };
    let name = snapshot.spec.source.persistent_volume_claim_name.as_deref().unwrap_or_default();
    let claim = view.get::<Claim>(&Key::new(&*snapshot.metadata.namespace, name));
    let missing = || failed(format!("persistentvolumeclaim {name:?} not found"), Actor::Author);
    let claim = claim.ok_or_else(missing)?;
    if claim.metadata.is_deleting() && !claim.metadata.finalizers.iter().any(|it| it == CLAIM_FINALIZER) {
        return Err(failed(format!("cannot take a snapshot of the PVC {name}: it is being deleted"), Actor::Author));
    }
    let volume = view.get::<Volume>(&Key::cluster(&*claim.spec.volume_name));
    let bound = volume.filter(|it| it.spec.claim_ref.as_ref().is_some_and(|it| it.uid == claim.metadata.uid));
    let unbound = || {
        let why = format!("the PVC {name} is not yet bound to a PV, will not attempt to take a snapshot");
        failed(why, Actor::Cluster)
    };
    let volume = bound.filter(|_| claim.status.phase == "Bound").ok_or_else(unbound)?;
    let other = || failed(format!("cannot snapshot a non-CSI volume: {}", volume.metadata.name), Actor::Author);
    Ok((claim, volume, volume.spec.csi.as_ref().ok_or_else(other)?))
}

fn classes(view: &View) -> impl Iterator<Item = &VolumeSnapshotClass> {
    view.list_in::<VolumeSnapshotClass>(&VOLUME_SNAPSHOT_CLASSES)
}

fn named_class<'v>(view: &'v View, name: &str) -> Result<&'v VolumeSnapshotClass, SnapshotProblem> {
    let class = view.get_in(&VOLUME_SNAPSHOT_CLASSES, &Key::cluster(name));
    class.ok_or_else(|| {
        let message = format!(
            "Failed to get snapshot class with error volumesnapshotclass.snapshot.storage.k8s.io {name:?} not found"
        );
        SnapshotProblem::new("GetSnapshotClassFailed", message, Actor::Author)
    })
}

fn default_class<'v>(view: &'v View, driver: &str) -> Result<&'v VolumeSnapshotClass, SnapshotProblem> {
    let found: Vec<_> = classes(view).filter(|it| it.driver == driver && it.is_default()).collect();
    let why = match found[..] {
        [class] => return Ok(class),
        [] => "cannot find default snapshot class".to_owned(),
        _ => format!("{} default snapshot classes were found", found.len()),
    };
    let message = format!("Failed to set default snapshot class with error {why}");
    Err(SnapshotProblem::new("SetDefaultSnapshotClassFailed", message, Actor::Operator))
}

fn content(
    view: &View,
    snapshot: &VolumeSnapshot,
    volume: &Volume,
    csi: &CsiSource,
    (class, secret): (&VolumeSnapshotClass, Option<Key>),
) -> serde_json::Value {
    let meta = &snapshot.metadata;
    let mut metadata = json!({ "name": snapshot.content_name() });
    if let Some(secret) = secret {
        metadata["annotations"] = json!({ SECRET_NAME: secret.name, SECRET_NAMESPACE: secret.namespace });
    }
    if let Some(node) = node_of(view, volume, &csi.driver) {
        metadata["labels"] = json!({ CONTENT_MANAGED_BY: node });
    }
    if let Some(topology) = topology_of(volume).filter(|_| csi.driver != LOCAL_DRIVER) {
        metadata["annotations"][CONTENT_TOPOLOGY] = json!(topology.to_string());
    }
    json!({
        "apiVersion": VOLUME_SNAPSHOT_CONTENTS.api_version(),
        "kind": VOLUME_SNAPSHOT_CONTENTS.kind,
        "metadata": metadata,
        "spec": {
            "driver": csi.driver,
            "deletionPolicy": class.deletion_policy,
            "source": { "volumeHandle": csi.volume_handle },
            "sourceVolumeMode": volume.spec.volume_mode.as_deref().unwrap_or("Filesystem"),
            "volumeSnapshotClassName": class.metadata.name,
            "volumeSnapshotRef": {
                "apiVersion": VOLUME_SNAPSHOTS.api_version(),
                "kind": VOLUME_SNAPSHOTS.kind,
                "namespace": meta.namespace,
                "name": meta.name,
                "uid": meta.uid,
                "resourceVersion": meta.resource_version,
            },
        },
    })
}

/// The one node that reaches a volume which says which nodes do. Upstream says it with `--enable-distributed-snapshotting`, for drivers of
/// which each node has its own: of several nodes that reach the volume of a driver of others none is the one.
fn node_of<'v>(view: &'v View, volume: &Volume, driver: &str) -> Option<&'v str> {
    let required = volume.spec.node_affinity.as_ref()?.required.as_ref()?;
    let mut nodes = view.list::<Node>().filter(|it| required.matches(&it.metadata.labels, &it.metadata.name));
    let node = nodes.next()?;
    (driver == LOCAL_DRIVER || nodes.next().is_none()).then_some(&*node.metadata.name)
}

/// The first place that the volume names, by labels of nodes.
fn topology_of(volume: &Volume) -> Option<Value> {
    let term = volume.spec.node_affinity.as_ref()?.required.as_ref()?.node_selector_terms.first()?;
    let expressions = term.match_expressions.iter().filter(|it| it.operator == "In");
    let labels: BTreeMap<&String, &String> = expressions.filter_map(|it| Some((&it.key, it.values.first()?))).collect();
    (!labels.is_empty()).then(|| json!(labels))
}
