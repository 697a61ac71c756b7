//! Counts requests and how long they take, and names each request in its answer.

use http::HeaderValue;

use crate::{
    chain::Rest,
    request::{Context, Response},
};

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    let start = tokio::time::Instant::now();
    let mut response = {
        let metrics = ctx.server.clone();
        let _in_flight = metrics.metrics().begin(ctx.info.verb);
        rest.run(ctx).await
    };
    ctx.server.metrics().record(ctx, response.status().as_u16(), start.elapsed());
    if let Ok(id) = HeaderValue::from_str(&ctx.id) {
        response.headers_mut().insert("audit-id", id);
    }
    response
}
