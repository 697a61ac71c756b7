//! `v5.channel.k8s.io` (a channel's number before each message) to SPDY with `v4.channel.k8s.io` (a stream for each).
//!
//! The fifth version has what the fourth lacks: the end of one channel, `255` and its number.

use std::io;

use bytes::BytesMut;

use super::{Down, Flow, Up};
use crate::{spdy, websocket};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
const CLOSE: u8 = 255;

/// How much of a command's last words is kept; a Status is far shorter.
const STATUS_BYTES_MAX: usize = 64 * 1024;

/// Which streams a command has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Streams {
    pub stdin: bool,
    pub stdout: bool,
    pub stderr: bool,
    pub tty: bool,
}

impl Streams {
    /// The channels in the order their streams are opened, each with its name.
    fn channels(self) -> impl Iterator<Item = (u8, &'static str)> {
        let Self { stdin, stdout, stderr, tty } = self;
        // A terminal has one output.
        let all = [
            (true, ERROR, "error"),
            (stdin, STDIN, "stdin"),
            (stdout, STDOUT, "stdout"),
            (stderr && !tty, STDERR, "stderr"),
            (tty, RESIZE, "resize"),
        ];
        all.into_iter().filter(|it| it.0).map(|it| (it.1, it.2))
    }

    /// Each channel with the number of its stream.
    fn numbered(self) -> impl Iterator<Item = (u8, u32, &'static str)> {
        self.channels().zip((1..).step_by(2)).map(|((channel, name), stream)| (channel, stream, name))
    }
}

/// What a client is to hear of how a command ended.
pub(crate) fn put_status(status: &[u8], client: &mut BytesMut) {
    websocket::put_channel_message(ERROR, status, client);
}

/// As in `wsstream`: one empty message tells the client that the connection stands.
fn put_greeting(streams: Streams, client: &mut BytesMut) {
    let channel = match streams {
        Streams { stdout: true, .. } => STDOUT,
        Streams { stderr: true, .. } => STDERR,
        _ => ERROR,
    };
    websocket::put_channel_message(channel, &[], client);
}

/// The two halves of the translation.
pub(crate) fn halves(streams: Streams) -> (ClientToServer, ServerToClient) {
    let open = streams.numbered().filter(|it| matches!(it.0, STDOUT | STDERR | ERROR));
    let open = open.map(|(channel, stream, _)| (channel, stream)).collect();
    let client_to_server =
        ClientToServer { streams, encoder: spdy::Encoder::default(), channel: None, ended: [false; 5] };
    (client_to_server, ServerToClient { streams, decoder: spdy::Decoder::default(), open, status: Vec::new() })
}

/// From the client to the command.
pub(crate) struct ClientToServer {
    streams: Streams,
    encoder: spdy::Encoder,
    /// Of the message that has begun.
    channel: Option<u8>,
    /// By the client.
    ended: [bool; 5],
}

impl ClientToServer {
    /// The stream that the client may write to, where the command has it and it is open.
    fn stream(&self, channel: u8) -> Option<u32> {
        let writable = matches!(channel, STDIN | RESIZE) && !self.ended[usize::from(channel)];
        self.streams.numbered().find(|it| writable && it.0 == channel).map(|it| it.1)
    }
}

impl Up for ClientToServer {
    fn open(&mut self, server: &mut BytesMut) {
        for (_, stream, name) in self.streams.numbered() {
            self.encoder.open(stream, &[("streamtype", name)], server);
        }
    }

    fn message(&mut self, begins: bool, ends: bool, bytes: &[u8], server: &mut BytesMut) -> io::Result<()> {
        if begins {
            self.channel = None;
        }
        let (channel, rest) = match (self.channel, bytes.split_first()) {
            (Some(channel), _) => (channel, bytes),
            (None, Some((channel, rest))) => (*channel, rest),
            (None, None) => return Ok(()),
        };
        self.channel = Some(channel).filter(|_| !ends);
        if channel != CLOSE {
            // A message for a channel that is not open is dropped.
            if let Some(stream) = self.stream(channel) {
                spdy::put_data(stream, rest, false, server);
            }
            return Ok(());
        }
        match (rest, ends) {
            ([], false) => {}
            ([ended], true) => {
                if let Some(stream) = self.stream(*ended) {
                    spdy::put_data(stream, &[], true, server);
                    self.ended[usize::from(*ended)] = true;
                }
            }
            _ => return Err(io::Error::other("one channel's number must follow the signal that ends a stream")),
        }
        Ok(())
    }
}

/// From the command to the client.
pub(crate) struct ServerToClient {
    streams: Streams,
    decoder: spdy::Decoder,
    /// Channels with the numbers of their streams, as long as more may come.
    open: Vec<(u8, u32)>,
    /// What the command's end was told as.
    status: Vec<u8>,
}

impl ServerToClient {
    fn channel(&self, stream: u32) -> Option<u8> {
        self.open.iter().find(|it| it.1 == stream).map(|it| it.0)
    }

    fn close(&mut self, stream: u32) {
        self.open.retain(|it| it.1 != stream);
    }
}

impl Down for ServerToClient {
    const HAS_HEAD_START: bool = true;

    fn open(&mut self, client: &mut BytesMut) {
        put_greeting(self.streams, client);
    }

    fn bytes(&mut self, input: &mut BytesMut, client: &mut BytesMut, server: &mut BytesMut) -> io::Result<Flow> {
        while let Some(piece) = self.decoder.next(input).map_err(io::Error::other)? {
            match piece {
                spdy::Piece::Data { stream, fin, bytes } => {
                    match self.channel(stream) {
                        Some(ERROR) => {
                            let room = STATUS_BYTES_MAX.saturating_sub(self.status.len()).min(bytes.len());
                            self.status.extend_from_slice(&bytes[..room]);
                        }
                        Some(channel) if !bytes.is_empty() => websocket::put_channel_message(channel, &bytes, client),
                        _ => {}
                    }
                    if fin {
                        self.close(stream);
                    }
                }
                spdy::Piece::Reply { stream, fin: true } | spdy::Piece::Reset { stream } => self.close(stream),
                spdy::Piece::Reply { fin: false, .. } | spdy::Piece::GoAway => {}
                spdy::Piece::Ping(id) => spdy::put_ping(id, server),
            }
            if self.open.is_empty() {
                return Ok(Flow::Done);
            }
        }
        Ok(Flow::More)
    }

    fn end(&mut self, client: &mut BytesMut) {
        // No word of its end: the connection is what ended. A client must not take that for success.
        let lost = br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Internal error occurred: the connection to the container was lost","reason":"InternalError","code":500}"#;
        put_status(if self.status.is_empty() { lost } else { &self.status }, client);
    }
}
