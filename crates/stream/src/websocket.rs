//! WebSocket frames (RFC 6455), as a server reads and writes them, without I/O.
//!
//! A message is handed on in pieces as it comes: however long it is, it is never held as a whole.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// What a client's handshake is proven with.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const CONTROL_BYTES_MAX: u64 = 125;

const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// Nothing went wrong.
pub(crate) const NORMAL: u16 = 1000;

/// The peer does not speak the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed WebSocket frame: {0}")]
pub struct Malformed(&'static str);

/// What comes out of a client's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A part of a message.
    Data {
        begins: bool,
        ends: bool,
        bytes: Bytes,
    },
    /// To be answered by a pong with the same bytes.
    Ping(Bytes),
    Pong,
    /// The client is done.
    Close,
}

/// `Sec-WebSocket-Accept` for a client's `Sec-WebSocket-Key`.
pub(crate) fn accept(key: &str) -> String {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{GUID}").as_bytes());
    STANDARD.encode(digest)
}

/// Reads what a client sends. After an error it must not be used again.
#[derive(Debug, Default)]
pub struct Decoder {
    frame: Option<Frame>,
    /// Between the frames of one message.
    in_message: bool,
}

/// A frame whose payload is not read yet, or not whole.
#[derive(Debug)]
struct Frame {
    opcode: u8,
    fin: bool,
    mask: [u8; 4],
    /// Where in the mask the next byte is.
    at: usize,
    left: u64,
    /// The next piece is the first of its message.
    begins: bool,
}

impl Decoder {
    /// The next piece of `input`, which is taken out of it; `None` where more must be read first.
    ///
    /// # Errors
    /// The client breaks the protocol.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<Piece>, Malformed> {
        let mut frame = match self.frame.take() {
            Some(frame) => frame,
            None => match self.head(input)? {
                Some(frame) => frame,
                None => return Ok(None),
            },
        };
        let is_control = frame.opcode >= CLOSE;
        let here = usize::try_from(frame.left).unwrap_or(usize::MAX).min(input.len());
        // Something of data is enough, control frames come whole.
        if frame.left > 0 && (here == 0 || is_control && (here as u64) < frame.left) {
            self.frame = Some(frame);
            return Ok(None);
        }
        let mut bytes = input.split_to(here);
        for byte in &mut *bytes {
            *byte ^= frame.mask[frame.at];
            frame.at = (frame.at + 1) % 4;
        }
        frame.left -= here as u64;
        let bytes = bytes.freeze();
        Ok(Some(match frame.opcode {
            PING => Piece::Ping(bytes),
            PONG => Piece::Pong,
            CLOSE => Piece::Close,
            _ => {
                let ends = frame.fin && frame.left == 0;
                let begins = std::mem::take(&mut frame.begins);
                self.in_message = !ends;
                if frame.left > 0 {
                    self.frame = Some(frame);
                }
                Piece::Data { begins, ends, bytes }
            }
        }))
    }

    fn head(&mut self, input: &mut BytesMut) -> Result<Option<Frame>, Malformed> {
        let [first, second, ..] = **input else { return Ok(None) };
        let (fin, opcode, short) = (first & 0x80 != 0, first & 0x0f, second & 0x7f);
        if first & 0x70 != 0 {
            return Err(Malformed("reserved bits are set"));
        }
        if second & 0x80 == 0 {
            return Err(Malformed("a client's frame is not masked"));
        }
        let is_control = match (opcode, self.in_message) {
            (CONTINUATION, true) | (TEXT | BINARY, false) => false,
            (CONTINUATION, false) => return Err(Malformed("nothing is continued")),
            (TEXT | BINARY, true) => return Err(Malformed("a message begins within another")),
            (CLOSE | PING | PONG, _) => true,
            _ => return Err(Malformed("the opcode is unknown")),
        };
        let extra = match short {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        if is_control && (extra > 0 || !fin) {
            return Err(Malformed("a control frame is too long or in parts"));
        }
        if input.len() < 2 + extra + 4 {
            return Ok(None);
        }
        input.advance(2);
        let left = match extra {
            0 => u64::from(short),
            2 => u64::from(input.get_u16()),
            _ => input.get_u64(),
        };
        if left >> 63 != 0 {
            return Err(Malformed("the length is negative"));
        }
        debug_assert!(!is_control || left <= CONTROL_BYTES_MAX);
        let mut mask = [0; 4];
        input.copy_to_slice(&mut mask);
        let begins = opcode != CONTINUATION;
        Ok(Some(Frame { opcode, fin, mask, at: 0, left, begins }))
    }
}

/// The head of a server's frame, which is not masked and ends its message.
fn put_head(opcode: u8, length: usize, out: &mut BytesMut) {
    out.put_u8(0x80 | opcode);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short @ ..126), _) => out.put_u8(short),
        (_, Ok(length)) => {
            out.put_u8(126);
            out.put_u16(length);
        }
        _ => {
            out.put_u8(127);
            out.put_u64(length as u64);
        }
    }
}

/// A message of its own.
pub(crate) fn put_message(bytes: &[u8], out: &mut BytesMut) {
    put_head(BINARY, bytes.len(), out);
    out.put_slice(bytes);
}

/// A message that is text.
pub(crate) fn put_text(text: &[u8], out: &mut BytesMut) {
    put_head(TEXT, text.len(), out);
    out.put_slice(text);
}

/// A message of a multiplexed protocol: the channel's number, then what is sent on it.
pub(crate) fn put_channel_message(channel: u8, bytes: &[u8], out: &mut BytesMut) {
    put_head(BINARY, bytes.len() + 1, out);
    out.put_u8(channel);
    out.put_slice(bytes);
}

/// An answer to a ping, or a sign of life.
pub(crate) fn put_pong(bytes: &[u8], out: &mut BytesMut) {
    put_head(PONG, bytes.len(), out);
    out.put_slice(bytes);
}

pub(crate) fn put_close(code: u16, out: &mut BytesMut) {
    put_head(CLOSE, 2, out);
    out.put_u16(code);
}

#[cfg(test)]
mod tests;
