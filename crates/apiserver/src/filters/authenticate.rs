//! Finds out who asks: the caller inside the process, the holder of a client certificate or of a token, or nobody in
//! particular.
//!
//! A credential that was presented and proves nothing is 401; only a request without any is anonymous.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use corten_meta::Status;
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::audit;
use crate::{
    Server, answer,
    chain::Rest,
    request::{Context, Identity, Peer, Response},
    tokens::{self, Accepted, CREDENTIAL_ID, ISSUER},
};

pub(crate) const ANONYMOUS: &str = "system:anonymous";
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";

/// Browsers cannot set headers on a WebSocket: they send the token as one of the protocols they speak.
const PROTOCOL_TOKEN: &str = "base64url.bearer.authorization.k8s.io.";

/// How a request shows who it is by. What goes on for hours keeps it, to be asked again.
#[derive(Clone, Default)]
pub(crate) enum Credential {
    #[default]
    Nothing,
    /// A call from inside the process.
    Inside,
    /// The client certificate of the connection.
    Certificate,
    Token(BearerToken),
}

/// The text of a token. It cannot be printed, and nobody but authentication reads it.
#[derive(Clone)]
pub(crate) struct BearerToken(Arc<str>);

pub(crate) async fn filter(ctx: &mut Context, rest: Rest) -> Response {
    match identify(ctx) {
        Ok(identity) => ctx.identity = Some(identity),
        Err(attempted) => {
            let status = Status::unauthorized();
            audit::refused(ctx, &status, attempted);
            return answer::status(&status);
        }
    }
    forget_secrets(&mut ctx.headers);
    rest.run(ctx).await
}

/// Nobody further in needs the secret, and it must not be passed on to a kubelet. Neither must what only a proxy in front
/// of the server could say: no proxy is trusted, so it says nothing.
fn forget_secrets(headers: &mut HeaderMap) {
    headers.remove(header::AUTHORIZATION);
    let remote = |it: &&HeaderName| it.as_str().starts_with("x-remote-");
    let remote: Vec<HeaderName> = headers.keys().filter(remote).cloned().collect();
    for name in remote {
        headers.remove(name);
    }
    if let Some(Ok(kept)) = offered(headers).map(|it| HeaderValue::from_str(&without_token(&it))) {
        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, kept);
    }
}

/// The protocols a WebSocket is asked for, in as many headers as they may stand in.
fn offered(headers: &HeaderMap) -> Option<String> {
    let lists: Vec<&str> =
        headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|it| it.to_str().ok()).collect();
    (!lists.is_empty()).then(|| lists.join(", "))
}

fn protocols(header: &str) -> impl Iterator<Item = &str> {
    header.split(',').map(str::trim)
}

fn without_token(header: &str) -> String {
    protocols(header).filter(|it| !it.starts_with(PROTOCOL_TOKEN)).collect::<Vec<_>>().join(", ")
}

/// `Err` says what was tried.
fn identify(ctx: &mut Context) -> Result<Identity, &'static str> {
    // Only calls from inside the process come with an identity: nothing on the wire can set it.
    if let Some(known) = &ctx.identity {
        ctx.credential = Credential::Inside;
        return Ok(known.clone());
    }
    let certificate = by_certificate(ctx.peer.as_ref(), &ctx.server.config().pki);
    if let Some(Ok(holder)) = certificate {
        ctx.credential = Credential::Certificate;
        return Ok(holder);
    }
    if let Some(token) = token(&ctx.headers).map(|it| BearerToken(it.into())) {
        let accepted = by_token(&ctx.server, &token)?;
        if let Some(stale) = accepted.stale {
            ctx.audit_annotations.insert("authentication.k8s.io/stale-token".into(), stale);
        }
        ctx.credential = Credential::Token(token);
        return Ok(authenticated(accepted.who));
    }
    match certificate {
        Some(_) => Err("attempted: x509"),
        None => Ok(anonymous()),
    }
}

impl Credential {
    /// Who holds it now. `None` where it proves nothing any more.
    pub(crate) fn holder(&self, server: &Server, peer: Option<&Peer>, before: &Identity) -> Option<Identity> {
        match self {
            Self::Nothing => Some(anonymous()),
            Self::Inside => Some(before.clone()),
            Self::Certificate => by_certificate(peer, &server.config().pki)?.ok(),
            Self::Token(token) => by_token(server, token).ok().map(|it| authenticated(it.who)),
        }
    }
}

fn anonymous() -> Identity {
    Identity::new(ANONYMOUS, &[UNAUTHENTICATED])
}

fn by_token(server: &Server, BearerToken(token): &BearerToken) -> Result<Accepted, &'static str> {
    tokens::authenticate(server, token, &[ISSUER]).map_err(|reasons| {
        tracing::debug!(?reasons, "a bearer token was refused");
        "attempted: bearer"
    })
}

/// `None` where none was shown; `Err` where it proves nothing.
fn by_certificate(peer: Option<&Peer>, pki: &corten_pki::Authority) -> Option<Result<Identity, ()>> {
    let chain = peer.map_or(&[][..], |it| &it.certificates);
    chain.first()?;
    Some(pki.verify_client(chain).map(holder_of).map_err(|error| {
        tracing::debug!(%error, "a client certificate was refused");
    }))
}

fn holder_of(proven: corten_pki::Proven) -> Identity {
    let corten_pki::Proven { user, uid, groups, fingerprint } = proven;
    let credential = [(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={fingerprint}")])];
    authenticated(Identity { user, uid, groups, extra: credential.into() })
}

fn authenticated(mut identity: Identity) -> Identity {
    if !identity.groups.iter().any(|it| it == AUTHENTICATED) {
        identity.groups.push(AUTHENTICATED.into());
    }
    identity
}

/// The bearer token, if one is shown. Another scheme of `Authorization` counts as nothing, as upstream.
fn token(headers: &HeaderMap) -> Option<String> {
    let text = |name: HeaderName| headers.get(name).and_then(|it| it.to_str().ok());
    if let Some(value) = text(header::AUTHORIZATION) {
        let (scheme, token) = value.trim().split_once(' ')?;
        let token = token.split(' ').next().unwrap_or_default();
        return (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned());
    }
    let offered = offered(headers)?;
    let encoded = protocols(&offered).find_map(|it| it.strip_prefix(PROTOCOL_TOKEN))?;
    let token = String::from_utf8(URL_SAFE_NO_PAD.decode(encoded).ok()?).ok()?;
    (!token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests;
