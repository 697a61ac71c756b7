//! Counts requests and how long they take, and names each request in its answer.

use corten_cacher::{answer, body::Response};
use corten_connection::Counted;
use corten_meta::Status;
use corten_metrics::{Histogram, RequestTime, scraped::number};
use http::HeaderValue;
use http_body::Body as _;
use http_body_util::BodyExt;

use crate::{context::Context, filters::next::Rest};

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    let start = tokio::time::Instant::now();
    let mut response = {
        let metrics = ctx.state.clone();
        let _in_flight = metrics.metrics().requests.begin(ctx.info.verb);
        rest.run(ctx).await
    };
    let size = ctx.state.metrics().requests.record(
        &ctx.info,
        ctx.header(http::header::CONTENT_TYPE),
        response.status().as_u16(),
        RequestTime { whole: start.elapsed(), waited: ctx.seat_wait + ctx.notes.webhook_time() },
    );
    if let Some(size) = size {
        response = measured(response, size);
    }
    if let Ok(id) = HeaderValue::from_str(&ctx.id) {
        response.headers_mut().insert("audit-id", id);
    }
    response
}

/// Has the size of an answer counted: at once where it is all there, else when it has been sent, or nobody takes the rest of it.
fn measured(response: Response, size: Histogram) -> Response {
    match response.body().size_hint().exact() {
        Some(bytes) => {
            size.observe(number(bytes));
            response
        }
        None => response.map(|body| Counted::new(body, move |bytes| size.observe(number(bytes))).boxed_unsync()),
    }
}

/// The answer to a request that is not served for the server's sake, which is counted apart.
pub(super) fn terminated(ctx: &Context, status: &Status) -> Response {
    let response = answer::status(status);
    let content_type = ctx.header(http::header::CONTENT_TYPE);
    ctx.state.metrics().requests.terminate(&ctx.info, content_type, response.status().as_u16());
    response
}
