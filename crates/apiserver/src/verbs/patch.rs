//! PATCH: applies a patch to what is stored, then goes the way of an update.

use std::{borrow::Cow, collections::BTreeSet};

use bytes::Bytes;
use corten_cacher::{
    body::Response,
    codec::{self, Form, Strictness},
    watch_cache::versions,
};
use corten_kinds::{Schema, Subresource};
use corten_meta::{Resource, Status, Violation, depth, shortened};
use corten_schema::patch as apply;
use http::{StatusCode, header};
use serde_json::Value;

use super::{
    managed, metadata,
    request_scope::RequestScope,
    respond,
    update::{Make, Part, change},
};
use crate::context::Context;

const SUPPORTED: &str = "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml";
const SUPPORTED_OF_CUSTOM: &str =
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
/// Refusals show what was sent, and of a Secret nothing: they are logged and passed on.
const SECRET: &str = "io.k8s.api.core.v1.Secret";
const REDACTED: &str = "<secret contents redacted>";
pub(crate) const APPLY: &str = "application/apply-patch+yaml";

pub(crate) async fn patch(ctx: &mut Context, target: &RequestScope, form: Form) -> Result<Response, Status> {
    if media_type(ctx) == APPLY {
        return super::apply::apply(ctx, target, form).await;
    }
    managed::check_options(ctx, false)?;
    let patch = Patch::read(ctx).await?;
    let make: Make<'_> = &mut |ctx: &mut Context, old: &Value| {
        // Where the patch is wrong, the answer shows the whole object.
        let of_part = patch.concerned(target, old).and_then(|it| patched(ctx, target, &patch, &it).ok());
        of_part.map_or_else(|| patched(ctx, target, &patch, old), Ok)
    };
    let json = change(ctx, target, Part::of(target), make).await?;
    respond::object(ctx, StatusCode::OK, &target.asked, json, form)
}

/// What the patch makes of an object.
fn patched(ctx: &mut Context, target: &RequestScope, patch: &Patch, old: &Value) -> Result<Value, Status> {
    let kind = &target.asked;
    let mut shown = Cow::Borrowed(old);
    if kind.view_of.is_some() {
        versions::from_stored(kind, shown.to_mut());
    }
    if patch.names_owners() {
        managed::spell_out(shown.to_mut());
    }
    let mut new = patch.apply(&kind.schema, &shown)?;
    if new["kind"] != shown["kind"] || new["apiVersion"] != shown["apiVersion"] {
        if kind.is_custom() && new["kind"].as_str().is_none_or(str::is_empty) {
            let missing = format!("Object 'Kind' is missing in '{}'", shortened(&new.to_string()));
            return Err(patch.invalid(&kind.schema, &new, &missing));
        }
        return Err(Status::bad_request(format!(
            "the patch changes the object's kind or version, which must be {} {}",
            kind.resource.api_version(),
            kind.resource.kind
        )));
    }
    managed::without_text(&mut new, |new| patch.decode(ctx, &kind.schema, new))?;
    metadata::place(&mut new, target, "")?;
    metadata::rename(&mut new, target)?;
    versions::to_stored(kind, &mut new);
    Ok(new)
}

pub(crate) fn media_type(ctx: &Context) -> &str {
    ctx.header(header::CONTENT_TYPE).split(';').next().unwrap_or_default().trim()
}

/// A patch that was read but not yet applied.
pub(crate) struct Patch {
    way: PatchBody,
    /// What a strict reader finds in the patch itself.
    findings: Vec<String>,
}

enum PatchBody {
    Json(Bytes),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    /// # Errors
    /// 415 for other kinds of patch, 400 where it is no JSON.
    pub(crate) async fn read(ctx: &mut Context) -> Result<Self, Status> {
        let media_type = media_type(ctx).to_owned();
        let body = ctx.read_body().await?;
        let broken = |reason: &str| Status::bad_request(format!("error decoding patch: {reason}"));
        let object = |way: fn(Value) -> PatchBody| -> Result<Self, Status> {
            let (value, findings) = corten_schema::read(&body).map_err(|it| broken(&depth::reason(&it)))?;
            if !value.is_object() {
                return Err(broken("json: cannot unmarshal it into Go value of type map[string]interface {}"));
            }
            Ok(Self { way: way(value), findings })
        };
        match &*media_type {
            "application/json-patch+json" => Ok(Self { findings: of_operations(&body), way: PatchBody::Json(body) }),
            "application/merge-patch+json" => object(PatchBody::Merge),
            STRATEGIC => object(PatchBody::Strategic),
            other => Err(Status::unsupported_media_type(SUPPORTED, other)),
        }
    }

    /// Might it read or change `managedFields`?
    fn names_owners(&self) -> bool {
        match &self.way {
            PatchBody::Json(patch) => {
                let has = |text: &[u8]| patch.windows(text.len()).any(|it| it == text);
                has(b"managedFields") || has(b"\"/metadata\"") || patch.contains(&b'\\')
            }
            PatchBody::Merge(patch) | PatchBody::Strategic(patch) => !patch["metadata"]["managedFields"].is_null(),
        }
    }

