//! A panic costs one request, not the process.

use std::panic::AssertUnwindSafe;

use corten_cacher::body::Response;
use corten_meta::Status;
use futures_util::FutureExt;

use crate::{context::Context, filters::next::Rest};

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    let result = AssertUnwindSafe(rest.run(ctx)).catch_unwind().await;
    result.unwrap_or_else(|_| {
        tracing::error!(method = %ctx.method, path = ctx.uri.path(), "a request panicked");
        let status = Status::internal("This request caused apiserver to panic. Look in the logs for details.");
        super::measure::terminated(ctx, &status)
    })
}
