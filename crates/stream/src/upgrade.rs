//! A client asks to leave HTTP: that is read from its request, asked of the next server, granted once that one has agreed.
//!
//! A client of an old protocol talks to the next server itself. For one of a new protocol the next server is asked for SPDY,
//! and what goes through is translated.

use std::io;

use bytes::BytesMut;
use http::{
    HeaderMap, HeaderName, HeaderValue, StatusCode,
    header::{
        CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
    },
    response,
};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;

use crate::{
    Copied, Limits, Streams, copy_both,
    translate::{PortForward, put_status, remote_command, run},
    websocket,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Spdy,
    WebSocket,
}

/// What the connection is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Exec and attach.
    RemoteCommand(Streams),
    PortForward,
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
    /// 403, before the upgrade: kubectl then falls back to SPDY.
    #[error("unable to upgrade: none of the WebSocket protocols {0:?} is supported")]
    UnknownSubprotocols(String),
    /// 400.
    #[error("unable to upgrade: not a WebSocket handshake of version 13")]
    NotAHandshake,
    /// 400: HTTP/2, or a call from inside the process.
    #[error("Upgrade request required")]
    NoConnection,
}

const REMOTE_COMMAND: &str = "v5.channel.k8s.io";
const TUNNELLED: &str = "SPDY/3.1+portforward.k8s.io";

/// The WebSocket protocols that every container runtime speaks itself.
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

/// Request headers that belong to the upgrade itself. Not whose page it is for: that is between the client and this server,
/// and the next one would judge it by our certificate.
const REPLAYED: [&str; 6] = [
    "connection",
    "upgrade",
    "x-stream-protocol-version",
    "sec-websocket-key",
    "sec-websocket-version",
    "sec-websocket-extensions",
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
    /// What the next server is asked.
    headers: HeaderMap,
    translation: Option<Translation>,
    /// The answer to the client's handshake, where it is ours to give.
    handshake: HeaderMap,
    connection: OnUpgrade,
}

/// For a client whose protocol the next server does not speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Translation {
    RemoteCommand(Streams),
    PortForward,
}

impl Translation {
    fn client_protocol(self) -> &'static str {
        match self {
            Self::RemoteCommand(_) => REMOTE_COMMAND,
            Self::PortForward => TUNNELLED,
        }
    }

    fn server_protocol(self) -> &'static str {
        match self {
            Self::RemoteCommand(_) => "v4.channel.k8s.io",
            Self::PortForward => "portforward.k8s.io",
        }
    }
}

impl Upgrade {
    /// Reads what a client asks for from a request's headers; `connection` is what hyper put into its extensions.
    ///
    /// # Errors
    /// The request asks for no upgrade, or for one that cannot be had.
    pub fn from_request(headers: &HeaderMap, connection: Option<OnUpgrade>, purpose: Purpose) -> Result<Self, Refusal> {
        let protocol = protocol(headers)?;
        let handling = match protocol {
            Protocol::Spdy => WebSocketHandling::Through(None),
            Protocol::WebSocket => handling(headers, purpose)?,
        };
        let connection = connection.ok_or(Refusal::NoConnection)?;
        Ok(match handling {
            WebSocketHandling::Through(offer) => {
                let mut headers = copies(headers, &REPLAYED);
                if let Some(offer) = offer {
                    headers.insert(SEC_WEBSOCKET_PROTOCOL, offer);
                }
                Self { protocol, headers, translation: None, handshake: HeaderMap::new(), connection }
            }
            WebSocketHandling::Translated(translation) => {
                let handshake = handshake(headers, Some(translation.client_protocol()))?;
                let mut asked = to("SPDY/3.1");
                let spoken = HeaderValue::from_static(translation.server_protocol());
                asked.insert(HeaderName::from_static("x-stream-protocol-version"), spoken);
                Self { protocol, headers: asked, translation: Some(translation), handshake, connection }
            }
        })
    }

    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Can the client be told of a failure after the switch, so that the switch need not wait for the next server?
    pub fn hears_of_failures(&self) -> bool {
        matches!(self.translation, Some(Translation::RemoteCommand(_)))
    }

    /// What the request to the next server must carry.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The `101 Switching Protocols` for the client, made of the next server's, and what runs after it is sent.
    pub fn accept(self, head: &response::Parts) -> (http::Response<()>, Accepted) {
        match self.translation {
            Some(_) => self.accept_at_once(),
            None => (switching(copies(&head.headers, &ANSWERED)), self.accepted()),
        }
    }

    /// As [`Upgrade::accept`], for a client that [hears of failures](Upgrade::hears_of_failures).
    pub fn accept_at_once(self) -> (http::Response<()>, Accepted) {
        (switching(self.handshake.clone()), self.accepted())
    }

    fn accepted(self) -> Accepted {
        Accepted { connection: self.connection, translation: self.translation }
    }
}

pub(crate) fn switching(headers: HeaderMap) -> http::Response<()> {
    let mut response = http::Response::new(());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = headers;
    response
}

