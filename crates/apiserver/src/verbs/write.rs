//! The last step of every write: one conditional commit, answered when the caches hold it.

use std::borrow::Cow;

use bytes::Bytes;
use corten_admission::{
    HostPortChoice,
    commit::{Commit, Write},
};
use corten_cacher::{
    body::BODY_BYTES_MAX,
    watch_cache::{encode, head, key_of, owners_fit, spliced, versions},
};
use corten_kinds::{Kind, KindRef, Verb};
use corten_meta::{
    Resource, Status,
    depth::{self, EXCEEDED, LEVELS_MAX},
};
use corten_store::{Compare, Entry, Operation, Outcome, Revision, Txn};
use serde_json::Value;

use super::{request_scope::RequestScope, write_request::WriteRequest};
use crate::context::Context;

/// How often a write is tried again when what it commits beside its object has changed, such as what a quota counts.
const CONTENTIONS_MAX: usize = 6;
/// How often a write is begun anew: its definition has meanwhile come to store yet another version, or another server was faster to
/// give ports of the Pod's node.
const BEGINNINGS_MAX: usize = 16;

pub(super) enum WriteOutcome {
    /// The object as it is stored, with its new `resourceVersion`, which is the number: see [`shown`].
    Done(Bytes, Revision),
    /// Another write came first; the caches hold it now.
    Conflict,
}

/// Stores `object` where its last change was at `expected` (0: where nothing is), and with it what its kind writes along.
/// The object gets what is chosen for it in its commit.
pub(super) async fn put(
    asked: &WriteRequest<'_>,
    object: &mut Value,
    expected: Revision,
) -> Result<WriteOutcome, Status> {
    let attributes = asked.attributes();
    for _ in 0..BEGINNINGS_MAX {
        let choice = HostPortChoice::make(&attributes, &*asked.ctx.state.config().store, object).await?;
        let target = &*served_now(asked.ctx, asked.target)?;
        let stored = &*storage_form(asked.ctx, target, object).await?;
        let value = bounded(asked.ctx, target, stored)?;
        let put = Put { asked, target, read: as_read(target, stored), value, expected, choice, is_bound: true };
        match put.with_hooks(object, stored).await? {
            Some(WriteOutcome::Conflict) if put.choice.is_some() && !put.is_stale() => {}
            Some(written) => return Ok(written),
            None => {}
        }
    }
    if asked.target.kind.is_custom() { Err(outdated(asked.target)) } else { Ok(WriteOutcome::Conflict) }
}

/// As [`put`], in the version that `stored` is in: that of the object which it takes the place of.
pub(super) async fn put_as_it_is(
    asked: &WriteRequest<'_>,
    object: &Value,
    stored: &Value,
    expected: Revision,
) -> Result<WriteOutcome, Status> {
    let value = bounded(asked.ctx, asked.target, stored)?;
    let read = as_read(asked.target, stored);
    let put = Put { asked, target: asked.target, read, value, expected, choice: None, is_bound: false };
    put.with_hooks(object, stored).await?.ok_or_else(|| outdated(asked.target))
}

/// The object in the version that it is written in.
async fn storage_form<'v>(ctx: &Context, target: &RequestScope, object: &'v Value) -> Result<Cow<'v, Value>, Status> {
    let is_written_so =
        !target.kind.is_custom() || object["apiVersion"] == target.kind.storage_resource().api_version();
    if is_written_so {
        return Ok(Cow::Borrowed(object));
    }
    ctx.state.conversion().to_storage(&target.kind, object.clone()).await.map(Cow::Owned)
}

/// The target with the row that is served now. While an object was admitted or converted its definition may have come to store
/// another version, and all that was stored before may have been migrated to that: who then wrote the older one would leave what
/// nobody migrates, and nobody can read once that version is gone.
fn served_now<'t>(ctx: &Context, target: &'t RequestScope) -> Result<Cow<'t, RequestScope>, Status> {
    if !target.kind.is_custom() {
        return Ok(Cow::Borrowed(target));
    }
    let kind = row_now(ctx, &target.kind).ok_or_else(|| outdated(target))?;
    if kind.storage_resource() == target.kind.storage_resource() {
        return Ok(Cow::Borrowed(target));
    }
    let custom = ctx.state.caches().custom(&kind).ok_or_else(|| outdated(target))?;
    Ok(Cow::Owned(RequestScope { kind, custom: Some(custom), ..target.clone() }))
}

