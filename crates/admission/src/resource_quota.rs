//! Keeps every namespace within its quotas, exactly: what an object costs is added to `status.used` in the commit that
//! stores the object, on condition that the quota is still as it was read. A namespace without a quota pays one lookup.
//!
//! Writes to a namespace with quotas take turns, so that they wait for each other instead of failing on each other. The
//! turn is only politeness: what keeps the count exact, over a crash too, is the condition.

mod cached;

use std::sync::Arc;

use corten_api::resources::{PODS, RESOURCE_QUOTAS};
use corten_cacher::{
    body::BoxFuture,
    watch_cache::{Stored, encode},
};
use corten_kinds::{KINDS, Subresource};
use corten_meta::{Resource, Status};
use corten_policies::quota;
use corten_store::{Compare, Operation as StoreOperation, Txn};
use serde_json::Value;
use tokio::sync::SemaphorePermit;

use self::cached::Cached;
use super::{
    Admission, Attributes, Operation,
    commit_hook::{CommitHook, Write, WritePart},
    refusal::forbidden,
};

pub(crate) struct ResourceQuota;

impl Admission for ResourceQuota {
    fn name(&self) -> &'static str {
        "ResourceQuota"
    }

    fn validate<'a>(&'a self, request: &'a Attributes<'a>, object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async move {
            if is_count(request) {
                return never_too_low(request, object).await;
            }
            // A write that is meant is checked where it is charged.
            if request.dry_run && is_counted(request) {
                charges(request, object)?;
            }
            Ok(())
        })
    }
}

/// Charges the namespace's quotas in the commit that stores the object.
pub(crate) struct Charges;

impl CommitHook for Charges {
    fn concerns(&self, write: &Write<'_>) -> bool {
        let request = write.request;
        if write.new.is_none() || !is_counted(request) {
            return false;
        }
        let resource = &request.kind.resource;
        let counts = |it: &Arc<Stored>| {
            quota::amounts(&it.draft()["status"]["hard"]).keys().any(|it| quota::counts(it, resource))
        };
        quotas(request).iter().any(counts)
    }

    fn begin<'a>(&'a self, write: &'a Write<'a>) -> BoxFuture<'a, Option<Box<dyn WritePart + 'a>>> {
        Box::pin(async {
            let request = write.request;
            let turn = request.cluster.namespace_locks.acquire(request.namespace).await;
            Some(Box::new(Charge { request, object: write.new?, _turn: turn }) as Box<dyn WritePart>)
        })
    }
}

struct Charge<'a> {
    request: &'a Attributes<'a>,
    object: &'a Value,
    _turn: SemaphorePermit<'a>,
}

impl WritePart for Charge<'_> {
    fn add_to(&self, txn: &mut Txn) -> Result<(), Status> {
        let charges = charges(self.request, self.object)?;
        txn.compares.extend(charges.compares);
        txn.operations.extend(charges.operations);
        Ok(())
    }

    /// A quota changed under the attempt: its loop counts, too.
    fn contention(&self) -> Option<Status> {
        let quotas = quotas(self.request);
        Some(Status::stale(&RESOURCE_QUOTAS, quotas.first().map_or("", |it| it.name())))
    }
}

/// Creations, and changes of what may come to cost more. Subresources cost nothing, but a Pod may grow by `resize`.
fn is_counted(request: &Attributes<'_>) -> bool {
    let resource = &request.kind.resource;
    if request.namespace.is_empty() || !resource.namespaced {
        return false;
    }
    match (request.operation, request.subresource) {
        (Operation::Create, None) => true,
        (Operation::Update, None) => quota::is_counted_on_update(resource),
        (Operation::Update, Some(Subresource::Resize)) => *resource == PODS,
        _ => false,
    }
}

fn quotas(request: &Attributes<'_>) -> Vec<Arc<Stored>> {
    let cache = request.cluster.caches().get(&RESOURCE_QUOTAS).expect("quotas are a row of the table");
    cache.snapshot().range(request.namespace, None).cloned().collect()
}

/// What is to be written along with the object.
///
/// # Errors
/// 403 where a quota would be exceeded or cannot tell.
fn charges(request: &Attributes<'_>, object: &Value) -> Result<Txn, Status> {
    let stored = quotas(request);
    let mut parsed: Vec<Value> = stored.iter().map(|it| it.draft()).collect();
    let now = request.cluster.now();
    let neighbours = Cached::of(request);
    let charged = quota::charge(&parsed, &request.kind.resource, object, request.old, now, &neighbours)
        .map_err(|reason| forbidden(request, object, &reason))?;
    let cache = request.cluster.caches().get(&RESOURCE_QUOTAS).expect("quotas are a row of the table");
    let mut txn = Txn::default();
    for (at, used) in charged {
        parsed[at]["status"]["used"] = quota::written(&used);
        let key = cache.store_key(request.namespace, stored[at].name());
        txn.compares.push(Compare { key: key.clone(), mod_revision: stored[at].revision() });
        txn.operations.push(StoreOperation::Put { key, value: encode(&RESOURCE_QUOTAS, &parsed[at]) });
    }
    Ok(txn)
}

/// Is it a new count of what a quota's objects cost?
fn is_count(request: &Attributes<'_>) -> bool {
    request.kind.resource == RESOURCE_QUOTAS
        && request.operation == Operation::Update
        && request.subresource == Some(Subresource::Status)
}

/// Whoever counts may look at objects that are older than the quota: a count that is less than before must hold now.
async fn never_too_low(request: &Attributes<'_>, quota: &Value) -> Result<(), Status> {
    let before = quota::amounts(&request.old.unwrap_or(&Value::Null)["status"]["used"]);
    let claimed = quota::amounts(&quota["status"]["used"]);
    let fell: Vec<&String> = claimed
        .iter()
        .filter(|(name, it)| before.get(*name).is_none_or(|before| *it < before))
        .map(|it| it.0)
        .collect();
    if fell.is_empty() {
        return Ok(());
    }
    let caches = request.cluster.caches();
    let revision = quota["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse().ok()).unwrap_or_default();
    // What was charged at this revision is in the caches by then.
    caches.until(|| (caches.applied() >= revision).then_some(())).await;
    let objects: Vec<(&'static Resource, Value)> = KINDS
        .iter()
        .filter(|kind| kind.is_stored() && kind.resource.namespaced)
        .filter(|kind| fell.iter().any(|it| quota::counts(it, &kind.resource)))
        .flat_map(|kind| {
            let snapshot = request.cluster.cache(kind).snapshot();
            let objects: Vec<_> =
                snapshot.range(request.namespace, None).map(|it| (&kind.resource, it.draft())).collect();
            objects
        })
        .collect();
    let objects = objects.iter().map(|(resource, it)| (*resource, it));
    let is = quota::used(&quota["spec"], objects, request.cluster.now(), &Cached::of(request));
    if fell.iter().any(|name| claimed.get(*name) < is.get(*name)) {
        return Err(Status::stale(&RESOURCE_QUOTAS, request.name));
    }
    Ok(())
}
