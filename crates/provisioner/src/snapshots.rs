//! Contents of snapshots that drivers of this node are to take or remove: what upstream's sidecar csi-snapshotter does, with
//! `--node-deployment` where a driver's volumes are on nodes.

use std::{collections::BTreeMap, sync::Arc};

use corten_api::snapshots::{
    BEING_CREATED, BEING_DELETED, CONTENT_FINALIZER, VolumeSnapshotClass, VolumeSnapshotContent,
};
use corten_meta::Time;
use serde_json::{Value, json};

use crate::words::{DriverFacts, Finding, Job, Snapshotted, Taking};

/// All classes that are known; whether those that are not are not there.
pub(crate) type Classes<'c> = (&'c BTreeMap<String, Arc<VolumeSnapshotClass>>, bool);

/// What there is to do about a content, which is this node's to look after; or why it cannot be done.
pub(crate) fn job(
    content: &VolumeSnapshotContent,
    driver: &DriverFacts,
    classes: Classes<'_>,
    now: Time,
) -> Option<Result<Job, String>> {
    let meta = &content.metadata;
    if content.spec.driver != driver.name || !driver.snapshots {
        return None;
    }
    let is_being_created = meta.annotations.contains_key(BEING_CREATED);
    let is_taken = content.spec.source.volume_handle.is_some();
    // What was begun is ended first: who knows what the driver has made?
    if meta.is_deleting() && !(is_taken && is_being_created) {
        return removal(content).map(Ok);
    }
    if content.status.ready_to_use == Some(true) && content.status.snapshot_handle.is_some() && !is_being_created {
        return None;
    }
    let name = meta.name.clone();
    if let Some(handle) = &content.spec.source.snapshot_handle {
        let secret = match class_of(content, classes)? {
            Ok(class) => class.map_or(Ok(None), |it| it.list_secret(&name)),
            Err(why) => Err(why),
        };
        let (driver, handle) = (driver.name.clone(), handle.clone());
        let job = |secret| Job::FindSnapshot(Finding { content: name, driver, handle, secret, asked_at: now });
        return Some(secret.map(job));
    }
    taking(content, driver, classes, now)
}

/// The content's class, where it names one. `None`: it may come yet.
fn class_of<'c>(
    content: &VolumeSnapshotContent,
    (classes, are_known): Classes<'c>,
) -> Option<Result<Option<&'c VolumeSnapshotClass>, String>> {
    let Some(name) = content.spec.volume_snapshot_class_name.as_ref() else { return Some(Ok(None)) };
    match classes.get(name) {
        Some(class) => Some(Ok(Some(&**class))),
        None if are_known => Some(Err(format!("failed to get snapshot class {name:?}: not found"))),
        None => None,
    }
}

fn taking(
    content: &VolumeSnapshotContent,
    driver: &DriverFacts,
    classes: Classes<'_>,
    now: Time,
) -> Option<Result<Job, String>> {
    let volume = content.spec.source.volume_handle.clone()?;
    let parameters = match class_of(content, classes)? {
        Ok(class) => class.map(VolumeSnapshotClass::driver_parameters).unwrap_or_default(),
        Err(why) => return Some(Err(why)),
    };
    Some(Ok(Job::TakeSnapshot(Taking {
        content: content.metadata.name.clone(),
        driver: driver.name.clone(),
        name: format!("snapshot-{}", content.spec.volume_snapshot_ref.uid),
        volume,
        parameters,
        secret: content.secret(),
        asked_at: now,
    })))
}

/// Kept ones are let go by who looks after all of them: no driver has to do with it.
fn removal(content: &VolumeSnapshotContent) -> Option<Job> {
    let meta = &content.metadata;
    let is_unbound = content.spec.volume_snapshot_ref.uid.is_empty();
    let is_held = meta.finalizers.iter().any(|it| it == CONTENT_FINALIZER);
    let may_go = is_unbound || meta.annotations.contains_key(BEING_DELETED);
    let (driver, handle) = (content.spec.driver.clone(), content.handle().map(str::to_owned));
    (is_held && may_go && !content.is_kept()).then(|| Job::RemoveSnapshot {
        content: meta.name.clone(),
        driver,
        handle,
        secret: content.secret(),
    })
}

/// The content's status after its driver has it.
pub fn snapshot_status(taken: &Snapshotted) -> Value {
    json!({
        "snapshotHandle": taken.handle,
        "creationTime": taken.created_at,
        "restoreSize": i64::try_from(taken.bytes).unwrap_or(i64::MAX),
        "readyToUse": taken.is_ready,
        "error": null,
    })
}

/// The content's status after its driver was asked for a snapshot that was there before. As the sidecar
/// (`checkandUpdateContentStatusOperation`), one of a driver that lists none is believed to be there, and to be of now.
pub fn snapshot_found(finding: &Finding, found: Option<&Snapshotted>) -> Value {
    let mut told = found.cloned().unwrap_or(Snapshotted { is_ready: true, ..Snapshotted::default() });
    told.handle.clone_from(&finding.handle);
    if told.created_at == 0 {
        told.created_at = finding.asked_at.unix_millis().saturating_mul(1_000_000);
    }
    snapshot_status(&told)
}

/// The content's status after its driver refused.
pub fn snapshot_failed(taking: &Taking, why: &str) -> Value {
    unready(not_taken(&taking.volume, why), taking.asked_at)
}

/// The content's status after its driver did not find the snapshot.
pub fn snapshot_not_found(finding: &Finding, why: &str) -> Value {
    unready(not_listed(&finding.content, why), finding.asked_at)
}

fn unready(message: String, at: Time) -> Value {
    json!({ "readyToUse": false, "error": { "message": message, "time": at.whole_seconds() } })
}

pub(crate) fn not_listed(content: &str, why: &str) -> String {
    format!("Failed to check and update snapshot content: failed to list snapshot for content {content}: {why:?}")
}

pub(crate) fn not_taken(volume: &str, why: &str) -> String {
    format!("Failed to check and update snapshot content: failed to take snapshot of the volume {volume}: {why:?}")
}
