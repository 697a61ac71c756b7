//! PATCH: applies a patch to what is stored, then goes the way of an update.

use bytes::Bytes;
use corten_meta::Status;
use corten_schema::patch as apply;
use http::{StatusCode, header};
use serde_json::Value;

use super::{
    metadata, respond,
    target::Target,
    update::{Make, Part, change},
};
use crate::{
    codec::{self, Form},
    request::{Context, Response},
};

const SUPPORTED: &str =
    "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json";

pub(super) async fn patch(ctx: &mut Context, target: &Target, form: Form) -> Result<Response, Status> {
    let patch = Patch::read(ctx).await?;
    let kind = target.kind;
    let make: Make<'_> = &mut |ctx: &mut Context, old: &Value| {
        let mut new = patch.apply(kind.schema, old)?;
        if new["kind"] != old["kind"] || new["apiVersion"] != old["apiVersion"] {
            return Err(Status::bad_request(format!(
                "the patch changes the object's kind or version, which must be {} {}",
                kind.resource.api_version(),
                kind.resource.kind
            )));
        }
        // A conflict makes this run again; one warning is enough.
        let warned = ctx.warnings.len();
        codec::validated(ctx, kind, &mut new, Vec::new())?;
        if warned > 0 {
            ctx.warnings.truncate(warned);
        }
        metadata::rename(&mut new, target)?;
        Ok(new)
    };
    let json = change(ctx, target, Part::of(target), make).await?;
    respond::object(ctx, StatusCode::OK, kind, json, form)
}

/// A patch that was read but not yet applied.
pub(super) enum Patch {
    Json(Bytes),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    /// # Errors
    /// 415 for other kinds of patch, 400 where it is no JSON.
    pub(super) async fn read(ctx: &mut Context) -> Result<Self, Status> {
        let header = ctx.header(header::CONTENT_TYPE).to_owned();
        let body = ctx.read_body().await?;
        let value = || -> Result<Value, Status> {
            let value: Value = serde_json::from_slice(&body)
                .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
            if value.is_object() {
                Ok(value)
            } else {
                Err(Status::bad_request("error decoding patch: it must be an object"))
            }
        };
        match header.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Ok(Self::Json(body)),
            "application/merge-patch+json" => value().map(Self::Merge),
            "application/strategic-merge-patch+json" => value().map(Self::Strategic),
            "application/apply-patch+yaml" => Err(Status::failure(
                415,
                "UnsupportedMediaType",
                format!("server-side apply is not implemented yet - accepted media types include: {SUPPORTED}"),
            )),
            other => Err(Status::unsupported_media_type(SUPPORTED, other)),
        }
    }

    pub(super) fn apply(&self, schema: &str, old: &Value) -> Result<Value, Status> {
        match self {
            Self::Json(patch) => apply::json(old.clone(), patch).map_err(|it| it.status()),
            Self::Merge(patch) => Ok(apply::merge(old.clone(), patch)),
            Self::Strategic(patch) => apply::strategic(schema, old.clone(), patch).map_err(|it| it.status()),
        }
    }
}
