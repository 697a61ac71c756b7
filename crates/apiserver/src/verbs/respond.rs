//! Sends one object in the form that was asked for.

use bytes::Bytes;
use corten_cacher::{
    answer,
    body::Response,
    codec::{Form, partial, table},
    watch_cache::versions,
};
use corten_kinds::Kind;
use corten_meta::{
    Status,
    depth::{self, Read},
};
use http::StatusCode;

use crate::context::Context;

/// `json` is the whole object as it is stored, with its `resourceVersion`; `kind` is the row in whose form it is sent.
pub(super) fn object(
    ctx: &Context,
    code: StatusCode,
    kind: &'static Kind,
    json: Bytes,
    form: Form,
) -> Result<Response, Status> {
    // No option of any verb, so read otherwise than those (isPrettyPrint, strconv.ParseBool).
    let pretty =
        ctx.info.query.get("pretty").is_some_and(|it| matches!(it, "1" | "t" | "T" | "true" | "True" | "TRUE"));
    if form == Form::Object && !pretty {
        return Ok(answer::json_bytes(code, versions::shown(kind, json)));
    }
    let Read { value: mut object, is_whole } = depth::read(&json).map_err(Status::internal)?;
    if form == Form::Object && !is_whole {
        // Nothing of an object is left out for the sake of its looks.
        return Ok(answer::json_bytes(code, versions::shown(kind, json)));
    }
    let value = match form {
        Form::Object => {
            versions::from_stored(kind, &mut object);
            object
        }
        Form::Table(include) => table::single(kind, &object, include, ctx.state.now(), true),
        Form::Partial => partial::of(&object),
    };
    let text = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) };
    Ok(answer::json_bytes(code, text.map_err(Status::internal)?))
}
