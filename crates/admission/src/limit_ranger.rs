//! Keeps Pods and volume claims within their namespace's LimitRanges, and gives containers that say nothing their defaults.

use corten_api::resources::{LIMIT_RANGES, PERSISTENT_VOLUME_CLAIMS, PODS};
use corten_cacher::body::BoxFuture;
use corten_kinds::Subresource;
use corten_meta::Status;
use corten_policies::limits;
use serde_json::Value;

use super::{Admission, Attributes, Operation, refusal::forbidden};

pub(crate) struct LimitRanger;

impl Admission for LimitRanger {
    fn name(&self) -> &'static str {
        "LimitRanger"
    }

    fn admit<'a>(&'a self, request: &'a Attributes<'a>, object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if request.creates(&PODS) {
                ranges(request).iter().for_each(|it| limits::fill(it, object));
            }
            Ok(())
        })
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if !is_bounded(request) {
                return Ok(());
            }
            let broken = ranges(request).iter().find_map(|it| limits::broken(it, &request.kind.resource, object));
            broken.map_or(Ok(()), |reason| Err(forbidden(request, object, &reason)))
        })
    }
}

/// As in `SupportsLimit`: a Pod's containers ask for something else only by `resize`, a claim by any update.
fn is_bounded(request: &Attributes<'_>) -> bool {
    let goes = request.old.is_some_and(|it| !it["metadata"]["deletionTimestamp"].is_null());
    let resource = &request.kind.resource;
    !goes
        && match (request.operation, request.subresource) {
            (Operation::Create, None) => *resource == PODS || *resource == PERSISTENT_VOLUME_CLAIMS,
            (Operation::Update, None) => *resource == PERSISTENT_VOLUME_CLAIMS,
            (Operation::Update, Some(Subresource::Resize)) => *resource == PODS,
            _ => false,
        }
}

fn ranges(request: &Attributes<'_>) -> Vec<Value> {
    let cache = request.cluster.caches().get(&LIMIT_RANGES).expect("limit ranges are a row of the table");
    cache.snapshot().range(request.namespace, None).map(|it| it.draft()).collect()
}
