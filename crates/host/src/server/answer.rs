//! What answers are made of.

use std::io;

use bytes::Bytes;
use http::{Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};

pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// An answer that is not an object, in plain text, as the kubelet gives it.
#[derive(Debug)]
pub(crate) struct PlainTextError {
    pub(super) status: StatusCode,
    pub(super) message: String,
}

impl PlainTextError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    pub(crate) fn internal(error: impl std::fmt::Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
    }
}

pub(crate) fn json_body(value: &serde_json::Value) -> Response<Body> {
    let mut response = Response::new(text(value.to_string()));
    response.headers_mut().insert(header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

pub(crate) fn text(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).map_err(|never| match never {}).boxed_unsync()
}

pub(crate) fn plain(response: &mut Response<Body>) {
    let kind = http::HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
}

/// The values of a query, in order.
pub(crate) fn query(query: &str) -> Vec<(String, String)> {
    form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}
