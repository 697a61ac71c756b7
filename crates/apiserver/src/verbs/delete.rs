//! DELETE: at once, or gracefully where the kind has a grace period, and never before the finalizers are gone.

use bytes::Bytes;
use corten_cacher::{answer, body::Response, codec::Form, watch_cache::Stored};
use corten_kinds::Subresource;
use corten_meta::{Details, Status, Time};
use corten_routes::{DeleteOptions, Propagation};
use http::StatusCode;
use serde_json::Value;

use super::{
    body, delete_unreadable,
    guaranteed_update::GuaranteedUpdate,
    metadata::{self, FOREGROUND, ORPHAN},
    request_scope::RequestScope,
    respond,
    write::{self, WriteOutcome},
    write_request::WriteRequest,
};
use crate::context::Context;

/// The options of a deletion: those of the body, or where it has none, of the query.
///
/// # Errors
/// 400 for a body that is none, 422 for options that contradict each other.
pub(super) async fn options(ctx: &mut Context) -> Result<DeleteOptions, Status> {
    let document = body::document_or_none(ctx, DeleteOptions::KIND).await?;
    let options = match document {
        Some(document) => DeleteOptions::of(&document.value)?,
        None => DeleteOptions::of_query(&ctx.info.query)?,
    };
    options.in_dry_run(ctx.dry_run())
}

pub(crate) async fn delete(ctx: &mut Context, target: &RequestScope, form: Form) -> Result<Response, Status> {
    let options = options(ctx).await?;
    if options.is_unreadable {
        delete_unreadable::remove(ctx, target, &options).await?;
        return Ok(answer::json(StatusCode::OK, &gone(target, "")));
    }
    match remove(ctx, target, &options).await? {
        Removed::Waiting(json) => {
            let json = if form == Form::Partial { json } else { write::shown(ctx, target, json).await? };
            respond::object(ctx, StatusCode::OK, &target.asked, json, form)
        }
        Removed::Gone(object) if corten_kinds::returns_deleted_object(target.resource()) => {
            respond::object(ctx, StatusCode::OK, &target.asked, object.json(), form)
        }
        Removed::Gone(object) => Ok(answer::json(StatusCode::OK, &gone(target, object.uid()))),
    }
}

fn gone(target: &RequestScope, uid: &str) -> Status {
    // `finalizeDelete`: this answer says no code.
    let mut status = Status { code: 0, ..Status::success() };
    let resource = target.resource();
    status.details = Some(Details {
        name: target.name.clone(),
        group: resource.group.to_string(),
        kind: resource.plural.to_string(),
        uid: uid.to_owned(),
        ..Details::default()
    });
    status
}

pub(crate) enum Removed {
    /// It stays until its grace period or its finalizers end; as it is stored now.
    Waiting(Bytes),
    /// The object as it last was.
    Gone(std::sync::Arc<Stored>),
}

/// What a deletion makes of the object as it stands.
enum Step {
    Keep,
    Mark(Value),
    Remove,
}

pub(super) async fn remove(ctx: &Context, target: &RequestScope, options: &DeleteOptions) -> Result<Removed, Status> {
    let mut update = GuaranteedUpdate::begin(ctx);
    loop {
        let current = target.current(ctx)?;
        options.check(target.resource(), &target.name, current.uid(), current.revision)?;
        let old = current.draft();
        let asked = WriteRequest::delete(ctx, target, &old, options);
        asked.admit(&mut Value::Null).await?;
        asked.validate(&Value::Null).await?;
        match step(ctx, target, options, &old) {
            Step::Keep => return Ok(Removed::Waiting(current.json())),
            Step::Mark(new) if options.dry_run => {
                let json = write::pretend_as_it_is(ctx, target, &new, current.revision)?;
                return Ok(Removed::Waiting(json));
            }
            Step::Mark(new) => {
                // Only metadata changes: nobody need convert an object so that it can go.
                if let WriteOutcome::Done(json, _) = write::put_as_it_is(&asked, &new, &new, current.revision).await? {
                    return Ok(Removed::Waiting(json));
                }
            }
            Step::Remove if options.dry_run => return Ok(Removed::Gone(current)),
            Step::Remove => {
                if write::remove(&asked, current.revision).await? {
                    return Ok(Removed::Gone(current));
                }
            }
        }
        update.again(target).await?;
    }
}

