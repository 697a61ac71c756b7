//! GET of one object: its stored bytes with the revision put in.

use corten_cacher::{
    body::Response,
    codec::{Form, protobuf},
};
use corten_meta::Status;
use http::StatusCode;

use super::{options, respond, target::Target};
use crate::context::Context;

pub(crate) async fn get(ctx: &Context, target: &Target, form: Form) -> Result<Response, Status> {
    if let Some(revision) = options::resource_version(ctx)? {
        ctx.state.caches().reach(revision).await?;
    }
    let object = target.current(ctx)?;
    if ctx.protobuf {
        return Ok(protobuf::object(&target.asked, &object, form));
    }
    respond::object(ctx, StatusCode::OK, &target.asked, object.json(), form)
}