/// The row of a custom resource as it is served now: of the same version, or of another where that is no longer served though its
/// definition still has it.
fn row_now(ctx: &Context, kind: &Kind) -> Option<KindRef> {
    let Resource { group, version, plural, .. } = &kind.resource;
    let served = ctx.state.served();
    let knows = |it: &KindRef| {
        let is_same = it.resource.group == *group && it.resource.plural == *plural;
        is_same && it.versions.as_ref().is_some_and(|it| it.by_name(version).is_some())
    };
    served.kinds().by_path(group, version, plural).or_else(|| served.kinds().custom().find(knows))
}

fn outdated(target: &RequestScope) -> Status {
    let detail = "the versions of its definition have changed; please try again";
    Status::conflict(target.resource(), &target.name, detail)
}

/// No object is made of a definition that is being deleted.
pub(crate) fn leaving(resource: &Resource) -> Status {
    let mut status = Status::method_not_allowed(resource, "create");
    status.message = "create not allowed while custom resource definition is terminating".into();
    status
}

/// Keeps what was written as a DOM: who changes it next need not read it.
pub(super) fn keep_draft(ctx: &Context, target: &RequestScope, revision: Revision, json: &Bytes, object: Value) {
    let key = key_of(&target.namespace, &target.name);
    ctx.state.caches().keep_draft(target.cache(ctx), &key, revision, json.len(), object);
}

/// The answer to a write: what was stored, or would have been, and not what was sent.
pub(super) async fn shown(ctx: &Context, target: &RequestScope, json: Bytes) -> Result<Bytes, Status> {
    if !target.kind.is_custom() || json.starts_with(head(&target.kind.resource).as_bytes()) {
        return Ok(json);
    }
    // The watchers of this version want the same.
    let stored = target.current(ctx).ok().filter(|it| it.json() == json);
    if let Some(stored) = stored {
        let object = target.converted(ctx, stored).await?;
        return Ok(versions::json(&target.asked, &object));
    }
    let object = depth::read(&json).map_err(Status::internal)?.value;
    let object = ctx.state.conversion().object(&target.asked, object).await?;
    Ok(object.to_string().into())
}

struct Put<'a> {
    asked: &'a WriteRequest<'a>,
    /// As it is served; the request may know an older row.
    target: &'a RequestScope,
    value: Bytes,
    /// Where it is read as more than is stored: see [`as_read`].
    read: Option<Bytes>,
    expected: Revision,
    choice: Option<HostPortChoice<'a>>,
    /// Must it be in the version that objects are written in when it is committed?
    is_bound: bool,
}

/// The revision, where nothing else came first; an error where nothing was written for another reason.
type Committed = Result<Option<Revision>, Box<Status>>;

/// What became of all attempts. An error instead: nobody knows whether the last one was committed.
enum Attempted {
    Written(WriteOutcome),
    /// Nothing was written.
    Refused(Box<Status>),
    /// Nothing was written, because objects are written in another version now.
    Outdated,
}

impl Put<'_> {
    /// `None` where the object must be converted again.
    async fn with_hooks(&self, object: &Value, stored: &Value) -> Result<Option<WriteOutcome>, Status> {
        let ctx = self.asked.ctx;
        let attributes = self.asked.attributes();
        let (store, reservations) = (&*ctx.state.config().store, &ctx.reservations);
        let write = Write { request: &attributes, store, reservations, new: Some(object) };
        let commit = Commit::begin(&write).await;
        let attempted = {
            let is_whole = self.read.is_none();
            let _announcement = self.target.cache(ctx).announce(&self.value, is_whole.then_some(stored));
            self.attempt(&commit).await?
        };
        let is_committed = matches!(attempted, Attempted::Written(WriteOutcome::Done(..)));
        finish(ctx, commit, is_committed).await?;
        match attempted {
            Attempted::Written(written) => Ok(Some(written)),
            Attempted::Refused(status) => Err(*status),
            Attempted::Outdated => Ok(None),
        }
    }

    async fn attempt(&self, commit: &Commit<'_>) -> Result<Attempted, Status> {
        for _ in 0..CONTENTIONS_MAX {
            let mut txn = self.txn();
            if let Err(status) = commit.add_to(&mut txn) {
                return Ok(Attempted::Refused(Box::new(status)));
            }
            // The last look: the store has the transaction before anything else is waited for.
            if self.is_outdated() {
                return Ok(Attempted::Outdated);
            }
            if self.expected == 0 && self.is_leaving() {
                return Ok(Attempted::Refused(Box::new(leaving(self.target.resource()))));
            }
            let committed = match self.commit(txn).await? {
                Ok(committed) => committed,
                Err(unwritten) => return Ok(Attempted::Refused(unwritten)),
            };
            if let Some(revision) = committed {
                let json = with_version(self.target, self.read.as_ref().unwrap_or(&self.value), revision);
                return Ok(Attempted::Written(WriteOutcome::Done(json, revision)));
            }
            if commit.contention().is_none() || self.is_stale() {
                return Ok(Attempted::Written(WriteOutcome::Conflict));
            }
        }
        Ok(match commit.contention() {
            Some(status) => Attempted::Refused(Box::new(status)),
            None => Attempted::Written(WriteOutcome::Conflict),
        })
    }

    /// Has its definition come to store another version since the object was converted?
    fn is_outdated(&self) -> bool {
        let kind = &self.target.kind;
        let is_same = |it: KindRef| it.storage_resource() == kind.storage_resource();
        self.is_bound && kind.is_custom() && !row_now(self.asked.ctx, kind).is_some_and(is_same)
    }

    /// Is its definition being deleted? Who then looks for objects that are left waits for those that were announced before.
    fn is_leaving(&self) -> bool {
        let kind = &self.target.kind;
        kind.is_custom() && row_now(self.asked.ctx, kind).is_none_or(|it| !it.allows(Verb::Create))
    }

    /// The object alone.
    fn txn(&self) -> Txn {
        let target = self.target;
        let key = target.cache(self.asked.ctx).store_key(&target.namespace, &target.name);
        let mut txn = Txn {
            compares: vec![Compare { key: key.clone(), mod_revision: self.expected }],
            operations: vec![Operation::Put { key, value: self.value.clone() }],
        };
        self.choice.iter().for_each(|it| it.add_to(&mut txn));
        txn
    }

    async fn commit(&self, txn: Txn) -> Result<Committed, Status> {
        let operation = if self.expected == 0 { "create" } else { "update" };
        commit_txn(self.asked.ctx, self.target, operation, txn).await
    }

    /// Has another write of the object come first?
    fn is_stale(&self) -> bool {
        let target = self.target;
        let current = target.cache(self.asked.ctx).get(&target.namespace, &target.name);
        current.map_or(0, |it| it.revision) != self.expected
    }
}

