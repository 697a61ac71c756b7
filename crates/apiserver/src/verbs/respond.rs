//! Sends one object in the form that was asked for.

use bytes::Bytes;
use corten_cacher::{
    answer,
    body::Response,
    codec::{Form, partial, table},
    watch_cache::versions,
};
use corten_kinds::Kind;
use corten_meta::{Status, depth};
use http::StatusCode;

use crate::context::Context;

/// `json` is the whole object as it is stored, with its `resourceVersion`; `kind` is the row in whose form it is sent.
pub(super) fn object(
    ctx: &Context,
    code: StatusCode,
    kind: &Kind,
    json: Bytes,
    form: Form,
) -> Result<Response, Status> {
    let object = || depth::read(&json).map(|it| it.value).map_err(Status::internal);
    match form {
        Form::Object => Ok(answer::json_bytes(code, versions::shown(kind, json))),
        Form::Table(include) => {
            Ok(answer::json(code, &table::single(kind, &object()?, include, ctx.state.now(), true)))
        }
        Form::Partial => Ok(answer::json(code, &partial::of(&object()?))),
    }
}
