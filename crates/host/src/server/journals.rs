//! `GET /journals`, `GET /journals/NAMESPACE/RESOURCE.NAME`: what the loops of this node decided last, for `corten why`.

use http::{Response, StatusCode};
use serde_json::Value;

use super::{Body, PlainTextError, json_body, routes::Call};

/// What the loops of the node's process have noted.
pub trait Journals: Send + Sync + 'static {
    /// Of one object; nothing where a node has no such journals.
    fn of(&self, namespace: &str, journal: &str) -> Option<Value>;
    /// Of all that waits for anything.
    fn waiting(&self) -> Value;
}

pub(super) async fn of(call: Call) -> Result<Response<Body>, PlainTextError> {
    let journal = call.server.journals().of(call.name(0), call.name(1));
    let missing = || PlainTextError::new(StatusCode::NOT_FOUND, format!("no journal {:?}", call.name(1)));
    journal.map(|it| json_body(&it)).ok_or_else(missing)
}

pub(super) async fn waiting(call: Call) -> Result<Response<Body>, PlainTextError> {
    Ok(json_body(&call.server.journals().waiting()))
}
