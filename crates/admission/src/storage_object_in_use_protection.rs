//! Volumes, claims and classes of attributes get the finalizer that keeps them for as long as they are in use; a loop takes it off.

use corten_api::resources::{PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, VOLUME_ATTRIBUTES_CLASSES};
use corten_cacher::body::BoxFuture;
use corten_meta::Status;
use serde_json::{Value, json};

use super::{Admission, Attributes};

pub(crate) struct StorageObjectInUseProtection;

impl Admission for StorageObjectInUseProtection {
    fn name(&self) -> &'static str {
        "StorageObjectInUseProtection"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            for (resource, finalizer) in [
                (PERSISTENT_VOLUMES, "kubernetes.io/pv-protection"),
                (PERSISTENT_VOLUME_CLAIMS, "kubernetes.io/pvc-protection"),
                (VOLUME_ATTRIBUTES_CLASSES, "kubernetes.io/vac-protection"),
            ] {
                if request.creates(&resource) {
                    protect(object, finalizer);
                }
            }
            Ok(())
        })
    }
}

fn protect(object: &mut Value, finalizer: &str) {
    let finalizers = &mut object["metadata"]["finalizers"];
    match finalizers.as_array_mut() {
        Some(names) if names.iter().any(|it| it == finalizer) => {}
        Some(names) => names.push(finalizer.into()),
        None => *finalizers = json!([finalizer]),
    }
}