/// Is an object that does not change to be written all the same, because today it is stored in another form? As in etcd3's
/// `GuaranteedUpdate`: so rewriting every object rotates the key it is encrypted with.
pub(super) async fn is_stale(ctx: &Context, target: &RequestScope) -> Result<bool, Status> {
    let config = ctx.state.config();
    if (config.encryption.is_none() && !config.store.is_shared()) || ctx.dry_run() {
        return Ok(false);
    }
    let key = target.cache(ctx).store_key(&target.namespace, &target.name);
    ctx.state.config().store.is_stale(&key).await.map_err(|it| failed(&it))
}

/// Tells the author what the kind has to say of the object; once, however often the write is tried.
pub(super) fn warn(ctx: &mut Context, target: &RequestScope, new: &Value, old: Option<&Value>) {
    ctx.warnings.extend(target.policy().warnings(new, old));
}

/// Deletes the object if its last change was at `expected`. True where it did.
pub(super) async fn remove(asked: &WriteRequest<'_>, expected: Revision) -> Result<bool, Status> {
    let (ctx, target) = (asked.ctx, asked.target);
    let key = target.cache(ctx).store_key(&target.namespace, &target.name);
    let mut txn = Txn {
        compares: vec![Compare { key: key.clone(), mod_revision: expected }],
        operations: vec![Operation::Delete { key }],
    };
    let attributes = asked.attributes();
    let (store, reservations) = (&*ctx.state.config().store, &ctx.reservations);
    let write = Write { request: &attributes, store, reservations, new: None };
    let hooks = Commit::begin(&write).await;
    let refusal = hooks.add_to(&mut txn).err();
    let committed = match refusal {
        Some(refusal) => Err(Box::new(refusal)),
        None => commit_txn(ctx, target, "delete", txn).await?,
    };
    finish(ctx, hooks, matches!(committed, Ok(Some(_)))).await?;
    committed.map(|it| it.is_some()).map_err(|it| *it)
}

/// Tells the hooks what became of the commit.
async fn finish(ctx: &Context, hooks: Commit<'_>, is_committed: bool) -> Result<(), Status> {
    if is_committed {
        hooks.committed();
        return Ok(());
    }
    hooks.refused(&*ctx.state.config().store).await.map_err(|it| failed(&it))
}

/// What a dry run answers: the object as it would be, at its old revision.
///
/// # Errors
/// As the write itself would answer where the object goes beyond a bound.
pub(super) async fn pretend(
    ctx: &Context,
    target: &RequestScope,
    object: &Value,
    revision: Option<Revision>,
) -> Result<Bytes, Status> {
    let stored = storage_form(ctx, target, object).await?;
    let value = bounded(ctx, target, &stored)?;
    let value = as_read(target, &stored).unwrap_or(value);
    let json = match revision {
        Some(revision) => with_version(target, &value, revision),
        None => value,
    };
    shown(ctx, target, json).await
}

