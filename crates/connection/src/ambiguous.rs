//! Requests that two readers could read as different ones, beside those that hyper and h2 refuse themselves.
//!
//! Nothing stands before this server that would read them first, but nobody need send such, either.

use http::{HeaderMap, HeaderName, Method, Request, header};

/// Headers that mean one thing: of two of them some readers take the first, others the last, or join them.
static SINGLE: [HeaderName; 9] = [
    header::HOST,
    header::AUTHORIZATION,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::ORIGIN,
    HeaderName::from_static("impersonate-user"),
    HeaderName::from_static("impersonate-uid"),
    HeaderName::from_static("sec-websocket-key"),
    HeaderName::from_static("sec-websocket-version"),
];

/// Why a request of HTTP/2 is not answered. `None` for nearly all.
pub fn said_twice(headers: &HeaderMap) -> Option<String> {
    let twice = SINGLE.iter().find(|it| headers.get_all(*it).iter().nth(1).is_some())?;
    Some(format!("there is more than one {twice} header"))
}

/// Why a request of HTTP/1.1 is not answered, and its connection ends.
pub fn ambiguity<B>(request: &Request<B>) -> Option<String> {
    let headers = request.headers();
    let encodings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let mut encodings = encodings.map(|it| it.as_bytes().eq_ignore_ascii_case(b"chunked"));
    if encodings.next().is_some_and(|is_chunked| !is_chunked) || encodings.next().is_some() {
        return Some("the body is encoded more than once".into());
    }
    // What has no slash is taken for a host.
    if request.uri().path().is_empty() && *request.method() != Method::CONNECT {
        return Some("the target is no path".into());
    }
    said_twice(headers)
}
