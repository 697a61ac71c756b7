//! GET of one object: its stored bytes with the revision put in.

use corten_meta::Status;
use http::StatusCode;

use super::{options, respond, target::Target};
use crate::{
    codec::Form,
    request::{Context, Response},
};

pub(super) async fn get(ctx: &Context, target: &Target, form: Form) -> Result<Response, Status> {
    if let Some(revision) = options::resource_version(ctx)? {
        ctx.server.caches().reach(revision).await?;
    }
    let object = target.current(ctx)?;
    respond::object(ctx, StatusCode::OK, target.asked, object.json(), form)
}
