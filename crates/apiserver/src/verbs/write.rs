//! The last step of every write: one conditional commit, answered when the caches hold it.

use bytes::Bytes;
use corten_admission::{Attributes, PLUGINS, resource_quota, services};
use corten_api::resources::SERVICES;
use corten_cacher::{
    body::BODY_BYTES_MAX,
    watch_cache::{encode, head, owners_fit, spliced},
};
use corten_kinds::Subresource;
use corten_meta::{
    Status,
    depth::{self, EXCEEDED, LEVELS_MAX},
};
use corten_store::{Compare, Entry, Operation, Outcome, Revision, Txn};
use serde_json::Value;

use super::target::Target;
use crate::context::Context;

/// How often a write that named no revision is tried again when another write came between.
pub(super) const ATTEMPTS: usize = 6;

pub(super) enum Written {
    /// The object with its new `resourceVersion`.
    Done(Bytes),
    /// Another write came first; the caches hold it now.
    Conflict,
}

/// Stores `object` where its last change was at `expected` (0: where nothing is).
pub(super) async fn put(ctx: &Context, target: &Target, object: &Value, expected: Revision) -> Result<Written, Status> {
    put_along(ctx, target, object, expected, Txn::default()).await
}

/// As [`put`], together with `along`: all of it is written, or nothing.
pub(super) async fn put_along(
    ctx: &Context,
    target: &Target,
    object: &Value,
    expected: Revision,
    mut along: Txn,
) -> Result<Written, Status> {
    let value = bounded(ctx, target, object)?;
    let key = target.cache(ctx).store_key(&target.namespace, &target.name);
    along.compares.insert(0, Compare { key: key.clone(), mod_revision: expected });
    along.operations.insert(0, Operation::Put { key, value: value.clone() });
    let operation = if expected == 0 { "create" } else { "update" };
    Ok(match commit(ctx, target, operation, along).await? {
        Some(revision) => Written::Done(with_version(target, &value, revision)),
        None => Written::Conflict,
    })
}

/// As [`put`], and in the same commit what the namespace's quotas hold then: the object and its price are never apart.
pub(super) async fn put_counted(asked: &Asked<'_>, object: &Value, expected: Revision) -> Result<Written, Status> {
    let ctx = asked.ctx;
    let Some(change) =
        services::Change::of(&ctx.state.services(), &ctx.claims, asked.target.kind, Some(object), asked.old)
    else {
        return put_charged(asked, object, expected, Txn::default()).await;
    };
    let written = put_charged(asked, object, expected, change.along.clone()).await?;
    match written {
        Written::Done(_) => change.committed(),
        Written::Conflict => change.refused(&*ctx.state.config().store).await.map_err(|it| failed(&it))?,
    }
    Ok(written)
}

/// What the object takes with it is in `along`; what the quotas hold then is added to it.
async fn put_charged(asked: &Asked<'_>, object: &Value, expected: Revision, along: Txn) -> Result<Written, Status> {
    let (ctx, target) = (asked.ctx, asked.target);
    let attributes = asked.attributes();
    let Some(_turn) = resource_quota::turn(&attributes).await else {
        return put_along(ctx, target, object, expected, along).await;
    };
    for _ in 0..ATTEMPTS {
        let mut charges = resource_quota::charges(&attributes, object)?;
        charges.compares.extend(along.compares.iter().cloned());
        charges.operations.extend(along.operations.iter().cloned());
        if let Written::Done(json) = put_along(ctx, target, object, expected, charges).await? {
            return Ok(Written::Done(json));
        }
        let now = target.cache(ctx).get(&target.namespace, &target.name).map_or(0, |it| it.revision);
        if now != expected {
            return Ok(Written::Conflict);
        }
        // It was a quota that changed: its loop counts, too. Or what it takes along is taken: then again in vain.
    }
    Err(resource_quota::busy(&attributes))
}

/// Tells the author what the kind has to say of the object; once, however often the write is tried.
pub(super) fn warn(ctx: &mut Context, target: &Target, new: &Value, old: Option<&Value>) {
    ctx.warnings.extend(target.kind.policy.warnings(new, old));
}

/// Deletes the object if its last change was at `expected`. True where it did.
pub(super) async fn remove(ctx: &Context, target: &Target, expected: Revision) -> Result<bool, Status> {
    let key = target.cache(ctx).store_key(&target.namespace, &target.name);
    let old = (target.kind.resource == SERVICES).then(|| target.current(ctx)).transpose()?.map(|it| it.parse());
    let change = services::Change::of(&ctx.state.services(), &ctx.claims, target.kind, None, old.as_ref());
    let mut txn = change.as_ref().map(|it| it.along.clone()).unwrap_or_default();
    txn.compares.push(Compare { key: key.clone(), mod_revision: expected });
    let reborn = services::reborn(&ctx.state.services(), target.kind, &target.name);
    txn.operations.push(reborn.unwrap_or(Operation::Delete { key }));
    let removed = commit(ctx, target, "delete", txn).await?.is_some();
    if let Some(change) = change.filter(|_| removed) {
        change.committed();
    }
    Ok(removed)
}

