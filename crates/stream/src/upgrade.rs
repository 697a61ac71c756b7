//! A client's wish to leave HTTP: read from its request, replayed to the next server, granted once that one has agreed.

use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE},
    response,
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;

use crate::{Copied, Limits, copy_both};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Spdy,
    WebSocket,
}

/// Why a request cannot be upgraded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// 400.
    #[error("Upgrade request required")]
    NotAnUpgrade,
    /// 400.
    #[error("unable to upgrade: only SPDY/3.1 and websocket are known, not {0:?}")]
    UnknownProtocol(String),
    /// 403, before the upgrade: kubectl then falls back to SPDY, whose frames are not translated.
    #[error("unable to upgrade: none of the WebSocket protocols {0:?} is supported")]
    UnknownSubprotocols(String),
    /// 400: HTTP/2, or a call from inside the process.
    #[error("unable to upgrade: the connection cannot leave HTTP")]
    NoConnection,
}

/// The WebSocket protocols that every container runtime speaks. `v5.channel.k8s.io` and tunnelled SPDY are not among them.
const SUBPROTOCOLS: [&str; 8] = [
    "channel.k8s.io",
    "base64.channel.k8s.io",
    "v2.channel.k8s.io",
    "v2.base64.channel.k8s.io",
    "v3.channel.k8s.io",
    "v3.base64.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
];

/// Request headers that belong to the upgrade itself.
const REPLAYED: [&str; 7] = [
    "connection",
    "upgrade",
    "x-stream-protocol-version",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-extensions",
    "origin",
];

/// Response headers that belong to the upgrade itself.
const ANSWERED: [&str; 6] = [
    "connection",
    "upgrade",
    "x-stream-protocol-version",
    "sec-websocket-accept",
    "sec-websocket-protocol",
    "sec-websocket-extensions",
];

/// A client that wants its connection to carry something other than HTTP.
#[derive(Debug)]
pub struct Upgrade {
    protocol: Protocol,
    headers: HeaderMap,
    connection: OnUpgrade,
}

impl Upgrade {
    /// Reads the wish from a request's headers; `connection` is what hyper put into its extensions.
    ///
    /// # Errors
    /// The request asks for no upgrade, or for one that cannot be had.
    pub fn from_request(headers: &HeaderMap, connection: Option<OnUpgrade>) -> Result<Self, Refusal> {
        let protocol = protocol(headers)?;
        let mut replayed = copies(headers, &REPLAYED);
        if protocol == Protocol::WebSocket
            && let Some(offer) = known_subprotocols(headers)?
        {
            replayed.insert(SEC_WEBSOCKET_PROTOCOL, offer);
        }
        Ok(Self { protocol, headers: replayed, connection: connection.ok_or(Refusal::NoConnection)? })
    }

    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// What the request to the next server must carry.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The `101 Switching Protocols` for the client, made of the next server's, and what runs after it is sent.
    pub fn accept(self, head: &response::Parts) -> (http::Response<()>, Accepted) {
        let mut response = http::Response::new(());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        *response.headers_mut() = copies(&head.headers, &ANSWERED);
        (response, Accepted(self.connection))
    }
}

/// A client's connection that is about to leave HTTP.
#[derive(Debug)]
pub struct Accepted(OnUpgrade);

impl Accepted {
    /// Copies between the client and the other side until both have ended.
    ///
    /// # Errors
    /// The client went away before the switch, a side broke off, or nothing moved for too long.
    pub async fn tunnel(self, other: Upgraded, limits: Limits) -> std::io::Result<Copied> {
        let client = tokio::time::timeout(limits.switch, self.0).await;
        let client = client.map_err(|_| std::io::ErrorKind::TimedOut)?.map_err(std::io::Error::other)?;
        copy_both(TokioIo::new(client), TokioIo::new(other), limits).await
    }
}

fn protocol(headers: &HeaderMap) -> Result<Protocol, Refusal> {
    let wants = headers.get_all(CONNECTION).iter().filter_map(|it| it.to_str().ok());
    let wants = wants.flat_map(|it| it.split(',')).any(|it| it.trim().eq_ignore_ascii_case("upgrade"));
    let to = headers.get(UPGRADE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    match to {
        _ if !wants || to.is_empty() => Err(Refusal::NotAnUpgrade),
        _ if to.eq_ignore_ascii_case("SPDY/3.1") => Ok(Protocol::Spdy),
        _ if to.eq_ignore_ascii_case("websocket") => Ok(Protocol::WebSocket),
        other => Err(Refusal::UnknownProtocol(other.to_owned())),
    }
}

/// The part of the client's offer that can be served; `None` where it offers nothing, which means the oldest protocol.
fn known_subprotocols(headers: &HeaderMap) -> Result<Option<HeaderValue>, Refusal> {
    let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|it| it.to_str().ok());
    let offered: Vec<&str> = offered.flat_map(|it| it.split(',')).map(str::trim).filter(|it| !it.is_empty()).collect();
    let known: Vec<&str> = offered.iter().copied().filter(|it| SUBPROTOCOLS.contains(it)).collect();
    match (&*offered, &*known) {
        ([], _) => Ok(None),
        (_, []) => Err(Refusal::UnknownSubprotocols(offered.join(", "))),
        _ => Ok(Some(HeaderValue::from_str(&known.join(", ")).expect("known names are plain text"))),
    }
}

/// Every value of the named headers: SPDY clients offer their protocols in several headers of one name.
fn copies(headers: &HeaderMap, names: &[&'static str]) -> HeaderMap {
    let mut copies = HeaderMap::new();
    for name in names {
        for value in headers.get_all(*name) {
            copies.append(HeaderName::from_static(name), value.clone());
        }
    }
    copies
}

#[cfg(test)]
mod tests;