fn step(ctx: &Context, target: &RequestScope, options: &DeleteOptions, old: &Value) -> Step {
    let mut new = old.clone();
    set_finalizers(&mut new, options.propagation);
    let marked_before = !old["metadata"]["deletionTimestamp"].is_null();
    if let (false, Some(finalizer)) = (marked_before, target.policy().finalizer_of_deletion()) {
        add_finalizer(&mut new, finalizer);
    }
    if target.kind.subresources.contains(&Subresource::Finalize) {
        return namespace_step(ctx, old, new, marked_before);
    }
    let policy = target.policy();
    let asked_grace = options.grace_seconds.map(|it| if it < 0 { 1 } else { it });
    if marked_before {
        let grace = old["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
        match asked_grace {
            // Only ever sooner: a deletion cannot be put off.
            _ if grace == 0 || policy.grace_seconds(old, Some(1)) == 0 => {}
            Some(0) => {}
            Some(asked) if asked < grace => return Step::Mark(sooner(ctx, new, grace, asked)),
            _ if new == *old => return Step::Keep,
            _ => return Step::Mark(new),
        }
    } else {
        let grace = policy.grace_seconds(old, asked_grace);
        if grace > 0 {
            metadata::mark_deleted(ctx, &mut new, grace);
            return Step::Mark(new);
        }
    }
    if metadata::finalizers(&new).is_empty() {
        return Step::Remove;
    }
    if !marked_before {
        metadata::mark_deleted(ctx, &mut new, 0);
    } else {
        metadata::of(&mut new).insert("deletionGracePeriodSeconds".into(), 0.into());
    }
    if new == *old { Step::Keep } else { Step::Mark(new) }
}

/// A Namespace goes when its contents are gone: the namespace loop empties it and then its `spec.finalizers`.
fn namespace_step(ctx: &Context, old: &Value, mut new: Value, marked_before: bool) -> Step {
    if !marked_before {
        let now = ctx.state.now().to_string();
        metadata::of(&mut new).insert("deletionTimestamp".into(), now.into());
        new["status"]["phase"] = "Terminating".into();
        return Step::Mark(new);
    }
    let emptied = old["spec"]["finalizers"].as_array().is_none_or(Vec::is_empty);
    if emptied && metadata::finalizers(&new).is_empty() {
        Step::Remove
    } else if new == *old {
        Step::Keep
    } else {
        Step::Mark(new)
    }
}

/// The finalizers by which the garbage collector knows what is to become of dependents.
fn set_finalizers(object: &mut Value, propagation: Option<Propagation>) {
    let Some(propagation) = propagation else { return };
    let wanted = match propagation {
        Propagation::Background => None,
        Propagation::Foreground => Some(FOREGROUND),
        Propagation::Orphan => Some(ORPHAN),
    };
    let mut names: Vec<String> = metadata::finalizers(object).into_iter().map(str::to_owned).collect();
    names.retain(|it| ![ORPHAN, FOREGROUND].contains(&&**it) || Some(&**it) == wanted);
    if let Some(wanted) = wanted
        && !names.iter().any(|it| it == wanted)
    {
        names.push(wanted.to_owned());
    }
    let metadata = metadata::of(object);
    if names.is_empty() {
        metadata.shift_remove("finalizers");
    } else {
        metadata.insert("finalizers".into(), names.into());
    }
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let mut names: Vec<String> = metadata::finalizers(object).into_iter().map(str::to_owned).collect();
    if !names.iter().any(|it| it == finalizer) {
        names.push(finalizer.to_owned());
        metadata::of(object).insert("finalizers".into(), names.into());
    }
}

fn sooner(ctx: &Context, mut object: Value, grace: i64, asked: i64) -> Value {
    let at = object["metadata"]["deletionTimestamp"].as_str().and_then(|it| it.parse::<Time>().ok());
    let now = ctx.state.now();
    let at = at.map_or(now, |it| it.after_seconds(asked.saturating_sub(grace))).max(now);
    let metadata = metadata::of(&mut object);
    metadata.insert("deletionTimestamp".into(), at.to_string().into());
    metadata.insert("deletionGracePeriodSeconds".into(), asked.into());
    metadata::count_up(&mut object);
    object
}
