//! A claim grows only where it is bound and its storage class allows it.

use corten_api::resources::{PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES};
use corten_cacher::body::BoxFuture;
use corten_meta::{Quantity, Status};
use serde_json::Value;

use super::{Admission, Attributes, Operation, refusal::forbidden};

pub(crate) struct PersistentVolumeClaimResize;

impl Admission for PersistentVolumeClaimResize {
    fn name(&self) -> &'static str {
        "PersistentVolumeClaimResize"
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, claim: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            let is_update = request.kind.resource == PERSISTENT_VOLUME_CLAIMS
                && request.operation == Operation::Update
                && request.subresource.is_none();
            let Some(old) = request.old.filter(|_| is_update) else { return Ok(()) };
            if storage(claim) <= storage(old) {
                return Ok(());
            }
            let reason = if old["status"]["phase"] != "Bound" {
                "Only bound persistent volume claims can be expanded"
            } else if !may_grow(request, claim, old) {
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"
            } else {
                return Ok(());
            };
            Err(forbidden(request, claim, reason))
        })
    }
}

fn storage(claim: &Value) -> Quantity {
    let text = claim["spec"]["resources"]["requests"]["storage"].as_str().unwrap_or_default();
    text.parse().unwrap_or_default()
}

fn class(claim: &Value) -> &str {
    let beta = claim["metadata"]["annotations"]["volume.beta.kubernetes.io/storage-class"].as_str();
    beta.or_else(|| claim["spec"]["storageClassName"].as_str()).unwrap_or_default()
}

fn may_grow(request: &Attributes<'_>, claim: &Value, old: &Value) -> bool {
    let name = class(claim);
    let classes = request.cluster.caches().get(&STORAGE_CLASSES).expect("storage classes are a row of the table");
    !name.is_empty()
        && name == class(old)
        && classes.get("", name).is_some_and(|it| it.parse()["allowVolumeExpansion"] == true)
}
