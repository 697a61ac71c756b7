//! The seam between a client and a server: one HTTP request in, one HTTP response out.

use std::{future::Future, pin::Pin, sync::Arc};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A response's body: whole, or the endless one of a watch.
pub type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// The request did not get an answer; whether the server acted on it is not known.
#[derive(Clone, Debug, thiserror::Error)]
#[error("cannot reach the API server: {0}")]
pub struct TransportError(pub String);

/// Carries requests to one API server under one identity.
pub trait Transport: Send + Sync + 'static {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>>;

    /// `10.0.0.5:6443`, for who counts requests: the server that is asked now. None where no network is between.
    fn host(&self) -> Option<Arc<str>> {
        None
    }
}
