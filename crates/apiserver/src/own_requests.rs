//! The server's own requests: each goes through the whole chain, as everybody's does. Only what is emptied with its definition
//! goes at the store.

use bytes::Bytes;
use corten_access::{Identity, MASTERS, identity::AUTHENTICATED, tokens::Patch};
use corten_cacher::body::whole;
use corten_meta::Status;
use http::{Method, Request, header};
use http_body_util::BodyExt;
use tracing::Instrument;

use crate::{chain, context::Context, state::State};

pub(crate) const JSON: &str = "application/json";
pub(crate) const MERGE_PATCH: &str = "application/merge-patch+json";

/// The body of the answer.
///
/// # Errors
/// What the request is refused with.
pub(crate) async fn send(
    state: &State,
    method: Method,
    path: &str,
    media_type: &str,
    body: Bytes,
) -> Result<Bytes, Status> {
    let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, media_type);
    let request = request.body(whole(body));
    let request = request.map_err(|it| Status::internal(format!("cannot ask for {path}: {it}")))?;
    let mut ctx = Context::new(state.clone(), request, None, Some(own()));
    let span = tracing::debug_span!("request", id = %ctx.id, method = %ctx.method, path);
    let response = chain::run(&mut ctx).instrument(span).await;
    let is_success = response.status().is_success();
    let body = response.into_body().collect().await.map_err(Status::internal)?.to_bytes();
    if is_success { Ok(body) } else { Err(serde_json::from_slice(&body).map_err(Status::internal)?) }
}

/// Sends merge patches, for who has no server.
pub(crate) fn patches(state: &State) -> Box<Patch> {
    let state = state.clone();
    Box::new(move |path, patch| {
        let state = state.clone();
        Box::pin(async move { send(&state, Method::PATCH, &path, MERGE_PATCH, patch).await.map(drop) })
    })
}

/// What the server does to its store, which nobody asks of it: there is no request that others could refuse.
pub(crate) fn at_the_store(state: &State) -> Context {
    let mut ctx = Context::new(state.clone(), Request::new(whole(Bytes::new())), None, Some(own()));
    ctx.skips_admission = true;
    ctx
}

fn own() -> Identity {
    Identity::new("system:apiserver", &[MASTERS, AUTHENTICATED])
}
