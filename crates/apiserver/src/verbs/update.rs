//! UPDATE, and the one way by which every other verb changes an object that is there.

use std::sync::Arc;

use bytes::Bytes;
use corten_cacher::{
    body::Response,
    codec::Form,
    watch_cache::{Stored, versions},
};
use corten_conversion::ROUNDS_MAX;
use corten_kinds::{Kind, MetadataChecks, Policy, Subresource, UpdateRules};
use corten_meta::{Status, Violation, number};
use http::StatusCode;
use serde_json::Value;

use super::{
    body, create,
    guaranteed_update::GuaranteedUpdate,
    managed::{self, Tracked},
    metadata,
    request_scope::RequestScope,
    respond,
    write::{self, WriteOutcome},
    write_request::WriteRequest,
};
use crate::context::Context;

pub(crate) async fn update(ctx: &mut Context, target: &RequestScope, form: Form) -> Result<Response, Status> {
    managed::check_options(ctx, false)?;
    let mut body = body::object(ctx, &target.asked).await?;
    versions::to_stored(&target.asked, &mut body);
    metadata::rename(&mut body, target)?;
    let part = Part::of(target);
    let json = change(ctx, target, part, &mut |_, _| Ok(body.clone())).await?;
    respond::object(ctx, StatusCode::OK, &target.asked, json, form)
}

/// Which part of the object a change may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All but what its policy keeps.
    Main,
    Status,
    /// A Namespace's `spec.finalizers`.
    Finalizers,
    /// What approvers say of a CertificateSigningRequest.
    Approval,
    /// A part only this kind has: its policy takes and checks it.
    Particular(Subresource),
    /// The server's own change: taken as it is.
    Own,
}

impl Part {
    pub(crate) fn of(target: &RequestScope) -> Self {
        match target.subresource {
            Some(Subresource::Status) => Self::Status,
            Some(Subresource::Finalize) => Self::Finalizers,
            Some(Subresource::Approval) => Self::Approval,
            Some(it @ (Subresource::EphemeralContainers | Subresource::Resize)) => Self::Particular(it),
            _ => Self::Main,
        }
    }
}

/// Makes the new object out of the stored one.
pub(crate) type Make<'a> = &'a mut (dyn FnMut(&mut Context, &Value) -> Result<Value, Status> + Send);

/// As [`Make`], where the change may know already who owns what after it.
pub(super) type MakeOwned<'a> =
    &'a mut (dyn FnMut(&mut Context, &Value) -> Result<(Value, Option<Tracked>), Status> + Send);

/// Reads, changes and stores an object, again where another write came between, unless the change names a revision. Gives
/// the object as it is then.
pub(crate) async fn change(
    ctx: &mut Context,
    target: &RequestScope,
    part: Part,
    make: Make<'_>,
) -> Result<Bytes, Status> {
    change_owned(ctx, target, part, &mut |ctx, old| Ok((make(ctx, old)?, None))).await
}

pub(super) async fn change_owned(
    ctx: &mut Context,
    target: &RequestScope,
    part: Part,
    make: MakeOwned<'_>,
) -> Result<Bytes, Status> {
    let mut update = GuaranteedUpdate::begin(ctx);
    loop {
        // What an attempt has made of the object is gone before the next one waits for its turn.
        if let Some(json) = attempt(ctx, target, part, make).await? {
            return Ok(json);
        }
        update.again(target).await?;
    }
}

/// Gives the object as it is then; `None`: another write came between.
async fn attempt(
    ctx: &mut Context,
    target: &RequestScope,
    part: Part,
    make: MakeOwned<'_>,
) -> Result<Option<Bytes>, Status> {
    let current = target.current(ctx)?;
    let seen = target.converted(ctx, current.clone()).await?;
    let (mut draft, is_whole) = ctx.state.caches().draft(target.cache(ctx), &seen);
    if target.kind.is_custom() {
        versions::from_stored(&target.kind, Arc::make_mut(&mut draft));
    }
    let old = &*draft;
    if !is_whole && !replaces(ctx, target) {
        return Err(write::too_deep(target, "it was stored too deeply nested: it can be replaced or deleted"));
    }
    let (asked, tracked) = made(ctx, target, make, old).await?;
    preconditions(ctx, target, &asked, &current)?;
    let (mut new, owners) = prepared(ctx, target, part, asked, tracked, old).await?;
    if part == Part::Main {
        write::warn(ctx, target, &new, Some(old));
    }
    // An object that is stored in another version than it is written in, or under another key, is stored again, though nothing
    // changes: that is how stored objects are migrated (`origState.stale` of `GuaranteedUpdate`).
    let is_written_so = !target.kind.is_custom() || *current.version() == *target.kind.storage_resource().version;
    let is_same = new == *old && is_whole;
    if is_same && is_written_so && !write::is_stale(ctx, target).await? {
        return Ok(Some(versions::json(&target.kind, &seen)));
    }
    // An object that is only stored in another form keeps the times in its managedFields
    // (`IgnoreManagedFieldsTimestampsTransformer`).
    if let Some(owners) = owners.filter(|_| !is_same) {
        managed::put(&mut new, &owners);
    }
    if ctx.dry_run() {
        return write::pretend(ctx, target, &new, Some(current.revision)).await.map(Some);
    }
    let asked = WriteRequest::update(ctx, target, old);
    if is_over(&target.kind, &new) {
        let is_gone = write::remove(&asked, current.revision).await?;
        return Ok(is_gone.then(|| write::last(target, &new, current.revision)));
    }
    match write::put(&asked, &mut new, current.revision).await? {
        WriteOutcome::Done(json, revision) => {
            write::keep_draft(ctx, target, revision, &json, new);
            write::shown(ctx, target, json).await.map(Some)
        }
        _ => Ok(None),
    }
}

