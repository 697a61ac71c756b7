//! The body of a request as an object, and what there is to warn of in it.

use corten_cacher::codec::{self, Document};
use corten_kinds::Kind;
use corten_meta::Status;
use serde_json::Value;

use crate::context::Context;

/// An object of `kind`; see [`Document::object`].
pub(super) async fn object(ctx: &mut Context, kind: &Kind) -> Result<Value, Status> {
    let body = ctx.read_body().await?;
    let document = codec::document(&ctx.headers, &body, &kind.resource.kind)?;
    let (object, warnings) = document.object(ctx.strictness()?, kind)?;
    ctx.warnings.extend(warnings);
    ctx.audit.decoded(&object);
    Ok(object)
}

/// A body of another kind than the path's; see [`Document::part`].
pub(super) async fn part(ctx: &mut Context, name: &str, versions: &[&str], schema: &str) -> Result<Value, Status> {
    let body = ctx.read_body().await?;
    let document = codec::document(&ctx.headers, &body, name)?;
    let (part, warnings) = document.part(ctx.strictness()?, name, versions, schema)?;
    ctx.warnings.extend(warnings);
    Ok(part)
}

/// The body of a request that may come without one. `wanted` is the kind that messages name.
pub(super) async fn document_or_none(ctx: &mut Context, wanted: &str) -> Result<Option<Document>, Status> {
    let body = ctx.read_body().await?;
    if body.is_empty() { Ok(None) } else { codec::document(&ctx.headers, &body, wanted).map(Some) }
}

/// Checks types and unknown fields against the schema, then prunes.
pub(super) fn validated(
    ctx: &mut Context,
    kind: &Kind,
    value: &mut Value,
    duplicates: Vec<String>,
) -> Result<(), Status> {
    let warnings = codec::validated(ctx.strictness()?, kind, value, duplicates)?;
    ctx.warnings.extend(warnings);
    Ok(())
}
