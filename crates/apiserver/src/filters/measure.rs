//! Counts requests and how long they take, and names each request in its answer.

use corten_cacher::body::Response;
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
        start.elapsed(),
    );
    if let Ok(id) = HeaderValue::from_str(&ctx.id) {
        response.headers_mut().insert("audit-id", id);
    }
    response
}