/// Makes the new object, once more where it asked for an object in a version that nobody had made yet.
async fn made(
    ctx: &mut Context,
    target: &RequestScope,
    make: MakeOwned<'_>,
    old: &Value,
) -> Result<(Value, Option<Tracked>), Status> {
    let Some(memo) = &target.memo else { return make(ctx, old) };
    let warnings = ctx.warnings.clone();
    for _ in 0..ROUNDS_MAX {
        ctx.warnings.clone_from(&warnings);
        let made = make(ctx, old);
        if !memo.is_wanting() {
            return made;
        }
        ctx.state.conversion().answer(memo, ctx.served.kinds()).await?;
    }
    Err(Status::internal("the versions of the object do not come to an end"))
}

/// Does the request bring the whole object? All else would lose the part of the stored one that is too deep to be read.
fn replaces(ctx: &Context, target: &RequestScope) -> bool {
    ctx.info.verb == "update" && target.subresource.is_none()
}

/// `resourceVersion` and `uid` in a change say which object and which state of it is meant.
fn preconditions(ctx: &Context, target: &RequestScope, asked: &Value, current: &Stored) -> Result<(), Status> {
    let metadata = &asked["metadata"];
    let revision = metadata["resourceVersion"].as_str().unwrap_or_default();
    if matches!(revision, "" | "0") {
        if ctx.info.verb == "update" && !target.policy().allows_unconditional_update() {
            let violation = Violation::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            // This message names the resource where all others name the kind (`rest.BeforeUpdate`).
            let mut named = target.resource().clone();
            named.kind = named.plural.clone();
            return Err(Status::invalid(&named, &target.name, &[violation]));
        }
    } else {
        match number::unsigned(revision) {
            Ok(revision) if revision == current.revision => {}
            Ok(_) => return Err(Status::stale(target.resource(), &target.name)),
            Err(error) => {
                let violation = Violation::invalid("metadata.resourceVersion", format!("{revision:?}"), &error);
                return Err(Status::invalid(target.resource(), &target.name, &[violation]));
            }
        }
    }
    let uid = metadata["uid"].as_str().unwrap_or_default();
    // A patch that changes it is refused by validation.
    if !uid.is_empty() && uid != current.uid() && ctx.info.verb != "patch" {
        let detail = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            current.key,
            current.uid()
        );
        return Err(Status::conflict(target.resource(), &target.name, &detail));
    }
    Ok(())
}

/// The object as it would be stored: kept parts put back, admitted, counted, validated. With the owners it gets if anything
/// else of it differs, where only their times do.
async fn prepared(
    ctx: &Context,
    target: &RequestScope,
    part: Part,
    mut asked: Value,
    tracked: Option<Tracked>,
    old: &Value,
) -> Result<(Value, Option<String>), Status> {
    let (kind, policy) = (&target.kind, target.policy());
    if part == Part::Own {
        return Ok((asked, None));
    }
    let sent = managed::sent(&mut asked);
    if part == Part::Main {
        create::defaulted(target, policy, &mut asked)?;
    } else {
        asked = merged(kind, policy, part, asked, old);
    }
    let tracked = match tracked {
        Some(tracked) => tracked,
        None => managed::after_update(ctx, target, old, &asked, &sent).await,
    };
    let mut new = if part == Part::Main { merged(kind, policy, part, asked, old) } else { asked };
    kind.schema.complete(&mut new);
    let mut changes = metadata::carry_over(&mut new, old);
    let owners = if tracked.same {
        managed::put(&mut new, managed::text_of(old));
        Some(tracked.text)
    } else {
        managed::put(&mut new, &tracked.text);
        None
    };
    let request = WriteRequest::update(ctx, target, old);
    if request.admit(&mut new).await? {
        // Admission may not change what the subresource may not change: `rest.BeforeUpdate` prepares the object after admission.
        let owners = managed::text_of(&new).to_owned();
        new = merged(kind, policy, part, new, old);
        kind.schema.complete(&mut new);
        changes.extend(metadata::carry_over(&mut new, old));
        managed::put(&mut new, &owners);
    }
    if part == Part::Main {
        request.complete(&mut new)?;
    }
    let is_spec = matches!(part, Part::Main | Part::Particular(_));
    let counts_status = policy.counts_status();
    if is_spec
        && policy.counts_changes()
        && (spec_differs(&new, old, counts_status) || counted_metadata_differs(kind, &new, old))
    {
        metadata::count_up(&mut new);
    }
    let checks = if part == Part::Main { target.asked.policy.metadata_checks() } else { MetadataChecks::Change };
    let mut violations = metadata::change_violations(&target.asked, &new, old, &changes, checks);
    violations.extend(managed::violations(&sent));
    violations.extend(corten_kinds::bounds::violations(kind, &new, Some(old)));
    violations.extend(request.broken_rules(|| violations_of(target, part, &new, old)).await);
    if !violations.is_empty() {
        return Err(Status::invalid(&kind.resource, &target.name, &violations));
    }
    request.validate(&new).await?;
    Ok((new, owners))
}