/// As [`pretend`], in the version that the object is in.
pub(super) fn pretend_as_it_is(
    ctx: &Context,
    target: &RequestScope,
    object: &Value,
    revision: Revision,
) -> Result<Bytes, Status> {
    let value = bounded(ctx, target, object)?;
    Ok(with_version(target, &as_read(target, object).unwrap_or(value), revision))
}

/// What the last write of an object answers, which was never stored.
pub(super) fn last(target: &RequestScope, object: &Value, revision: Revision) -> Bytes {
    with_version(target, &encode(form_of(target, object), object), revision)
}

/// What the marks of a deletion take, and who set them.
const MARKS_BYTES: usize = 4096;

/// The object's encoding, where everybody can read what was written: within the depth that every reader takes, and no larger
/// than what a client could send back. One that is larger already may shrink step by step, and go.
fn bounded(ctx: &Context, target: &RequestScope, object: &Value) -> Result<Bytes, Status> {
    let metadata = &object["metadata"];
    let owners = metadata["managedFields"].as_str().unwrap_or_default();
    if !depth::fits(object, LEVELS_MAX) || !owners_fit(owners) {
        return Err(too_deep(target, EXCEEDED));
    }
    let value = encode(form_of(target, object), object);
    let marks = if metadata["deletionTimestamp"].is_null() { 0 } else { MARKS_BYTES };
    let before = || target.current(ctx).map_or(0, |it| it.value().len());
    if value.len() > BODY_BYTES_MAX && value.len() > BODY_BYTES_MAX.max(before()) + marks {
        return Err(Status::too_large(format!("Request entity too large: limit is {BODY_BYTES_MAX}")));
    }
    Ok(value)
}

/// What everybody sees of a custom resource, in answers too, where the store has less: defaults are filled in when it is read.
fn as_read(target: &RequestScope, stored: &Value) -> Option<Bytes> {
    let read = target.kind.versions.as_ref()?.as_read(stored)?;
    Some(encode(form_of(target, &read), &read))
}

pub(super) fn too_deep(target: &RequestScope, reason: &str) -> Status {
    let (resource, name) = (target.resource(), &target.name);
    Status::failure(422, "Invalid", format!("{} {name:?} is invalid: {reason}", resource.kind)).about(resource, name)
}

/// The version an object is in: of a custom resource it says so itself.
fn form_of<'t>(target: &'t RequestScope, object: &Value) -> &'t Resource {
    let version = object["apiVersion"].as_str().and_then(|it| it.rsplit('/').next());
    let known = target.kind.versions.as_ref().zip(version).and_then(|(versions, it)| versions.by_name(it));
    known.map_or(&target.kind.resource, |it| &it.resource)
}

fn with_version(target: &RequestScope, value: &[u8], revision: Revision) -> Bytes {
    let mut json = Vec::with_capacity(value.len() + 64);
    let is_in = |resource: &Resource| value.starts_with(head(resource).as_bytes());
    let versions = target.kind.versions.iter().flat_map(|it| it.iter()).map(|it| &it.resource);
    let resource = versions.into_iter().find(|it| is_in(it)).unwrap_or(&target.kind.resource);
    spliced(value, head(resource).len(), revision, &mut json);
    json.into()
}

/// `operation` is what measurements call it.
///
/// # Errors
/// It is not known whether it was written.
async fn commit_txn(
    ctx: &Context,
    target: &RequestScope,
    operation: &'static str,
    txn: Txn,
) -> Result<Committed, Status> {
    let store = &ctx.state.config().store;
    let begun = tokio::time::Instant::now();
    let outcome = match ctx.fence() {
        Some(fence) => match fence.commit(&**store, txn).await {
            Ok(outcome) => outcome,
            Err(over) => return Ok(Err(Box::new(over))),
        },
        None => store.commit(txn).await,
    };
    ctx.state.metrics().store.wrote(operation, &target.kind.resource, begun.elapsed(), outcome.as_ref().err());
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(error @ (corten_store::Error::Unavailable(_) | corten_store::Error::TooLarge { .. })) => {
            return Ok(Err(Box::new(failed(&error))));
        }
        Err(error) => return Err(failed(&error)),
    };
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
    Ok(Ok(committed))
}

fn failed(error: &corten_store::Error) -> Status {
    match error {
        corten_store::Error::Closed => Status::unavailable("the server is shutting down"),
        corten_store::Error::Unavailable(_) => Status::unavailable(error.to_string()),
        _ => Status::internal(error),
    }
}
