//! Decides what the request asks for: once, before anything else looks at it.

use corten_cacher::{answer, body::Response};
use corten_meta::Status;
use corten_routes::RequestInfo;

use crate::{context::Context, filters::next::Rest};

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    match RequestInfo::read(ctx.served.kinds(), ctx.method.as_str(), ctx.uri.path(), ctx.uri.query()) {
        Ok(info) => {
            ctx.info = info;
            rest.run(ctx).await
        }
        Err(bad) => answer::status(&Status::bad_request(bad.as_str())),
    }
}
