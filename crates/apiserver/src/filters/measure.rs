//! Counts requests and how long they take, and names each request in its answer.

use corten_cacher::{answer, body::Response};
use corten_meta::Status;
use corten_metrics::RequestTime;
use http::HeaderValue;

use crate::{context::Context, filters::next::Rest};

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    let start = tokio::time::Instant::now();
    let mut response = {
        let metrics = ctx.state.clone();
        let _in_flight = metrics.metrics().requests.begin(ctx.info.verb);
        rest.run(ctx).await
    };
    ctx.state.metrics().requests.record(
        &ctx.info,
        ctx.header(http::header::CONTENT_TYPE),
        response.status().as_u16(),
        RequestTime { whole: start.elapsed(), waited: ctx.seat_wait + ctx.notes.webhook_time() },
    );
    if let Ok(id) = HeaderValue::from_str(&ctx.id) {
        response.headers_mut().insert("audit-id", id);
    }
    response
}

/// The answer to a request that is not served for the server's sake, which is counted apart.
pub(super) fn terminated(ctx: &Context, status: &Status) -> Response {
    let response = answer::status(status);
    let content_type = ctx.header(http::header::CONTENT_TYPE);
    ctx.state.metrics().requests.terminate(&ctx.info, content_type, response.status().as_u16());
    response
}