    /// What of an object counts where only its status is taken from what the patch makes of it: its head, its status, and what the patch
    /// names. `None` where that is not known, or all of it counts.
    fn concerned(&self, target: &RequestScope, old: &Value) -> Option<Value> {
        let (PatchBody::Merge(Value::Object(patch)) | PatchBody::Strategic(Value::Object(patch))) = &self.way else {
            return None;
        };
        let is_status = target.subresource == Some(Subresource::Status) && target.asked.view_of.is_none();
        // `$patch: replace` is about what it does not name, too.
        if !is_status || target.policy().defaults_status() || patch.keys().any(|it| it.starts_with('$')) {
            return None;
        }
        let counts =
            |name: &str| matches!(name, "kind" | "apiVersion" | "metadata" | "status") || patch.contains_key(name);
        let entries = old.as_object()?.iter().filter(|it| counts(it.0));
        Some(Value::Object(entries.map(|(name, value)| (name.clone(), value.clone())).collect()))
    }

    pub(crate) fn apply(&self, schema: &Schema, old: &Value) -> Result<Value, Status> {
        match &self.way {
            PatchBody::Json(patch) => apply::json(old.clone(), patch).map_err(|it| it.status()),
            PatchBody::Merge(patch) => Ok(apply::merge(old.clone(), patch)),
            PatchBody::Strategic(patch) => {
                let Schema::Table(schema) = schema else {
                    return Err(Status::unsupported_media_type(SUPPORTED_OF_CUSTOM, STRATEGIC));
                };
                apply::strategic(schema, old.clone(), patch).map_err(|it| {
                    let mut status = it.status();
                    if *schema == SECRET {
                        status.message = format!("the patch does not fit the object: {REDACTED}");
                    }
                    status
                })
            }
        }
    }

    /// Reads what the patch made as an object of its type. What does not fit is the patch's fault: `NewInvalid` of the field `patch`
    /// (`jsonPatcher.applyPatchToCurrentObject`).
    pub(crate) fn decode(&self, ctx: &mut Context, schema: &Schema, new: &mut Value) -> Result<(), Status> {
        let strictness = ctx.strictness()?;
        let unknown = codec::unknown_fields(schema, new).map_err(|wrong| self.invalid(schema, new, &wrong))?;
        let sentences: Vec<&String> = self.findings.iter().chain(&unknown).collect();
        if strictness == Strictness::Strict && !sentences.is_empty() {
            let list: Vec<&str> = sentences.iter().map(|it| it.as_str()).collect();
            return Err(self.invalid(schema, new, &format!("strict decoding error: {}", list.join(", "))));
        }
        if strictness == Strictness::Warn {
            ctx.warnings.extend(sentences);
        }
        codec::prune(schema, new);
        Ok(())
    }

    fn invalid(&self, schema: &Schema, new: &Value, reason: &str) -> Status {
        let shown = match &self.way {
            _ if schema.name() == SECRET => REDACTED.to_owned(),
            PatchBody::Strategic(patch) => apply::as_go(patch),
            PatchBody::Json(_) | PatchBody::Merge(_) => new.to_string(),
        };
        let violation = Violation::invalid("patch", format!("{shown:?}"), reason);
        Status::invalid(&Resource::cluster("", "", "", ""), "", &[violation])
    }
}

/// Keys of operations that mean nothing, or are there twice: as many as are told of an object.
fn of_operations(patch: &[u8]) -> Vec<String> {
    const KEYS: [&str; 4] = ["op", "path", "from", "value"];
    // Of too many none is read: the patch is refused for that.
    if apply::n_operations(patch).is_err() {
        return Vec::new();
    }
    let Ok((Value::Array(operations), duplicates)) = corten_schema::read(patch) else { return Vec::new() };
    let duplicates: BTreeSet<String> = duplicates.into_iter().collect();
    let mut found: Vec<(usize, String)> = Vec::new();
    for (at, operation) in operations.iter().enumerate() {
        if found.len() >= Violation::MOST {
            break;
        }
        let keys = operation.as_object().into_iter().flatten().map(|it| it.0);
        found.extend(
            keys.filter(|it| !KEYS.contains(&&***it))
                .take(Violation::MOST)
                .map(|it| (at, format!("json patch unknown field {:?}", shortened(&format!("[{at}].{it}"))))),
        );
        let twice = |key: &&str| duplicates.contains(&format!("duplicate field {:?}", format!("[{at}].{key}")));
        found.extend(
            KEYS.iter()
                .filter(|it| twice(it))
                .map(|it| (at, format!("json patch duplicate field {:?}", format!("[{at}].{it}")))),
        );
    }
    found.sort_by_key(|it| it.0);
    found.into_iter().map(|it| it.1).collect()
}
