//! CREATE: default, admit, validate, store where nothing stands yet.

use corten_meta::Status;
use http::StatusCode;
use serde_json::Value;

use super::{
    metadata, respond,
    target::Target,
    write::{self, Asked, Written},
};
use crate::{
    admission::Operation,
    codec::{self, Form},
    request::{Context, Response},
};

/// As upstream: a generated name that is taken is replaced this often.
const NAMES_MAX: usize = 8;

pub(super) async fn create(ctx: &mut Context, target: &Target, form: Form) -> Result<Response, Status> {
    let mut body = codec::object(ctx, target.kind).await?;
    let generated = body["metadata"]["name"].as_str().unwrap_or_default().is_empty();
    let mut tries = 0;
    loop {
        tries += 1;
        // Only a generated name is ever tried again.
        let object = if generated { body.clone() } else { body.take() };
        let object = prepared(ctx, target, object).await?;
        let target = Target { name: object["metadata"]["name"].as_str().unwrap_or_default().into(), ..target.clone() };
        if ctx.dry_run() {
            return dry_run(ctx, &target, &object, form);
        }
        match write::put(ctx, &target, &object, 0).await? {
            Written::Done(json) => return respond::object(ctx, StatusCode::CREATED, target.kind, json, form),
            Written::Conflict if generated && tries < NAMES_MAX => {}
            Written::Conflict => return Err(Status::already_exists(target.resource(), &target.name)),
        }
    }
}

/// The object as it would be stored.
async fn prepared(ctx: &Context, target: &Target, mut object: Value) -> Result<Value, Status> {
    let kind = target.kind;
    metadata::place(&mut object, target, "")?;
    metadata::begin(ctx, kind, &mut object)?;
    kind.policy.default(&mut object);
    kind.policy.prepare_create(&mut object);
    let asked = Asked { ctx, target, operation: Operation::Create, old: None };
    asked.admit(&mut object).await?;
    let mut violations = metadata::violations(kind, &object);
    violations.extend(kind.policy.validate(&object));
    if !violations.is_empty() {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        return Err(Status::invalid(&kind.resource, name, &violations));
    }
    asked.validate(&object).await?;
    Ok(object)
}

fn dry_run(ctx: &Context, target: &Target, object: &Value, form: Form) -> Result<Response, Status> {
    if target.cache(ctx).get(&target.namespace, &target.name).is_some() {
        return Err(Status::already_exists(target.resource(), &target.name));
    }
    respond::object(ctx, StatusCode::CREATED, target.kind, write::pretend(target, object, None), form)
}
