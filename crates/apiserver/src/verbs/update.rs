//! UPDATE, and the one way by which every other verb changes an object that is there.

use bytes::Bytes;
use corten_kinds::{Kind, Subresource};
use corten_meta::{Status, Violation};
use http::StatusCode;
use serde_json::Value;

use super::{
    metadata, respond,
    target::Target,
    write::{self, ATTEMPTS, Asked, Written},
};
use crate::{
    admission::Operation,
    codec::{self, Form},
    request::{Context, Response},
    watch_cache::Stored,
};

pub(super) async fn update(ctx: &mut Context, target: &Target, form: Form) -> Result<Response, Status> {
    let mut body = codec::object(ctx, target.kind).await?;
    metadata::rename(&mut body, target)?;
    let part = Part::of(target);
    let json = change(ctx, target, part, &mut |_, _| Ok(body.clone())).await?;
    respond::object(ctx, StatusCode::OK, target.kind, json, form)
}

/// Which part of the object a change may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All but what its policy keeps.
    Main,
    Status,
    /// A Namespace's `spec.finalizers`.
    Finalizers,
    /// The server's own change: taken as it is.
    Own,
}

impl Part {
    pub(super) fn of(target: &Target) -> Self {
        match target.subresource {
            Some(Subresource::Status) => Self::Status,
            Some(Subresource::Finalize) => Self::Finalizers,
            _ => Self::Main,
        }
    }
}

/// Makes the new object out of the stored one.
pub(super) type Make<'a> = &'a mut (dyn FnMut(&mut Context, &Value) -> Result<Value, Status> + Send);

/// Reads, changes and stores an object, again where another write came between, unless the change names a revision. Gives
/// the object as it is then.
pub(super) async fn change(ctx: &mut Context, target: &Target, part: Part, make: Make<'_>) -> Result<Bytes, Status> {
    for _ in 0..ATTEMPTS {
        let current = target.current(ctx)?;
        let old = current.parse();
        let asked = make(ctx, &old)?;
        preconditions(target, &asked, &current)?;
        let new = prepared(ctx, target, part, asked, &old).await?;
        if new == old {
            return Ok(current.json());
        }
        if ctx.dry_run() {
            return Ok(write::pretend(target, &new, Some(current.revision)));
        }
        if is_over(target.kind, &new) {
            if write::remove(ctx, target, current.revision).await? {
                return Ok(write::pretend(target, &new, Some(current.revision)));
            }
            continue;
        }
        if let Written::Done(json) = write::put(ctx, target, &new, current.revision).await? {
            return Ok(json);
        }
    }
    Err(Status::stale(target.resource(), &target.name))
}

/// `resourceVersion` and `uid` in a change say which object and which state of it is meant.
fn preconditions(target: &Target, asked: &Value, current: &Stored) -> Result<(), Status> {
    let metadata = &asked["metadata"];
    let revision = metadata["resourceVersion"].as_str().unwrap_or_default();
    if !matches!(revision, "" | "0") {
        match revision.parse::<u64>() {
            Ok(revision) if revision == current.revision => {}
            Ok(_) => return Err(Status::stale(target.resource(), &target.name)),
            Err(_) => {
                let violation = Violation::invalid(
                    "metadata.resourceVersion",
                    format!("{revision:?}"),
                    "strconv.ParseUint: parsing: invalid syntax",
                );
                return Err(Status::invalid(target.resource(), &target.name, &[violation]));
            }
        }
    }
    let uid = metadata["uid"].as_str().unwrap_or_default();
    if !uid.is_empty() && uid != current.uid() {
        let detail = format!(
            "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
            current.key,
            current.uid()
        );
        return Err(Status::conflict(target.resource(), &target.name, &detail));
    }
    Ok(())
}

/// The object as it would be stored: kept parts put back, admitted, counted, validated.
async fn prepared(ctx: &Context, target: &Target, part: Part, asked: Value, old: &Value) -> Result<Value, Status> {
    let kind = target.kind;
    if part == Part::Own {
        return Ok(asked);
    }
    let mut new = merged(kind, part, asked, old);
    let mut violations = metadata::carry_over(&mut new, old);
    let request = Asked { ctx, target, operation: Operation::Update, old: Some(old) };
    request.admit(&mut new).await?;
    if part == Part::Main && kind.policy.has_generation() && spec_differs(&new, old) {
        metadata::count_up(&mut new);
    }
    violations.extend(metadata::violations(kind, &new));
    if part == Part::Main {
        violations.extend(kind.policy.validate(&new));
        violations.extend(kind.policy.validate_update(&new, old));
    }
    if !violations.is_empty() {
        return Err(Status::invalid(&kind.resource, &target.name, &violations));
    }
    request.validate(&new).await?;
    Ok(new)
}

fn merged(kind: &Kind, part: Part, mut asked: Value, old: &Value) -> Value {
    match part {
        Part::Main | Part::Own => {
            kind.policy.default(&mut asked);
            kind.policy.prepare_update(&mut asked, old);
            asked
        }
        Part::Status => {
            let mut new = old.clone();
            corten_kinds::keep(&mut new, &asked, "status");
            // As upstream: outside the core group a status may not touch labels.
            let names: &[&str] =
                if kind.resource.group.is_empty() { &["labels", "annotations"] } else { &["annotations"] };
            for name in names {
                corten_kinds::keep(&mut new["metadata"], &asked["metadata"], name);
            }
            kind.policy.prepare_status_update(&mut new, old);
            new
        }
        Part::Finalizers => {
            let mut new = old.clone();
            corten_kinds::keep(&mut new["spec"], &asked["spec"], "finalizers");
            new
        }
    }
}

/// Does anything but metadata and status differ?
fn spec_differs(new: &Value, old: &Value) -> bool {
    let keys = |it: &Value| -> Vec<String> {
        let names = it.as_object().into_iter().flatten().map(|(name, _)| name.clone());
        names.filter(|it| !matches!(&**it, "metadata" | "status")).collect()
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
