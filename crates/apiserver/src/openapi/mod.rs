//! `/openapi/v2` and `/openapi/v3`: made when first asked for, kept compressed.

mod document;
mod gnostic;
mod notes;
mod operations;
mod parameters;
mod paths;
mod schemas;

use bytes::Bytes;
use corten_meta::Status;
use http::{HeaderValue, Method, StatusCode, header};

use crate::{
    answer,
    codec::gzip,
    request::{Context, Response},
};
use document::{Document, V2_JSON, V2_PROTOBUF, V3};

const JSON: &str = "application/json";
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// What the answer is called: no media type may hold an `@`, and clients check. As upstream.
const PROTOBUF_ANSWER: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// What a document asked for by its hash is: the same for ever.
const IMMUTABLE: &str = "public, immutable, max-age=31536000";

/// `None` where the path is not one of OpenAPI.
pub(crate) fn answer(ctx: &Context) -> Option<Result<Response, Status>> {
    let path = &*ctx.info.path;
    let wanted = path.strip_prefix("/openapi/")?;
    if ![Method::GET, Method::HEAD].contains(&ctx.method) {
        let message = "the server does not allow this method on the requested resource";
        return Some(Err(Status::failure(405, "MethodNotAllowed", message)));
    }
    let accept = ctx.header(header::ACCEPT);
    match wanted {
        "v2" => Some(v2(ctx, accept)),
        "v3" => Some(json_only(accept).map(|()| send(ctx, &V3.index, JSON))),
        _ => {
            let document = V3.documents.get(wanted.strip_prefix("v3/")?)?;
            Some(json_only(accept).map(|()| v3(ctx, path, document)))
        }
    }
}

fn v2(ctx: &Context, accept: &str) -> Result<Response, Status> {
    let mut wishes = accept.split(',').map(|it| it.split(';').next().unwrap_or_default().trim());
    let first = wishes.find(|it| matches!(*it, "" | JSON | "application/*" | "*/*" | PROTOBUF | PROTOBUF_ANSWER));
    match first {
        Some(PROTOBUF | PROTOBUF_ANSWER) => Ok(send(ctx, &V2_PROTOBUF, PROTOBUF_ANSWER)),
        Some(_) => Ok(send(ctx, &V2_JSON, JSON)),
        None => Err(Status::not_acceptable(&format!("{JSON}, {PROTOBUF}"))),
    }
}

/// Version 3 is JSON; a client that wants nothing else is told so.
fn json_only(accept: &str) -> Result<(), Status> {
    let mut wishes = accept.split(',').map(|it| it.split(';').next().unwrap_or_default().trim());
    let fits = wishes.any(|it| matches!(it, "" | JSON | "application/*" | "*/*"));
    if fits { Ok(()) } else { Err(Status::not_acceptable(JSON)) }
}

fn v3(ctx: &Context, path: &str, document: &Document) -> Response {
    let mut response = match ctx.info.query.get("hash") {
        None => return send(ctx, document, JSON),
        Some(hash) if hash == document.hash => send(ctx, document, JSON),
        Some(_) => {
            let mut response = answer::with_type(StatusCode::MOVED_PERMANENTLY, JSON, Bytes::new());
            let location = HeaderValue::from_str(&format!("{path}?hash={}", document.hash));
            response.headers_mut().insert(header::LOCATION, location.expect("a path that is served and a hash"));
            return response;
        }
    };
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(IMMUTABLE));
    response
}

fn send(ctx: &Context, document: &Document, media_type: &'static str) -> Response {
    let tag = format!("\"{}\"", document.hash);
    let mut response = if ctx.header(header::IF_NONE_MATCH) == tag {
        answer::with_type(StatusCode::NOT_MODIFIED, media_type, Bytes::new())
    } else if gzip::accepted(ctx.header(header::ACCEPT_ENCODING)) {
        let mut response = answer::with_type(StatusCode::OK, media_type, document.compressed.clone());
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    } else {
        answer::with_type(StatusCode::OK, media_type, document.plain())
    };
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding, Accept"));
    headers.insert(header::ETAG, HeaderValue::from_str(&tag).expect("hexadecimal digits in quotes"));
    response
}

#[cfg(test)]
mod tests;
