//! Server-side apply: PATCH with a configuration, all of whose fields the applier owns from then on.

use corten_access::Attributes;
use corten_api::resources::SECRETS;
use corten_cacher::{
    body::Response,
    codec::{self, Configuration, Form, Strictness},
    watch_cache::versions,
};
use corten_meta::{Cause, Details, Resource, Status};
use corten_schema::apply::{self, Applied, ApplyError, Conflict, Operation, Owner, Owners, Set, Write};
use http::StatusCode;
use serde_json::{Map, Value};

use super::{
    body, create,
    guaranteed_update::GuaranteedUpdate,
    managed::{self, Author, OfKind, Tracked},
    metadata,
    request_scope::RequestScope,
    respond,
    update::{MakeOwned, Part, change_owned},
    write::{self, WriteOutcome},
    write_request::WriteRequest,
};
use crate::context::Context;

/// Whoever applies under this name takes over from client-side apply, and keeps its annotation true.
const KUBECTL: &str = "kubectl";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
const ANNOTATIONS_BYTES_MAX: usize = 256 * 1024;

pub(super) async fn apply(ctx: &mut Context, target: &RequestScope, form: Form) -> Result<Response, Status> {
    managed::check_options(ctx, true)?;
    let body = ctx.read_body().await?;
    let configuration = codec::configuration(&body)?;
    if ctx.strictness()? == Strictness::Warn {
        ctx.warnings.extend(configuration.duplicates.iter().cloned());
    }
    let mut update = GuaranteedUpdate::begin(ctx);
    loop {
        if let Err(status) = target.current(ctx) {
            // What cannot be read is there all the same.
            if target.subresource.is_some() || !status.is_not_found() {
                return Err(status);
            }
            match created(ctx, target, &configuration, form).await? {
                Some(response) => return Ok(response),
                None => {
                    update.again(target).await?;
                    continue;
                }
            }
        }
        // The change takes turns of its own.
        drop(update);
        let make: MakeOwned<'_> = &mut |ctx, old| applied(ctx, target, &configuration, old);
        match change_owned(ctx, target, Part::of(target), make).await {
            Ok(json) => return respond::object(ctx, StatusCode::OK, &target.asked, json, form),
            // It was deleted since it was looked at: it is made anew (`forceAllowCreate` of `applyPatcher`).
            Err(status) if status.is_not_found() && is_gone(ctx, target) => update = GuaranteedUpdate::begin(ctx),
            Err(status) => return Err(status),
        }
    }
}

fn is_gone(ctx: &Context, target: &RequestScope) -> bool {
    target.subresource.is_none() && target.current(ctx).is_err_and(|it| it.is_not_found())
}

/// `None` where somebody else created it first.
async fn created(
    ctx: &mut Context,
    target: &RequestScope,
    configuration: &Configuration,
    form: Form,
) -> Result<Option<Response>, Status> {
    may_create(ctx).await?;
    // There is no object yet that anybody could own in another version.
    let (mut object, tracked) = merge(ctx, target, &configuration.value, None)?;
    strict(ctx, configuration)?;
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    if !uid.is_empty() {
        let detail = format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
        return Err(Status::conflict(target.resource(), &target.name, &detail));
    }
    // A `resourceVersion` alone does not say that there must be an object (`applyPatcher.createNewObject`).
    metadata::of(&mut object).shift_remove("resourceVersion");
    metadata::place(&mut object, target, "")?;
    metadata::rename(&mut object, target)?;
    versions::to_stored(&target.asked, &mut object);
    let mut object = create::prepared(ctx, target, object, Some(&tracked.text)).await?;
    write::warn(ctx, target, &object, None);
    let json = if ctx.dry_run() {
        write::pretend(ctx, target, &object, None).await?
    } else {
        let asked = WriteRequest::create(ctx, target);
        match write::put(&asked, &mut object, 0).await? {
            WriteOutcome::Done(json, _) => write::shown(ctx, target, json).await?,
            WriteOutcome::Conflict => return Ok(None),
        }
    };
    respond::object(ctx, StatusCode::CREATED, &target.asked, json, form).map(Some)
}