/// A client's connection that is about to leave HTTP.
#[derive(Debug)]
pub struct Accepted {
    connection: OnUpgrade,
    translation: Option<Translation>,
}

impl Accepted {
    /// Of a client that talks to the other side itself, whatever they speak.
    pub fn plain(connection: OnUpgrade) -> Self {
        Self { connection, translation: None }
    }

    /// Joins the client to the other side until both have ended.
    ///
    /// # Errors
    /// The client went away before the switch, a side broke off, or nothing moved for too long.
    pub async fn tunnel(self, other: Upgraded, limits: Limits) -> io::Result<Copied> {
        let translation = self.translation;
        let (client, other) = (self.switched(limits).await?, TokioIo::new(other));
        match translation {
            None => copy_both(client, other, limits).await,
            Some(Translation::RemoteCommand(streams)) => run(client, other, remote_command(streams), limits).await,
            Some(Translation::PortForward) => run(client, other, (PortForward, PortForward), limits).await,
        }
    }

    /// Tells a client that [hears of failures](Upgrade::hears_of_failures) why there is no other side: a Status, as JSON.
    ///
    /// # Errors
    /// The client went away before it heard.
    pub async fn fail(self, status: &[u8], limits: Limits) -> io::Result<()> {
        let mut last_words = BytesMut::new();
        put_status(status, &mut last_words);
        websocket::put_close(websocket::NORMAL, &mut last_words);
        let mut client = self.switched(limits).await?;
        tokio::time::sleep(limits.head_start).await;
        let said = async {
            client.write_all(&last_words).await?;
            client.shutdown().await
        };
        tokio::time::timeout(limits.switch, said).await.map_err(|_| io::ErrorKind::TimedOut)?
    }

    pub(crate) async fn switched(self, limits: Limits) -> io::Result<TokioIo<Upgraded>> {
        let client = tokio::time::timeout(limits.switch, self.connection).await;
        let client = client.map_err(|_| io::ErrorKind::TimedOut)?.map_err(io::Error::other)?;
        Ok(TokioIo::new(client))
    }
}

pub(crate) fn protocol(headers: &HeaderMap) -> Result<Protocol, Refusal> {
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

/// What becomes of a WebSocket.
#[derive(Debug, PartialEq, Eq)]
enum WebSocketHandling {
    /// The next server speaks it itself: the part of the offer that it knows, `None` where nothing is offered, which means
    /// the oldest protocol.
    Through(Option<HeaderValue>),
    Translated(Translation),
}

/// The subprotocols that a client speaks.
pub(crate) fn offered(headers: &HeaderMap) -> Vec<&str> {
    let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().filter_map(|it| it.to_str().ok());
    offered.flat_map(|it| it.split(',')).map(str::trim).filter(|it| !it.is_empty()).collect()
}

fn handling(headers: &HeaderMap, purpose: Purpose) -> Result<WebSocketHandling, Refusal> {
    let offered = offered(headers);
    let translation = match purpose {
        Purpose::RemoteCommand(streams) => Translation::RemoteCommand(streams),
        Purpose::PortForward => Translation::PortForward,
    };
    if offered.contains(&translation.client_protocol()) {
        return Ok(WebSocketHandling::Translated(translation));
    }
    let known: Vec<&str> = offered.iter().copied().filter(|it| SUBPROTOCOLS.contains(it)).collect();
    match (&*offered, &*known) {
        ([], _) => Ok(WebSocketHandling::Through(None)),
        (_, []) => Err(Refusal::UnknownSubprotocols(offered.join(", "))),
        _ => {
            let known = HeaderValue::from_str(&known.join(", ")).expect("known names are plain text");
            Ok(WebSocketHandling::Through(Some(known)))
        }
    }
}

/// The answer to a handshake that we take ourselves.
pub(crate) fn handshake(headers: &HeaderMap, subprotocol: Option<&str>) -> Result<HeaderMap, Refusal> {
    let text = |name: HeaderName| headers.get(name).and_then(|it| it.to_str().ok()).map(str::trim).unwrap_or_default();
    let key = text(SEC_WEBSOCKET_KEY);
    if text(SEC_WEBSOCKET_VERSION) != "13" || key.is_empty() {
        return Err(Refusal::NotAHandshake);
    }
    let mut answer = to("websocket");
    let proof = HeaderValue::from_str(&websocket::accept(key)).expect("base64 is plain text");
    answer.insert(SEC_WEBSOCKET_ACCEPT, proof);
    if let Some(subprotocol) = subprotocol {
        let agreed = HeaderValue::from_str(subprotocol).expect("it came in a header");
        answer.insert(SEC_WEBSOCKET_PROTOCOL, agreed);
    }
    Ok(answer)
}

/// The headers of every upgrade.
fn to(protocol: &'static str) -> HeaderMap {
    HeaderMap::from_iter([
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static(protocol)),
    ])
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
