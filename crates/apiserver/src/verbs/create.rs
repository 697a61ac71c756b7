//! CREATE: default, admit, validate, store where nothing stands yet.

use corten_admission::commit;
use corten_cacher::{body::Response, codec::Form, watch_cache::versions};
use corten_kinds::Policy;
use corten_meta::Status;
use http::StatusCode;
use serde_json::Value;

use super::{
    body, managed, metadata,
    request_scope::RequestScope,
    respond,
    write::{self, WriteOutcome},
    write_request::WriteRequest,
};
use crate::context::Context;

/// A generated name that is taken is replaced so often (`maxNameGenerationCreateAttempts`, KEP-4420).
const NAMES_MAX: usize = 8;

pub(crate) async fn create(ctx: &mut Context, target: &RequestScope, form: Form) -> Result<Response, Status> {
    managed::check_options(ctx, false)?;
    let mut body = body::object(ctx, &target.asked).await?;
    versions::to_stored(&target.asked, &mut body);
    let generated = body["metadata"]["name"].as_str().unwrap_or_default().is_empty();
    let revision = body["metadata"]["resourceVersion"].as_str().and_then(|it| it.parse().ok()).unwrap_or(0_u64);
    let allocated = commit::allocates_for(&target.kind);
    let mut tries = 0;
    loop {
        tries += 1;
        // Only a generated name is tried again (KEP-4420), and an address or port that another server was faster to give away.
        let object = if generated || allocated { body.clone() } else { body.take() };
        let mut object = prepared(ctx, target, object, None).await?;
        write::warn(ctx, target, &object, None);
        let target =
            RequestScope { name: object["metadata"]["name"].as_str().unwrap_or_default().into(), ..target.clone() };
        if ctx.dry_run() {
            return dry_run(ctx, &target, &object, form).await;
        }
        // Upstream's store refuses it, after validation and never in a dry run (`ErrResourceVersionSetOnCreate`).
        if revision > 0 {
            return Err(Status::failure(500, "", "resourceVersion should not be set on objects to be created"));
        }
        let asked = WriteRequest::create(ctx, &target);
        match write::put(&asked, &mut object, 0).await? {
            WriteOutcome::Done(json, revision) => {
                write::keep_draft(ctx, &target, revision, &json, object);
                let json = write::shown(ctx, &target, json).await?;
                return respond::object(ctx, StatusCode::CREATED, &target.asked, json, form);
            }
            WriteOutcome::Conflict if generated && tries < NAMES_MAX => {}
            WriteOutcome::Conflict if allocated && tries < NAMES_MAX && target.current(ctx).is_err() => {}
            WriteOutcome::Conflict => return Err(Status::already_exists(target.resource(), &target.name)),
        }
    }
}

/// The object as it would be stored. `owners` are known where it is applied.
pub(crate) async fn prepared(
    ctx: &Context,
    target: &RequestScope,
    mut object: Value,
    owners: Option<&str>,
) -> Result<Value, Status> {
    let (kind, policy) = (&target.kind, target.policy());
    let sent = managed::sent(&mut object);
    let is_generated = object["metadata"]["name"].as_str().is_none_or(str::is_empty);
    metadata::place(&mut object, target, "")?;
    metadata::begin(ctx, kind, &mut object);
    defaulted(target, policy, &mut object)?;
    // Nobody owns what the server itself adds from here on: `FieldManager.UpdateNoErrors` comes before `PrepareForCreate`.
    let owners = match owners {
        Some(owners) => owners.to_owned(),
        None => managed::after_create(ctx, target, &object, &sent).await,
    };
    policy.prepare_create(&mut object);
    kind.schema.complete(&mut object);
    managed::put(&mut object, &owners);
    let asked = WriteRequest::create(ctx, target).with_generated_name(is_generated);
    if asked.admit(&mut object).await? {
        // Admission may not set what a client may not set: `rest.BeforeCreate` prepares the object after admission.
        metadata::drop_later_fields(&mut object);
        metadata::place(&mut object, target, "")?;
        policy.prepare_create(&mut object);
        kind.schema.complete(&mut object);
    }
    asked.complete(&mut object)?;
    let mut violations = metadata::violations(&target.asked, &object, None);
    violations.extend(managed::violations(&sent));
    violations.extend(corten_kinds::bounds::violations(kind, &object, None));
    let rules = &target.asked.policy;
    let broken = || [rules.validate(&object), rules.validate_new(&object)].concat();
    violations.extend(asked.broken_rules(broken).await);
    if !violations.is_empty() {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        return Err(Status::invalid(&kind.resource, name, &violations));
    }
    asked.validate(&object).await?;
    Ok(object)
}

/// Fills in what the author left out.
///
/// # Errors
/// 422 where that makes the object too large.
pub(super) fn defaulted(target: &RequestScope, policy: &dyn Policy, object: &mut Value) -> Result<(), Status> {
    let refused = |it| Status::invalid(&target.kind.resource, &target.name, &[it]);
    policy.try_default(object).map_err(refused)
}

async fn dry_run(ctx: &Context, target: &RequestScope, object: &Value, form: Form) -> Result<Response, Status> {
    if target.cache(ctx).get(&target.namespace, &target.name).is_some() {
        return Err(Status::already_exists(target.resource(), &target.name));
    }
    let json = write::pretend(ctx, target, object, None).await?;
    respond::object(ctx, StatusCode::CREATED, &target.asked, json, form)
}
