//! Decides what the request asks for: once, before anything else looks at it.

use corten_cacher::{answer, body::Response};
use corten_meta::Status;
use corten_routes::RequestInfo;

use crate::{context::Context, filters::next::Rest};

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    let served = &ctx.served;
    let is_aggregated = |group: &str, version: &str| served.aggregated().serves(group, version);
    let (method, path) = (ctx.method.as_str(), ctx.uri.path());
    match RequestInfo::read_beside(served.kinds(), &is_aggregated, method, path, ctx.uri.query()) {
        Ok(info) => {
            ctx.info = info;
            rest.run(ctx).await
        }
        Err(bad) => answer::status(&Status::bad_request(bad.as_str())),
    }
}
