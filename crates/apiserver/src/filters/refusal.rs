//! Writes what is refused before anybody looks at the resource in the form that the client asks for (`ErrorNegotiated`).
//!
//! A Status is a type of Kubernetes's own, so that protobuf has it whatever was asked for; what comes later is written by the router.

use corten_cacher::{body::Response, codec::protobuf};

use http::StatusCode;

use super::next::Rest;
use crate::context::Context;

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    let response = rest.run(ctx).await;
    let status = response.status();
    // Where no form was agreed on, it is told in JSON (`WriteRawJSON`).
    let is_refusal = (status.is_client_error() || status.is_server_error()) && status != StatusCode::NOT_ACCEPTABLE;
    // What others say about what is asked of them is not ours to rewrite.
    if !is_refusal || !ctx.info.is_resource() || ctx.is_aggregated() || ctx.info.proxied.is_some() {
        return response;
    }
    if !protobuf::wanted(&mut ctx.headers, &ctx.info.query, true) {
        return response;
    }
    protobuf::rewritten(response).await
}
