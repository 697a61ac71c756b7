//! One answer as the messages of a WebSocket: for who cannot read a stream, browsers above all.
//!
//! As Kubernetes sends watches (an event is a text) and logs (what comes at once is a message, after an empty one by which
//! the client sees that somebody is there).

use std::io;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;
use http_body_util::BodyExt;
use hyper::upgrade::OnUpgrade;
use tokio_util::io::StreamReader;

use crate::{
    Limits, Refusal,
    translate::{Down, Flow, Up, run},
    upgrade::{Accepted, handshake, offered, protocol, switching},
    websocket,
};

const BINARY: &str = "binary.k8s.io";
const BASE64: &str = "base64.binary.k8s.io";

/// What one message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A line, as text.
    Line,
    /// What has come, as it is.
    Bytes,
    /// What has come, as text.
    Base64,
}

/// A client that reads messages. Nothing it sends is looked at but pings and its goodbye.
#[derive(Debug)]
pub struct Messages {
    kind: Kind,
    client: Accepted,
}

impl Messages {
    /// Does the request ask for a WebSocket?
    pub fn are_wanted(headers: &HeaderMap) -> bool {
        protocol(headers).is_ok_and(|it| it == crate::Protocol::WebSocket)
    }

    /// A message for each line; whatever subprotocol is offered first is agreed to. The answer for the client, and what
    /// runs after it is sent.
    ///
    /// # Errors
    /// The request is no handshake.
    pub fn of_lines(headers: &HeaderMap, connection: Option<OnUpgrade>) -> Result<(http::Response<()>, Self), Refusal> {
        Self::accept(headers, connection, Kind::Line, offered(headers).first().copied())
    }

    /// A message for each piece, in a subprotocol that says how.
    ///
    /// # Errors
    /// The request is no handshake, or offers only what is not known.
    pub fn of_pieces(
        headers: &HeaderMap,
        connection: Option<OnUpgrade>,
    ) -> Result<(http::Response<()>, Self), Refusal> {
        let offered = offered(headers);
        let known = |it: &str| match it {
            BINARY => Some(Kind::Bytes),
            BASE64 => Some(Kind::Base64),
            _ => None,
        };
        let agreed = offered.iter().find_map(|it| Some((known(it)?, Some(*it))));
        let agreed = agreed.or_else(|| offered.is_empty().then_some((Kind::Bytes, None)));
        let (kind, name) = agreed.ok_or_else(|| Refusal::UnknownSubprotocols(offered.join(", ")))?;
        Self::accept(headers, connection, kind, name)
    }

    fn accept(
        headers: &HeaderMap,
        connection: Option<OnUpgrade>,
        kind: Kind,
        subprotocol: Option<&str>,
    ) -> Result<(http::Response<()>, Self), Refusal> {
        let answer = switching(handshake(headers, subprotocol)?);
        let client = Accepted::plain(connection.ok_or(Refusal::NoConnection)?);
        Ok((answer, Self { kind, client }))
    }

    /// Sends what comes until it ends or the client leaves.
    ///
    /// # Errors
    /// The client went away before the switch, breaks the protocol, or nothing moved for too long.
    pub async fn send<B>(self, body: B, limits: Limits) -> io::Result<crate::Copied>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let client = self.client.switched(limits).await?;
        let body = Box::pin(body.map_err(io::Error::other).into_data_stream());
        let server = tokio::io::join(StreamReader::new(body), tokio::io::sink());
        run(client, server, (Ignored, Pieces { kind: self.kind, searched: 0 }), limits).await
    }
}

/// What the client sends is for nobody.
struct Ignored;

impl Up for Ignored {
    fn message(&mut self, _: bool, _: bool, _: &[u8], _: &mut BytesMut) -> io::Result<()> {
        Ok(())
    }
}

struct Pieces {
    kind: Kind,
    /// So much of what has come holds no end of a line.
    searched: usize,
}

impl Down for Pieces {
    fn open(&mut self, client: &mut BytesMut) {
        match self.kind {
            Kind::Line => {}
            Kind::Bytes => websocket::put_message(&[], client),
            Kind::Base64 => websocket::put_text(&[], client),
        }
    }

    fn bytes(&mut self, input: &mut BytesMut, client: &mut BytesMut, _: &mut BytesMut) -> io::Result<Flow> {
        match self.kind {
            Kind::Line => {
                while let Some(end) = input[self.searched..].iter().position(|it| *it == b'\n') {
                    let line = input.split_to(self.searched + end + 1);
                    websocket::put_text(&line, client);
                    self.searched = 0;
                }
                self.searched = input.len();
                return Ok(Flow::More);
            }
            Kind::Bytes => websocket::put_message(input, client),
            Kind::Base64 => websocket::put_text(STANDARD.encode(&*input).as_bytes(), client),
        }
        input.advance(input.len());
        Ok(Flow::More)
    }

    fn end(&mut self, _: &mut BytesMut) {}
}

#[cfg(test)]
mod tests;