/// Whoever may only patch may not create by applying.
async fn may_create(ctx: &Context) -> Result<(), Status> {
    let question = Attributes::of_request(ctx.asker_now(), &ctx.info);
    ctx.state.access().may(&Attributes { verb: "create", ..question }).await
}

/// Refuses fields given twice, once all else was right: `applyPatcher.applyPatchToCurrentObject` validates strictly at its end.
fn strict(ctx: &Context, configuration: &Configuration) -> Result<(), Status> {
    if configuration.duplicates.is_empty() || ctx.strictness()? != Strictness::Strict {
        return Ok(());
    }
    let list = configuration.duplicates.join("\n  ");
    Err(Status::bad_request(format!(
        "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  {list}"
    )))
}

/// Makes the new object out of the stored draft.
fn applied(
    ctx: &mut Context,
    target: &RequestScope,
    configuration: &Configuration,
    old: &Value,
) -> Result<(Value, Option<Tracked>), Status> {
    let (mut new, tracked) = merge(ctx, target, &configuration.value, Some(old))?;
    strict(ctx, configuration)?;
    metadata::place(&mut new, target, "")?;
    metadata::rename(&mut new, target)?;
    versions::to_stored(&target.asked, &mut new);
    Ok((new, Some(tracked)))
}

/// The merged object in the form that was asked for, checked against its type, without its owners; and those.
fn merge(
    ctx: &mut Context,
    target: &RequestScope,
    configuration: &Value,
    old: Option<&Value>,
) -> Result<(Value, Tracked), Status> {
    let asked = &target.asked;
    identified(&asked.resource, configuration)?;
    let of = asked.schema.fields().ok_or_else(|| Status::internal("the kind has no schema"))?;
    let live = old.map(|it| {
        let mut live = it.clone();
        metadata::of(&mut live).shift_remove("managedFields");
        versions::from_stored(asked, &mut live);
        live
    });
    let (author, kinds) = (managed::author(ctx), ctx.served.kinds().clone());
    let by = Author { name: &author, operation: Operation::Apply };
    let (version, now) = (asked.resource.api_version(), ctx.state.now().to_string());
    let (reset, views) = (managed::reset_by_apply(target, of), OfKind { kinds: &kinds, target });
    let write = Write { of, by: by.owner(target, &version), now: &now, reset: &reset, views: &views };
    let text = old.map(managed::text_of).unwrap_or_default();
    let Applied { object, owned } =
        taking_over(&write, live.as_ref(), configuration, text, ctx.info.query.is_set("force"))
            .map_err(|it| refusal(&asked.resource, configuration, &it))?;
    let tracked = Tracked { same: owned.same, text: owned.owners.write() };
    let mut new = object.or(live).unwrap_or_else(|| Value::Object(Map::new()));
    if author == KUBECTL {
        renew_last_applied(&mut new, configuration);
    }
    body::validated(ctx, asked, &mut new, Vec::new())?;
    Ok((new, tracked))
}

/// Applies; where only fields that client-side apply set are in the way, they are taken over.
fn taking_over<'a>(
    write: &Write<'a>,
    live: Option<&'a Value>,
    configuration: &'a Value,
    owners: &'a str,
    force: bool,
) -> Result<Applied<'a>, ApplyError<'a>> {
    let read = || Owners::read(owners).unwrap_or_default();
    let result = apply::apply(write, live, configuration, read(), force);
    let (Err(ApplyError::Conflicts(conflicts)), Some(live), KUBECTL) = (&result, live, &*write.by.manager) else {
        return result;
    };
    let text = live["metadata"]["annotations"][LAST_APPLIED].as_str().unwrap_or_default();
    let Some(allowed) = allowed(write, live, text) else { return result };
    let left: Vec<(Owner<'a>, Set<'a>)> = conflicts
        .iter()
        .map(|(owner, set)| (owner.clone(), set.clone().difference(&allowed)))
        .filter(|it| !it.1.is_empty())
        .collect();
    if left.is_empty() {
        return apply::apply(write, Some(live), configuration, read(), true);
    }
    Err(ApplyError::Conflicts(left))
}