/// What the kind's own rules say of a change of this part.
fn violations_of(target: &RequestScope, part: Part, new: &Value, old: &Value) -> Vec<Violation> {
    let policy = &target.kind.policy;
    match part {
        Part::Main => rules(&*target.asked.policy, new, old),
        Part::Status => target.policy().validate_status_update(new, old),
        Part::Approval => policy.validate_approval(new, old),
        Part::Particular(subresource) => policy.validate_part(subresource, new, old),
        _ => Vec::new(),
    }
}

fn rules(policy: &dyn Policy, new: &Value, old: &Value) -> Vec<Violation> {
    let mut found = Vec::new();
    if policy.update_rules() == UpdateRules::WholeThenChange {
        found.extend(policy.validate(new));
    }
    found.extend(policy.validate_update(new, old));
    if policy.update_rules() == UpdateRules::ChangeThenWhole {
        found.extend(policy.validate(new));
    }
    found
}

fn merged(kind: &Kind, policy: &dyn Policy, part: Part, mut asked: Value, old: &Value) -> Value {
    match part {
        Part::Main | Part::Own => {
            policy.prepare_update(&mut asked, old);
            asked
        }
        Part::Status => {
            if policy.defaults_status() {
                // One that is too large is refused with the whole object.
                let _ = policy.try_default(&mut asked);
            }
            let mut new = old.clone();
            corten_kinds::keep(&mut new, &asked, "status");
            take_metadata(&mut new, &asked);
            for name in policy.status_keeps() {
                corten_kinds::keep(&mut new["metadata"], &old["metadata"], name);
            }
            policy.prepare_status_update(&mut new, old);
            new
        }
        Part::Approval => {
            let mut new = old.clone();
            // `csrApprovalStrategy`: labels and all else of metadata is taken, too.
            take_metadata(&mut new, &asked);
            let conditions = &asked["status"]["conditions"];
            if conditions.is_array() || new["status"]["conditions"].is_array() {
                new["status"]["conditions"] = conditions.clone();
            }
            new
        }
        Part::Particular(subresource) => {
            kind.policy.default(&mut asked);
            kind.policy.take_part(subresource, &asked, old)
        }
        Part::Finalizers => {
            let mut new = old.clone();
            corten_kinds::keep(&mut new["spec"], &asked["spec"], "finalizers");
            new
        }
    }
}

/// What no update may change of it is put back for all of them, by `carry_over`.
fn take_metadata(new: &mut Value, asked: &Value) {
    if asked["metadata"].is_object() {
        corten_kinds::keep(new, asked, "metadata");
    }
}

/// Does metadata differ that counts as the spec does?
fn counted_metadata_differs(kind: &Kind, new: &Value, old: &Value) -> bool {
    kind.policy.counted_metadata().iter().any(|it| new["metadata"].get(*it) != old["metadata"].get(*it))
}

/// Does anything but metadata differ? And, where it has a subresource of its own, but status?
fn spec_differs(new: &Value, old: &Value, counts_status: bool) -> bool {
    let keys = |it: &Value| -> Vec<String> {
        let names = it.as_object().into_iter().flatten().map(|(name, _)| name.clone());
        names.filter(|it| it != "metadata" && (counts_status || it != "status")).collect()
    };
    keys(new).iter().chain(&keys(old)).any(|it| new.get(it) != old.get(it))
}

/// Was this the last thing a deletion waited for?
fn is_over(kind: &Kind, object: &Value) -> bool {
    let metadata = &object["metadata"];
    let namespace_is_kept = kind.subresources.contains(&Subresource::Finalize)
        && object["spec"]["finalizers"].as_array().is_some_and(|it| !it.is_empty());
    !metadata["deletionTimestamp"].is_null()
        && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or_default() == 0
        && metadata::finalizers(object).is_empty()
        && !namespace_is_kept
}
