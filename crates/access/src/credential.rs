//! By what a request shows who it is: a client certificate, a token, or nothing.
//!
//! A credential that was presented and proves nothing is an error; only a request without any is anonymous.

use std::{sync::Arc, time::SystemTime};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use corten_pki::{Authority, Proven};
use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::{
    identity::{Identity, Peer},
    refusals::Refusals,
    request_header,
    tokens::{Accepted, Authenticator, CREDENTIAL_ID, CachesNow, ISSUER, Unproven},
};

/// Browsers cannot set headers on a WebSocket: they send the token as one of the protocols they speak.
const PROTOCOL_TOKEN: &str = "base64url.bearer.authorization.k8s.io.";

/// How a request shows who it is by. What goes on for hours keeps it, to be asked again.
#[derive(Clone, Default)]
pub enum Credential {
    #[default]
    Nothing,
    /// A call from inside the process.
    Inside,
    /// The client certificate of the connection.
    Certificate,
    /// What a front proxy says, whose certificate the connection has.
    FrontProxy,
    Token(BearerToken),
}

/// The text of a token. It cannot be printed, and nobody but authentication reads it.
#[derive(Clone)]
pub struct BearerToken(Arc<str>);

/// Nobody further in needs the secret, and it must not be passed on to a kubelet. Neither must what only a proxy in front
/// of the server can say.
pub fn forget_secrets(headers: &mut HeaderMap) {
    headers.remove(header::AUTHORIZATION);
    request_header::forget(headers);
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

/// What was shown and proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempted(pub &'static str);

/// Who asked, by what, and where they use a token beyond its hour, that.
pub struct Proof {
    pub identity: Identity,
    pub credential: Credential,
    pub stale: Option<String>,
    /// When the certificate ends that proves it.
    pub certificate_end: Option<SystemTime>,
}

impl Proof {
    fn new(identity: Identity, credential: Credential) -> Self {
        Self { identity, credential, stale: None, certificate_end: None }
    }
}

/// Has what is needed to judge the request's token brought here, where a moment is enough for that.
pub(crate) async fn prepare(authenticator: &Authenticator, headers: &HeaderMap) {
    if authenticator.issuers().is_empty() {
        return;
    }
    if let Some(token) = token(headers) {
        authenticator.issuers().prepare(&token).await;
    }
}

/// # Errors
/// What was tried, where something is shown that proves nothing, or where nothing is shown and something must be.
pub(crate) async fn identify(
    authenticator: &Authenticator,
    refusals: &Refusals,
    at: &CachesNow<'_>,
    peer: Option<&Peer>,
    headers: &HeaderMap,
    path: &str,
) -> Result<Proof, Attempted> {
    let certificate = by_certificate(peer, authenticator.pki());
    if let Some(Ok((identity, end))) = certificate {
        return Ok(Proof { certificate_end: Some(end), ..Proof::new(identity, Credential::Certificate) });
    }
    if certificate.is_some()
        && let Some(identity) = request_header::spoken_for(peer, authenticator.pki(), headers)
    {
        return Ok(Proof::new(identity, Credential::FrontProxy));
    }
    if let Some(token) = token(headers).map(|it| BearerToken(it.into())) {
        let Accepted { who, stale, .. } = by_token(authenticator, at, &token, peer).await.map_err(|unproven| {
            refusals.tell(&unproven.reasons, at.now);
            Attempted("attempted: bearer")
        })?;
        return Ok(Proof { stale, ..Proof::new(who.authenticated(), Credential::Token(token)) });
    }
    match certificate {
        Some(refused) => {
            refusals.tell(&refused.err().into_iter().collect::<Vec<_>>(), at.now);
            Err(Attempted("attempted: x509"))
        }
        None if !authenticator.issuers().lets_in_strangers(path) => Err(Attempted("")),
        None => Ok(Proof::new(Identity::anonymous(), Credential::Nothing)),
    }
}

/// Whether a credential still proves who somebody is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    Known(Identity),
    /// It proves nothing any more.
    Nobody,
    /// Who would know it could not be asked.
    Unknown,
}

impl Credential {
    /// Who holds it now.
    pub(crate) async fn holder(
        &self,
        authenticator: &Authenticator,
        at: &CachesNow<'_>,
        peer: Option<&Peer>,
        before: &Identity,
        path: &str,
    ) -> Holder {
        let known = |it: Option<Identity>| it.map_or(Holder::Nobody, Holder::Known);
        match self {
            Self::Nothing => known(authenticator.issuers().lets_in_strangers(path).then(Identity::anonymous)),
            Self::Inside => Holder::Known(before.clone()),
            Self::FrontProxy => {
                known(request_header::is_front_proxy(peer, authenticator.pki()).then(|| before.clone()))
            }
            Self::Certificate => known(by_certificate(peer, authenticator.pki()).and_then(Result::ok).map(|it| it.0)),
            Self::Token(token) => match by_token(authenticator, at, token, peer).await {
                Ok(accepted) => Holder::Known(accepted.who.authenticated()),
                Err(unproven) if unproven.is_certain => Holder::Nobody,
                Err(_) => Holder::Unknown,
            },
        }
    }
}

async fn by_token(
    authenticator: &Authenticator,
    at: &CachesNow<'_>,
    BearerToken(token): &BearerToken,
    peer: Option<&Peer>,
) -> Result<Accepted, Unproven> {
    authenticator.holder(at, token, &[ISSUER], peer.map(|it| it.address.ip())).await
}

/// Who shows it, and when it ends. `None` where none was shown; `Err` where it proves nothing.
fn by_certificate(peer: Option<&Peer>, pki: &Authority) -> Option<Result<(Identity, SystemTime), String>> {
    let chain = peer.map_or(&[][..], |it| &it.certificates);
    chain.first()?;
    Some(pki.verify_client(chain).map(holder_of).map_err(|error| error.to_string()))
}

fn holder_of(proven: Proven) -> (Identity, SystemTime) {
    let Proven { user, uid, groups, fingerprint, end } = proven;
    let credential = [(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={fingerprint}")])];
    (Identity { user, uid, groups, extra: credential.into() }.authenticated(), end)
}

/// The bearer token, if one is shown. Another scheme of `Authorization` counts as nothing (`bearertoken.Authenticator`).
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
