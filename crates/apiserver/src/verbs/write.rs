//! The last step of every write: one conditional commit, answered when the caches hold it.

use bytes::Bytes;
use corten_kinds::Subresource;
use corten_meta::Status;
use corten_store::{Compare, Entry, Operation, Outcome, Revision, Txn};
use serde_json::Value;

use super::target::Target;
use crate::{
    admission::{self, Attributes},
    chain::ADMISSION,
    codec::encode,
    request::Context,
    watch_cache::{head, spliced},
};

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
    let value = encode(target.resource(), object);
    let key = target.cache(ctx).store_key(&target.namespace, &target.name);
    let operation = Operation::Put { key: key.clone(), value: value.clone() };
    Ok(match commit(ctx, key, expected, operation).await? {
        Some(revision) => Written::Done(with_version(target, &value, revision)),
        None => Written::Conflict,
    })
}

/// Deletes the object if its last change was at `expected`. True where it did.
pub(super) async fn remove(ctx: &Context, target: &Target, expected: Revision) -> Result<bool, Status> {
    let key = target.cache(ctx).store_key(&target.namespace, &target.name);
    Ok(commit(ctx, key.clone(), expected, Operation::Delete { key }).await?.is_some())
}

/// What a dry run answers: the object as it would be, at its old revision.
pub(super) fn pretend(target: &Target, object: &Value, revision: Option<Revision>) -> Bytes {
    let value = encode(target.resource(), object);
    match revision {
        Some(revision) => with_version(target, &value, revision),
        None => value,
    }
}

fn with_version(target: &Target, value: &[u8], revision: Revision) -> Bytes {
    let mut json = Vec::with_capacity(value.len() + 64);
    spliced(value, head(target.resource()).len(), revision, &mut json);
    json.into()
}

async fn commit(
    ctx: &Context,
    key: Bytes,
    expected: Revision,
    operation: Operation,
) -> Result<Option<Revision>, Status> {
    let store = &ctx.server.config().store;
    let compares = vec![Compare { key, mod_revision: expected }];
    let outcome = store.commit(Txn { compares, operations: vec![operation] }).await.map_err(|it| failed(&it))?;
    let (committed, seen) = match outcome {
        Outcome::Committed(revision) => (Some(revision), revision),
        Outcome::Conflict(Some(Entry { mod_revision, .. })) => (None, mod_revision),
        Outcome::Conflict(None) => (None, store.revision()),
    };
    // Whoever gets this answer, and whoever tries again, reads what was written. The request's deadline ends the wait.
    let caches = ctx.server.caches();
    caches.until(|| (caches.applied() >= seen).then_some(())).await;
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
    pub(super) operation: admission::Operation,
    pub(super) old: Option<&'a Value>,
}

impl<'a> Asked<'a> {
    fn attributes(&self) -> Attributes<'a> {
        Attributes {
            ctx: self.ctx,
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
        for plugin in ADMISSION {
            plugin.admit(&attributes, object).await?;
        }
        Ok(())
    }

    /// Lets every plugin refuse the object.
    pub(super) async fn validate(&self, object: &Value) -> Result<(), Status> {
        let attributes = self.attributes();
        for plugin in ADMISSION {
            plugin.validate(&attributes, object).await?;
        }
        Ok(())
    }
}