/// What a dry run answers: the object as it would be, at its old revision.
///
/// # Errors
/// As the write itself would answer where the object goes beyond a bound.
pub(super) fn pretend(
    ctx: &Context,
    target: &Target,
    object: &Value,
    revision: Option<Revision>,
) -> Result<Bytes, Status> {
    let value = bounded(ctx, target, object)?;
    Ok(match revision {
        Some(revision) => with_version(target, &value, revision),
        None => value,
    })
}

/// What the last write of an object answers, which was never stored.
pub(super) fn last(target: &Target, object: &Value, revision: Revision) -> Bytes {
    with_version(target, &encode(&target.kind.resource, object), revision)
}

/// What the marks of a deletion take, and who set them.
const MARKS_BYTES: usize = 4096;

/// The object's encoding, where everybody can read what was written: within the depth that every reader takes, and no larger
/// than what a client could send back. One that is larger already may shrink step by step, and go.
fn bounded(ctx: &Context, target: &Target, object: &Value) -> Result<Bytes, Status> {
    let metadata = &object["metadata"];
    let owners = metadata["managedFields"].as_str().unwrap_or_default();
    if !depth::fits(object, LEVELS_MAX) || !owners_fit(owners) {
        return Err(too_deep(target, EXCEEDED));
    }
    let value = encode(&target.kind.resource, object);
    let marks = if metadata["deletionTimestamp"].is_null() { 0 } else { MARKS_BYTES };
    let before = || target.current(ctx).map_or(0, |it| it.value().len());
    if value.len() > BODY_BYTES_MAX && value.len() > BODY_BYTES_MAX.max(before()) + marks {
        return Err(Status::too_large(format!("Request entity too large: limit is {BODY_BYTES_MAX}")));
    }
    Ok(value)
}

pub(super) fn too_deep(target: &Target, reason: &str) -> Status {
    let (resource, name) = (target.resource(), &target.name);
    Status::failure(422, "Invalid", format!("{} {name:?} is invalid: {reason}", resource.kind)).about(resource, name)
}

fn with_version(target: &Target, value: &[u8], revision: Revision) -> Bytes {
    let mut json = Vec::with_capacity(value.len() + 64);
    spliced(value, head(&target.kind.resource).len(), revision, &mut json);
    json.into()
}

/// `operation` is what measurements call it.
async fn commit(ctx: &Context, target: &Target, operation: &'static str, txn: Txn) -> Result<Option<Revision>, Status> {
    let store = &ctx.state.config().store;
    let begun = tokio::time::Instant::now();
    let outcome = store.commit(txn).await;
    ctx.state.metrics().store.wrote(operation, &target.kind.resource, begun.elapsed(), outcome.as_ref().err());
    let outcome = outcome.map_err(|it| failed(&it))?;
    let (committed, seen) = match outcome {
        Outcome::Committed(revision) => (Some(revision), revision),
        Outcome::Conflict(Some(Entry { mod_revision, .. })) => (None, mod_revision),
        Outcome::Conflict(None) => (None, store.revision()),
    };
    // Whoever gets this answer, and whoever tries again, reads what was written. The request's deadline ends the wait.
    let caches = ctx.state.caches();
    if caches.applied() < seen {
        ctx.state.help_caches();
        caches.until(|| (caches.applied() >= seen).then_some(())).await;
    }
    Ok(committed)
}

fn failed(error: &corten_store::Error) -> Status {
    match error {
        corten_store::Error::Closed => Status::unavailable("the server is shutting down"),
        _ => Status::internal(error),
    }
}

/// One write as admission sees it.
pub(super) struct Asked<'a> {
    pub(super) ctx: &'a Context,
    pub(super) target: &'a Target,
    pub(super) operation: corten_admission::Operation,
    pub(super) old: Option<&'a Value>,
}

impl<'a> Asked<'a> {
    fn attributes(&self) -> Attributes<'a> {
        Attributes {
            cluster: self.ctx.state.cluster(),
            who: self.ctx.asker_now(),
            notes: &self.ctx.notes,
            operation: self.operation,
            kind: self.target.kind,
            subresource: self.subresource(),
            namespace: &self.target.namespace,
            name: &self.target.name,
            old: self.old,
            dry_run: self.ctx.dry_run(),
        }
    }

    fn subresource(&self) -> Option<Subresource> {
        self.target.subresource
    }

    /// Lets every plugin change the object.
    pub(super) async fn admit(&self, object: &mut Value) -> Result<(), Status> {
        let attributes = self.attributes();
        for plugin in PLUGINS {
            plugin.admit(&attributes, object).await?;
        }
        Ok(())
    }

    /// Lets every plugin refuse the object.
    pub(super) async fn validate(&self, object: &Value) -> Result<(), Status> {
        let attributes = self.attributes();
        for plugin in PLUGINS {
            plugin.validate(&attributes, object).await?;
        }
        Ok(())
    }
}
