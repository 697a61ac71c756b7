//! `/openapi/v2` and `/openapi/v3`: made when first asked for, kept compressed. Beside them discovery, `/api` and `/apis`.
//!
//! All of it is read off the table of kinds.

#![expect(
    clippy::result_large_err,
    reason = "a Status is made once for each refused request; a box would burden every signature"
)]

mod aggregated;
mod api_resource_discovery;
pub mod discovery;
mod document;
mod gnostic;
mod merged;
mod notes;
mod operations;
mod parameters;
mod paths;
mod schemas;
mod written;

use bytes::Bytes;
use corten_cacher::{
    answer,
    apart::apart,
    body::Response,
    codec::{self, gzip},
};
use corten_meta::Status;
use corten_routes::RequestInfo;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};

pub use aggregated::{Aggregated, AggregatedVersion, Description, Resources, Swagger};
pub use document::Documents;
use written::Document;

const JSON: &str = "application/json";
/// What protobuf is called, asked for and answered: no media type may hold an `@`, and clients check the answer.
const V2_PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
];
const V3_PROTOBUF: [&str; 2] = [
    "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
    "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
];
/// What a document asked for by its hash is: the same for ever.
const IMMUTABLE: &str = "public, immutable, max-age=31536000";

/// `None` where the path is not one of OpenAPI.
pub fn answer(
    documents: &Documents,
    info: &RequestInfo,
    method: &Method,
    headers: &HeaderMap,
) -> Option<Result<Response, Status>> {
    let path = &*info.path;
    let wanted = path.strip_prefix("/openapi/")?;
    if ![Method::GET, Method::HEAD].contains(method) {
        let message = "the server does not allow this method on the requested resource";
        return Some(Err(Status::failure(405, "MethodNotAllowed", message)));
    }
    let accept = codec::header(headers, &header::ACCEPT);
    match wanted {
        "v2" => Some(v2(documents, headers, accept)),
        "v3" => Some(Ok(send(headers, documents.index(), JSON))),
        _ => Some(v3(info, headers, accept, documents.v3(wanted.strip_prefix("v3/")?)?)),
    }
}

/// Whether protobuf, where there is such a form, is what `accept` wants most.
fn is_protobuf_wanted(accept: &str, protobuf: &[&str]) -> Result<bool, Status> {
    let mut wishes = codec::accept::ranges(accept).map(codec::accept::media_type);
    let first = wishes.find(|it| matches!(*it, "" | JSON | "application/*" | "*/*") || protobuf.contains(it));
    let forms = || [&[JSON], &protobuf[..protobuf.len().min(1)]].concat().join(", ");
    let first = first.ok_or_else(|| Status::not_acceptable(&forms()))?;
    Ok(protobuf.contains(&first))
}

fn v2(documents: &Documents, headers: &HeaderMap, accept: &str) -> Result<Response, Status> {
    Ok(match is_protobuf_wanted(accept, &V2_PROTOBUF)? {
        true => send(headers, documents.v2_protobuf(), V2_PROTOBUF[1]),
        false => send(headers, documents.v2_json(), JSON),
    })
}

/// The hash in the query is that of the document in JSON, in whichever form it is answered: the index names that one.
fn v3(info: &RequestInfo, headers: &HeaderMap, accept: &str, document: &Document) -> Result<Response, Status> {
    let protobuf = is_protobuf_wanted(accept, &V3_PROTOBUF)?.then(|| document.v3_protobuf());
    let (form, media_type) = match protobuf {
        Some(Some(protobuf)) => (protobuf, V3_PROTOBUF[1]),
        // Of another server's document there may be none.
        Some(None) => is_protobuf_wanted(accept, &[]).map(|_| (document, JSON))?,
        None => (document, JSON),
    };
    let hash = info.query.get("hash");
    if hash.is_some_and(|it| *it != document.hash) {
        let mut response = answer::with_type(StatusCode::MOVED_PERMANENTLY, media_type, Bytes::new());
        let location = HeaderValue::from_str(&format!("{}?hash={}", info.path, document.hash));
        response.headers_mut().insert(header::LOCATION, location.expect("a path that is served and a hash"));
        return Ok(response);
    }
    let mut response = send(headers, form, media_type);
    if hash.is_some() {
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static(IMMUTABLE));
    }
    Ok(response)
}

fn send(headers: &HeaderMap, document: &Document, media_type: &'static str) -> Response {
    let tag = format!("\"{}\"", document.hash);
    let mut response = if codec::header(headers, &header::IF_NONE_MATCH) == tag {
        answer::with_type(StatusCode::NOT_MODIFIED, media_type, Bytes::new())
    } else if gzip::accepted(codec::header(headers, &header::ACCEPT_ENCODING)) {
        let mut response = answer::with_type(StatusCode::OK, media_type, document.compressed.clone());
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        response
    } else {
        answer::with_type(StatusCode::OK, media_type, apart(|| document.plain()))
    };
    let headers = response.headers_mut();
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding, Accept"));
    headers.insert(header::ETAG, HeaderValue::from_str(&tag).expect("hexadecimal digits in quotes"));
    response
}

#[cfg(test)]
mod tests;
