//! Indents the JSON of who asks for that, or is a person at a terminal or a browser.
//!
//! `pretty` decides where it is there (`isPrettyPrint`); else the name by which a client goes does.

use bytes::Bytes;
use corten_cacher::{
    answer,
    body::{BoxError, Response, whole},
    codec::{self, indent::Indent},
};
use corten_meta::Status;
use futures_util::{StreamExt, stream};
use http::{header, response::Parts};
use http_body::{Body as _, Frame};
use http_body_util::{BodyExt, BodyStream, StreamBody};

use super::next::Rest;
use crate::context::Context;

/// Larger bodies are written piece by piece: blanks may be many times the text.
const WHOLE_BYTES_MAX: u64 = 64 * 1024;
const PIECE_BYTES: usize = 16 * 1024;

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    if !is_wanted(ctx) {
        return rest.run(ctx).await;
    }
    ctx.headers.remove(header::ACCEPT_ENCODING);
    let response = rest.run(ctx).await;
    if !is_ours(ctx) && !response.status().is_client_error() && !response.status().is_server_error() {
        return response;
    }
    let (parts, body) = response.into_parts();
    if !is_json(&parts) {
        return Response::from_parts(parts, body);
    }
    let mut indent = Indent::default();
    if body.size_hint().exact().is_some_and(|it| it <= WHOLE_BYTES_MAX) {
        return match body.collect().await {
            Ok(body) => Response::from_parts(parts, whole(indent.write(&body.to_bytes()))),
            Err(error) => failed(&error),
        };
    }
    let pieces = BodyStream::new(body).flat_map(move |frame| stream::iter(indented(&mut indent, frame)));
    Response::from_parts(parts, StreamBody::new(pieces).boxed_unsync())
}

fn is_wanted(ctx: &Context) -> bool {
    // What is asked of others is not ours to rewrite, and the events of a watch are a line each.
    if ctx.is_aggregated() || ctx.info.proxied.is_some() || ctx.info.verb == "watch" {
        return false;
    }
    match ctx.info.query.get("pretty").filter(|it| !it.is_empty()) {
        Some(pretty) => matches!(pretty, "1" | "t" | "T" | "true" | "True" | "TRUE"),
        None => {
            let name = codec::header(&ctx.headers, &header::USER_AGENT);
            ["curl", "Wget", "Mozilla/5.0"].iter().any(|it| name.starts_with(it))
        }
    }
}

/// Objects and what tells of kinds; not documents of OpenAPI, keys of tokens, streams of progress, which are written as they are.
fn is_ours(ctx: &Context) -> bool {
    let is_discovery = |root: &str| {
        let below = ctx.info.path.strip_prefix(root);
        below.is_some_and(|it| it.is_empty() || it.starts_with('/'))
    };
    ctx.info.is_resource() || is_discovery("/api") || is_discovery("/apis")
}

fn is_json(parts: &Parts) -> bool {
    let media_type = codec::header(&parts.headers, &header::CONTENT_TYPE);
    let is_json = media_type == "application/json" || media_type.starts_with("application/json;");
    is_json && !parts.headers.contains_key(header::CONTENT_ENCODING)
}

fn indented(indent: &mut Indent, frame: Result<Frame<Bytes>, BoxError>) -> Vec<Result<Frame<Bytes>, BoxError>> {
    match frame.map(Frame::into_data) {
        Ok(Ok(data)) => data.chunks(PIECE_BYTES).map(|it| Ok(Frame::data(indent.write(it).into()))).collect(),
        Ok(Err(other)) => vec![Ok(other)],
        Err(error) => vec![Err(error)],
    }
}

fn failed(error: &BoxError) -> Response {
    answer::status(&Status::internal(format!("cannot write the answer: {error}")))
}