/// The fields that were set by client-side apply and still are as it set them.
fn allowed(write: &Write<'_>, live: &Value, last_applied: &str) -> Option<Set<'static>> {
    let last: Value = serde_json::from_str(last_applied).ok()?;
    if last["apiVersion"] != *write.by.api_version || !apply::misfits(write.of, &last).is_empty() {
        return None;
    }
    let changes = apply::compare(write.of, Some(&last), live);
    let set = apply::fields(write.of, &last)
        .difference(&changes.modified)
        .difference(&changes.added)
        .difference(&changes.removed);
    Some(set.into_owned())
}

/// Where client-side apply left its annotation, it says what was applied last.
fn renew_last_applied(new: &mut Value, configuration: &Value) {
    let is_set = |it: &Value| it["metadata"]["annotations"][LAST_APPLIED].as_str().is_some_and(|it| !it.is_empty());
    if !is_set(new) {
        return;
    }
    let mut applied = configuration.clone();
    let annotations = applied.get_mut("metadata").and_then(|it| it.get_mut("annotations"));
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.shift_remove(LAST_APPLIED);
    }
    applied.sort_all_objects();
    let annotations = &mut new["metadata"]["annotations"];
    annotations[LAST_APPLIED] = format!("{applied}\n").into();
    let bytes: usize = annotations
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len())
        .sum();
    if bytes > ANNOTATIONS_BYTES_MAX
        && let Some(annotations) = annotations.as_object_mut()
    {
        annotations.shift_remove(LAST_APPLIED);
    }
}

/// Kind and version must be the path's, and owners are not the configuration's to say.
pub(super) fn identified(resource: &Resource, configuration: &Value) -> Result<(), Status> {
    let text = |name: &str| configuration[name].as_str().unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    if kind != resource.kind || api_version != resource.api_version() {
        let message = if kind.is_empty() {
            "Object 'Kind' is missing in the applied configuration".to_owned()
        } else {
            let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
            format!("invalid object type: {group}/{version}, Kind={kind}")
        };
        return Err(Status::bad_request(message));
    }
    if !configuration["metadata"]["managedFields"].is_null() {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}

pub(super) fn refusal(resource: &Resource, configuration: &Value, refused: &ApplyError<'_>) -> Status {
    match refused {
        ApplyError::Misfit(message) => {
            let metadata = &configuration["metadata"];
            let (namespace, name) = (&metadata["namespace"], &metadata["name"]);
            // What was got instead of what was expected is no secret's to show.
            let is_secret = *resource == SECRETS;
            let message = message.split(", got ").next().filter(|_| is_secret).unwrap_or(message);
            Status::failure(
                500,
                "",
                format!(
                    "failed to create typed patch object ({}/{}; {}, Kind={}): {message}",
                    namespace.as_str().unwrap_or_default(),
                    name.as_str().unwrap_or_default(),
                    group_version(resource),
                    resource.kind
                ),
            )
        }
        ApplyError::Conflicts(conflicts) => {
            let (told, count) = ApplyError::conflicts(conflicts);
            conflict(&told, count)
        }
    }
}

/// As Go prints it: the core group is empty, its slash is there.
fn group_version(resource: &Resource) -> String {
    format!("{}/{}", resource.group, resource.version)
}

/// Names who owns what the configuration would change, as far as there is room for it.
fn conflict(conflicts: &[Conflict], count: usize) -> Status {
    let mut message = match conflicts {
        [one] if count == 1 => format!("Apply failed with 1 conflict: conflict with {}: {}", one.manager, one.path),
        _ => format!("Apply failed with {count} conflicts: "),
    };
    if count > 1 {
        let by_manager = conflicts.chunk_by(|a, b| a.manager == b.manager).map(|of| {
            let paths: String = of.iter().map(|it| format!("\n- {}", it.path)).collect();
            format!("conflicts with {}:{paths}", of[0].manager)
        });
        message += &by_manager.collect::<Vec<_>>().join("\n");
        if count > conflicts.len() {
            message += &format!("\nand {} more", count - conflicts.len());
        }
    }
    let mut status = Status::failure(409, "Conflict", message);
    let causes = conflicts.iter().map(|it| Cause {
        reason: "FieldManagerConflict".into(),
        message: format!("conflict with {}", it.manager),
        field: it.path.clone(),
    });
    status.details = Some(Details { causes: causes.collect(), ..Details::default() });
    status
}
