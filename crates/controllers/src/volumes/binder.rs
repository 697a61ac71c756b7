//! Binds claims and volumes to each other, says in which phase each is, and asks provisioners for what is not there.
//!
//! It has three sorts of keys: a claim, a volume, and a class, `class:NAME`. What claims that take any volume of a class get
//! is decided for all of them at once, under the class's key: two claims never reach for the same volume. After
//! pv_controller.go.

use corten_api::{resources, volumes::is_default_class};
use corten_meta::{Key, Named, ObjectMeta, Resource, Time};
use corten_reconcile::{Controller, Plan, Verb, View, Wake, Watch, Write};

use super::{
    claims, classes,
    projections::{Claim, StorageClass, Volume, of_claim, of_class},
    released,
};
use crate::projections::Pod;

pub struct VolumeBinder;

impl Controller for VolumeBinder {
    fn name(&self) -> &'static str {
        "persistent-volume-binder"
    }

    fn component(&self) -> String {
        "persistentvolume-controller".into()
    }

    fn watches(&self) -> Vec<Watch> {
        let is_any = |view: &View| view.list::<Claim>().next().is_some();
        vec![
            Watch::new::<Claim>(Wake::With(claim_changed)),
            Watch::new::<Volume>(Wake::With(volume_changed)),
            Watch::new::<StorageClass>(Wake::With(class_changed)),
            Watch::new::<Pod>(Wake::With(pod_changed)).once(is_any),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write {
                    verb: Verb::Patch,
                    resource: resources::PERSISTENT_VOLUMES,
                    fields: &["metadata.annotations", "spec.claimRef", "status"],
                },
                Write {
                    verb: Verb::Patch,
                    resource: resources::PERSISTENT_VOLUME_CLAIMS,
                    fields: &["metadata.annotations", "spec.volumeName", "spec.storageClassName", "status"],
                },
            ]
        }
    }

    fn about(&self) -> Option<Resource> {
        Some(resources::PERSISTENT_VOLUME_CLAIMS)
    }

    fn subject(&self, _view: &View, key: &Key) -> Option<(Resource, Key)> {
        match class_in(key) {
            Some("") => None,
            Some(class) => Some((resources::STORAGE_CLASSES, Key::cluster(class))),
            None if key.namespace.is_empty() => Some((resources::PERSISTENT_VOLUMES, key.clone())),
            None => Some((resources::PERSISTENT_VOLUME_CLAIMS, key.clone())),
        }
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        if let Some(class) = class_in(key) {
            return classes::bind_all(view, class);
        }
        if key.namespace.is_empty() {
            return view.get::<Volume>(key).map(|it| released::plan(view, it, now)).unwrap_or_default();
        }
        view.get::<Claim>(key).map(|it| claims::plan(view, it, now)).unwrap_or_default()
    }
}

/// No volume is called so: a colon stands in no name.
fn class_in(key: &Key) -> Option<&str> {
    key.name.strip_prefix("class:").filter(|_| key.namespace.is_empty())
}

fn class_key(class: &str) -> Key {
    Key::cluster(of_class(class))
}

/// The claim itself, the volumes that are for it, and what decides over its class.
fn claim_changed(view: &View, claim: &ObjectMeta) -> Vec<Key> {
    let key = claim.key();
    let volumes = view.found_by::<Volume>(&of_claim(&claim.namespace, &claim.name));
    let mut keys: Vec<Key> = volumes.map(|it| it.metadata.key()).collect();
    if let Some(seen) = view.get::<Claim>(&key) {
        if seen.takes_any() {
            keys.push(class_key(seen.class()));
        } else if !seen.spec.volume_name.is_empty() {
            keys.push(Key::cluster(&*seen.spec.volume_name));
        }
    }
    keys.push(key);
    keys
}

/// The volume itself, the claim it is for, those that name it, and what decides over its class.
fn volume_changed(view: &View, volume: &ObjectMeta) -> Vec<Key> {
    let claims = view.found_by::<Claim>(&volume.name);
    let mut keys: Vec<Key> = claims.map(|it| it.metadata.key()).collect();
    keys.push(volume.key());
    if let Some(seen) = view.get::<Volume>(&volume.key()) {
        match seen.claim() {
            Some(claim) => keys.push(claim),
            None => keys.extend(seen.found_by().map(Key::cluster)),
        }
    }
    keys
}

/// The claims that take any volume of the class; and those without a class, which may get this one.
fn class_changed(view: &View, class: &ObjectMeta) -> Vec<Key> {
    let without = is_default_class(class).then(|| view.found_by::<Claim>(&of_class("")));
    let claims = view.found_by::<Claim>(&of_class(&class.name)).chain(without.into_iter().flatten());
    claims.map(|it| it.metadata.key()).chain([class_key(&class.name)]).collect()
}

/// The claims that wait for a pod that uses them.
fn pod_changed(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    let Some(pod) = view.get::<Pod>(&pod.key()) else {
        // Which claims a pod used that is gone nobody knows any more.
        let waiting = view.in_namespace::<Claim>(&pod.namespace).filter(|it| it.takes_any());
        return waiting.map(|it| it.metadata.key()).collect();
    };
    let claims = pod.claims().map(|it| Key::new(&*pod.metadata.namespace, it));
    claims.filter(|it| view.get::<Claim>(it).is_some_and(Claim::takes_any)).collect()
}
