//! HTTP/2 by hand: frames as RFC 9113 lays them out, headers as literals of HPACK (RFC 7541).

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::client::TlsStream;

use super::https::HttpsServer;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const WINDOW_UPDATE: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;
pub(super) const ACK: u8 = 1;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const PATIENCE: Duration = Duration::from_secs(20);

/// Length, type, flags, stream, payload.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn text(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    match u8::try_from(text.len()) {
        Ok(length @ 0..=126) => out.push(length),
        _ => {
            out.push(127);
            let mut more = text.len() - 127;
            while more >= 128 {
                out.push(u8::try_from(more % 128 + 128).expect("seven bits and one"));
                more /= 128;
            }
            out.push(u8::try_from(more).expect("seven bits"));
        }
    }
    out.extend(text.as_bytes());
    out
}

/// A header as a literal that no table keeps.
pub(super) fn field(name: &str, value: &str) -> Vec<u8> {
    [vec![0], text(name), text(value)].concat()
}

pub(super) fn headers(stream: u32, is_all: bool, fields: &[(&str, &str)]) -> Vec<u8> {
    let block: Vec<u8> = fields.iter().flat_map(|(name, value)| field(name, value)).collect();
    frame(HEADERS, END_HEADERS | if is_all { END_STREAM } else { 0 }, stream, &block)
}

pub(super) fn get(path: &str) -> Vec<(&str, &str)> {
    vec![(":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", path)]
}

/// What came of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// An answer, and its body.
    Answer(u16, String),
    /// The stream is reset, with this error.
    Reset(u32),
    /// The connection is ended.
    Ended,
}

/// A connection whose client writes what it likes.
pub(super) struct Frames {
    stream: TlsStream<TcpStream>,
    read: Vec<u8>,
}

impl Frames {
    pub(super) async fn open(running: &HttpsServer) -> Self {
        Self::over(running.connect(b"h2").await).await
    }

    pub(super) async fn over(stream: TlsStream<TcpStream>) -> Self {
        let mut this = Self { stream, read: Vec::new() };
        this.send(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await;
        this
    }

    /// The server may hang up before all is sent.
    pub(super) async fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
        let _ = self.stream.flush().await;
    }

    /// The next frame: type, flags, stream, payload. `None` where the connection has ended.
    pub(super) async fn next(&mut self) -> Option<(u8, u8, u32, Vec<u8>)> {
        loop {
            if let [a, b, c, kind, flags, s, t, u, v, rest @ ..] = &*self.read {
                let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
                if let Some(payload) = rest.get(..length) {
                    let found = (*kind, *flags, u32::from_be_bytes([*s, *t, *u, *v]), payload.to_vec());
                    self.read.drain(..9 + length);
                    return Some(found);
                }
            }
            let mut some = [0; 16 * 1024];
            let n = tokio::time::timeout(PATIENCE, self.stream.read(&mut some)).await.expect("something comes");
            match n {
                Ok(n @ 1..) => self.read.extend(&some[..n]),
                _ => return None,
            }
        }
    }

    /// What comes of a stream; pings and settings are answered meanwhile.
    pub(super) async fn hear(&mut self, stream: u32) -> Heard {
        let (mut code, mut body) = (None, Vec::new());
        loop {
            let Some((kind, flags, of, payload)) = self.next().await else { return Heard::Ended };
            match kind {
                GOAWAY => return Heard::Ended,
                SETTINGS if flags & ACK == 0 => self.send(&frame(SETTINGS, ACK, 0, &[])).await,
                PING if flags & ACK == 0 => self.send(&frame(PING, ACK, 0, &payload)).await,
                RST_STREAM if of == stream => {
                    return Heard::Reset(u32::from_be_bytes(payload.try_into().expect("four bytes")));
                }
                HEADERS if of == stream && code.is_none() => code = Some(status(&payload)),
                DATA if of == stream => body.extend(payload),
                _ => {}
            }
            if of == stream && matches!(kind, HEADERS | DATA) && flags & END_STREAM != 0 {
                let body = String::from_utf8_lossy(&body).into_owned();
                return Heard::Answer(code.expect("headers come first"), body);
            }
        }
    }
}

/// `:status` comes first: from the static table, or as a literal whose name is.
fn status(block: &[u8]) -> u16 {
    // A change of the table's size may stand before it.
    let block = match block {
        [first, rest @ ..] if first >> 5 == 1 => rest,
        all => all,
    };
    match block {
        [0x88, ..] => 200,
        [0x89, ..] => 204,
        [0x8a, ..] => 206,
        [0x8b, ..] => 304,
        [0x8c, ..] => 400,
        [0x8d, ..] => 404,
        [0x8e, ..] => 500,
        [first, 3, digits @ ..] if first & 0x0f == 8 => {
            std::str::from_utf8(&digits[..3]).ok().and_then(|it| it.parse().ok()).expect("digits")
        }
        // Packed digits: those below five have five bits, the others six.
        [_, length, packed @ ..] if length & 0x80 != 0 => {
            let bits = packed[..usize::from(length & 0x7f)].iter();
            let bits: Vec<bool> = bits.flat_map(|it| (0..8).rev().map(move |at| it >> at & 1 == 1)).collect();
            let mut bits = bits.into_iter();
            let mut take = |n: u32| (0..n).fold(0_u16, |sum, _| sum * 2 + u16::from(bits.next().unwrap_or(true)));
            (0..3).fold(0, |code, _| {
                let digit = match take(5) {
                    short @ 0..=2 => short,
                    first => first * 2 + take(1) - 25 + 3,
                };
                code * 10 + digit
            })
        }
        other => panic!("no status: {other:?}"),
    }
}
