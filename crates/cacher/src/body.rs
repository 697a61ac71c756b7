//! Bodies on their way in and out.

use std::{future::Future, pin::Pin};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body on its way in or out: whole, or the endless one of a watch.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;
pub type Response = http::Response<Body>;

/// The largest request body, kube-apiserver's `MaxRequestBodyBytes`.
pub const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// A body that is all there.
pub fn whole(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}
