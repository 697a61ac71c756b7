//! Requests of HTTP/1.1 that two readers could read as different ones, beside those that hyper refuses itself.
//!
//! Nothing stands before this server that would read them first, but nobody need send such, either.

use http::{HeaderValue, Method, Request, header};

use crate::{answer, request::Response};

/// Why the request is not answered. `None` for nearly all.
fn ambiguity<B>(request: &Request<B>) -> Option<&'static str> {
    let headers = request.headers();
    let encodings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let mut encodings = encodings.map(|it| it.as_bytes().eq_ignore_ascii_case(b"chunked"));
    if encodings.next().is_some_and(|is_chunked| !is_chunked) || encodings.next().is_some() {
        return Some("the body is encoded more than once");
    }
    if headers.get_all(header::HOST).iter().nth(1).is_some() {
        return Some("there is more than one Host");
    }
    // What has no slash is taken for a host.
    if request.uri().path().is_empty() && *request.method() != Method::CONNECT {
        return Some("the target is no path");
    }
    None
}

/// The answer that such a request gets; the connection ends with it.
pub(super) fn refused<B>(request: &Request<B>) -> Option<Response> {
    let status = corten_meta::Status::bad_request(ambiguity(request)?);
    let mut response = answer::status(&status);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    Some(response)
}
