//! GET of one object: its stored bytes with the revision put in.

use corten_cacher::{
    body::Response,
    codec::{Form, protobuf},
    watch_cache::versions,
};
use corten_meta::Status;
use corten_routes::list_options;
use http::StatusCode;

use super::{request_scope::RequestScope, respond};
use crate::context::Context;

pub(crate) async fn get(ctx: &Context, target: &RequestScope, form: Form) -> Result<Response, Status> {
    if let Some(revision) = list_options::resource_version(&ctx.info.query)? {
        ctx.state.caches().reach(revision).await?;
    }
    let mut object = target.current(ctx)?;
    if form != Form::Partial {
        object = target.converted(ctx, object).await?;
    }
    if ctx.protobuf {
        return Ok(protobuf::object(&target.asked, &object, form));
    }
    let json = if target.asked.is_custom() && form != Form::Partial {
        versions::json(&target.asked, &object)
    } else {
        object.json()
    };
    respond::object(ctx, StatusCode::OK, &target.asked, json, form)
}
