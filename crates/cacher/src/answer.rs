//! Small makers of whole responses: JSON, text, a Status.

use bytes::Bytes;
use corten_meta::Status;
use http::{HeaderValue, StatusCode, header};
use http_body::Body as _;
use serde::Serialize;

use crate::body::{Response, whole};

/// A response with a JSON body that is there as bytes.
pub fn json_bytes(code: StatusCode, body: impl Into<Bytes>) -> Response {
    with_type(code, "application/json", body)
}

pub fn json(code: StatusCode, body: &impl Serialize) -> Response {
    match serde_json::to_vec(body) {
        Ok(bytes) => json_bytes(code, bytes),
        Err(error) => status(&Status::internal(format!("cannot write the answer as JSON: {error}"))),
    }
}

pub fn text(code: StatusCode, body: impl Into<Bytes>) -> Response {
    with_type(code, "text/plain; charset=utf-8", body)
}

pub fn status(status: &Status) -> Response {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json_bytes(code, serde_json::to_vec(status).expect("a status is plain strings and numbers"));
    let retry_after = status.details.as_ref().and_then(|it| it.retry_after_seconds);
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// The answer of a verb, where failures are Statuses.
pub fn of(result: Result<Response, Status>) -> Response {
    result.unwrap_or_else(|it| status(&it))
}

/// The answer to HEAD: what GET would be told, without the body. Over HTTP/2 a body would break the protocol (RFC 9110, 9.3.2).
/// The length of a body that is not known yet, as of a watch, is not told, and what would have made it ends here.
pub fn without_body(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    // An answer of somebody else, who was asked by HEAD too, has the length already.
    let is_told = parts.headers.contains_key(header::CONTENT_LENGTH);
    if let Some(length) = body.size_hint().exact().filter(|_| !is_told) {
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    }
    http::Response::from_parts(parts, whole(Bytes::new()))
}

pub fn with_type(code: StatusCode, media_type: &'static str, body: impl Into<Bytes>) -> Response {
    let mut response = http::Response::new(whole(body));
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}
