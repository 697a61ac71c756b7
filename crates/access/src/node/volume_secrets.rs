//! Which Secrets those may read who make, attach, grow and remove volumes with the drivers of nodes, and their snapshots: none but
//! what a class names for a claim that has no volume yet, and what a volume or the content of a snapshot names. Upstream's sidecars
//! may read all of them.

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    resources::{PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES},
    snapshots::{VOLUME_SNAPSHOT_CLASSES, VOLUME_SNAPSHOT_CONTENTS, VolumeSnapshotClass, VolumeSnapshotContent},
    storage::v1::StorageClass,
};
use corten_cacher::watch_cache::{Caches, ResourceCache, Stored};
use corten_meta::{Key, Resource};
use corten_provisioner::{controller_secrets_have, provisioner_secret_is};
use serde::de::DeserializeOwned;

use crate::question::{Attributes, ResourceOrPath};

pub(super) const USER: &str = "system:node-volume-provisioner";

/// `None` for what this does not decide; `Err` says why not.
pub(super) fn decide(caches: &Caches, question: &Attributes<'_>) -> Option<Result<(), String>> {
    let ResourceOrPath::Resource { group: "", resource: "secrets", subresource: "", namespace, name } = question.target
    else {
        return None;
    };
    if question.verb != "get" || name.is_empty() {
        return None;
    }
    let secret = (namespace, name);
    let is_named = by_volume(caches, secret)
        || by_class(caches, secret)
        || by_content(caches, secret)
        || by_snapshot_class(caches, secret);
    Some(if is_named { Ok(()) } else { Err("no volume and no class names this Secret for a driver".into()) })
}

fn by_volume(caches: &Caches, secret: (&str, &str)) -> bool {
    let Some(volumes) = caches.get(&PERSISTENT_VOLUMES).map(ResourceCache::snapshot) else { return false };
    // Most volumes name none: they are not read.
    let mut named = volumes.iter().filter(|it| says(it, secret.1)).filter_map(|it| read::<PersistentVolume>(it));
    named.any(|it| controller_secrets_have(&it, secret))
}

fn by_class(caches: &Caches, secret: (&str, &str)) -> bool {
    let all = |resource: &Resource| caches.get(resource).map(ResourceCache::snapshot);
    let (Some(classes), Some(claims)) = (all(&STORAGE_CLASSES), all(&PERSISTENT_VOLUME_CLAIMS)) else { return false };
    let with_secrets = classes.iter().filter(|it| says(it, "provisioner-secret-name"));
    with_secrets.filter_map(|it| read::<StorageClass>(it)).any(|class| {
        let (name, parameters) = (class.metadata.name.unwrap_or_default(), class.parameters.unwrap_or_default());
        let mut claims = claims.iter().filter(|it| says(it, &name)).filter_map(|it| read::<PersistentVolumeClaim>(it));
        claims.any(|claim| waits(&claim, &name) && provisioner_secret_is(&parameters, &claim, secret))
    })
}

fn by_content(caches: &Caches, (namespace, name): (&str, &str)) -> bool {
    let Some(contents) = caches.custom_of(&VOLUME_SNAPSHOT_CONTENTS) else { return false };
    let contents = contents.snapshot();
    let mut named = contents.iter().filter(|it| says(it, name)).filter_map(|it| read::<VolumeSnapshotContent>(it));
    named.any(|it| it.secret().is_some_and(|it| it.namespace == namespace && it.name == name))
}

/// For contents that were there before: the class says with which Secret their snapshots are found.
fn by_snapshot_class(caches: &Caches, (namespace, name): (&str, &str)) -> bool {
    let all = |resource: &Resource| caches.custom_of(resource).map(|it| it.snapshot());
    let (Some(classes), Some(contents)) = (all(&VOLUME_SNAPSHOT_CLASSES), all(&VOLUME_SNAPSHOT_CONTENTS)) else {
        return false;
    };
    let with_secrets = classes.iter().filter(|it| says(it, "snapshotter-list-secret-name"));
    with_secrets.filter_map(|it| read::<VolumeSnapshotClass>(it)).any(|class| {
        let of_class = contents.iter().filter(|it| says(it, &class.metadata.name));
        of_class.filter_map(|it| read::<VolumeSnapshotContent>(it)).any(|content| {
            let spec = &content.spec;
            let is_found = spec.source.snapshot_handle.is_some() && spec.driver == class.driver;
            let is_of_class = spec.volume_snapshot_class_name.as_ref() == Some(&class.metadata.name);
            let secret = class.list_secret(&content.metadata.name);
            is_found && is_of_class && secret.is_ok_and(|it| it.is_some_and(|it| it == Key::new(namespace, name)))
        })
    })
}

/// It is of the class and has no volume yet.
fn waits(claim: &PersistentVolumeClaim, class: &str) -> bool {
    let spec = claim.spec.as_ref();
    spec.is_some_and(|it| {
        it.storage_class_name.as_deref() == Some(class) && it.volume_name.as_deref().unwrap_or_default().is_empty()
    })
}

fn says(object: &Stored, text: &str) -> bool {
    memchr::memmem::find(object.value(), text.as_bytes()).is_some()
}

fn read<T: DeserializeOwned>(object: &Stored) -> Option<T> {
    serde_json::from_slice(object.value()).ok()
}
