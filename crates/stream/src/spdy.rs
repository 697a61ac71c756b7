//! As much of SPDY/3.1 as a client needs that opens a few streams and waits for their end, without I/O.
//!
//! Headers are sent as stored blocks of one zlib stream: valid, and without a compressor or SPDY's dictionary. Headers that come
//! say nothing here, so they are skipped unread. There is no flow control, as in upstream's library: what slows a sender
//! down is the connection.

use bytes::{Buf, BufMut, Bytes, BytesMut};

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;

const FIN: u8 = 1;
const VERSION: u16 = 3;
const HEAD_BYTES: usize = 8;
/// Of a control frame whose content is looked at.
const CONTROL_BYTES: usize = 8;
/// Of a data frame that is sent.
const DATA_BYTES_MAX: usize = 32 * 1024;

/// The peer does not speak the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed SPDY frame: {0}")]
pub struct Malformed(&'static str);

/// What comes out of a server's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A part of what was sent on a stream; `fin`: nothing more will be.
    Data {
        stream: u32,
        fin: bool,
        bytes: Bytes,
    },
    /// The server has taken the stream; `fin`: and sends nothing on it.
    Reply {
        stream: u32,
        fin: bool,
    },
    /// The stream is over.
    Reset {
        stream: u32,
    },
    Ping(u32),
    /// No new streams, please.
    GoAway,
}

/// Reads what a server sends. After an error it must not be used again.
#[derive(Debug, Default)]
pub struct Decoder {
    data: Option<Data>,
    /// Of a frame that says nothing here.
    skipped: usize,
}

#[derive(Debug)]
struct Data {
    stream: u32,
    fin: bool,
    left: usize,
}

impl Decoder {
    /// The next piece of `input`, which is taken out of it; `None` where more must be read first.
    ///
    /// # Errors
    /// The server breaks the protocol.
    pub fn next(&mut self, input: &mut BytesMut) -> Result<Option<Piece>, Malformed> {
        loop {
            let skipped = self.skipped.min(input.len());
            input.advance(skipped);
            self.skipped -= skipped;
            if self.skipped > 0 {
                return Ok(None);
            }
            if let Some(data) = &mut self.data {
                let here = data.left.min(input.len());
                if here == 0 && data.left > 0 {
                    return Ok(None);
                }
                data.left -= here;
                let (stream, is_last) = (data.stream, data.left == 0);
                let fin = data.fin && is_last;
                if is_last {
                    self.data = None;
                }
                return Ok(Some(Piece::Data { stream, fin, bytes: input.split_to(here).freeze() }));
            }
            let Some(frame) = peek(input) else { return Ok(None) };
            match frame {
                Head::Data { stream: 0, .. } => return Err(Malformed("data for no stream")),
                Head::Data { stream, flags, length } => {
                    input.advance(HEAD_BYTES);
                    self.data = Some(Data { stream, fin: flags & FIN != 0, left: length });
                }
                Head::Control { version, .. } if version != VERSION => return Err(Malformed("another version")),
                Head::Control { kind, flags, length, .. } => match control(kind, flags, length, input)? {
                    Control::Incomplete => return Ok(None),
                    Control::Told(piece) => {
                        input.advance(HEAD_BYTES);
                        self.skipped = length;
                        return Ok(Some(piece));
                    }
                    Control::SaysNothing => {
                        input.advance(HEAD_BYTES);
                        self.skipped = length;
                    }
                },
            }
        }
    }
}

enum Head {
    Data { stream: u32, flags: u8, length: usize },
    Control { version: u16, kind: u16, flags: u8, length: usize },
}

fn peek(input: &[u8]) -> Option<Head> {
    let [a, b, c, d, flags, x, y, z, ..] = *input else { return None };
    let length = u32::from_be_bytes([0, x, y, z]) as usize;
    Some(if a & 0x80 == 0 {
        Head::Data { stream: u32::from_be_bytes([a, b, c, d]), flags, length }
    } else {
        let (version, kind) = (u16::from_be_bytes([a & 0x7f, b]), u16::from_be_bytes([c, d]));
        Head::Control { version, kind, flags, length }
    })
}

enum Control {
    Incomplete,
    Told(Piece),
    /// Settings, windows, headers, and streams that the server opens: no one has asked for them.
    SaysNothing,
}

/// Looks at the first bytes of a control frame's content.
fn control(kind: u16, flags: u8, length: usize, input: &[u8]) -> Result<Control, Malformed> {
    let needed = match kind {
        SYN_REPLY | PING => 4,
        RST_STREAM | GOAWAY => CONTROL_BYTES,
        _ => return Ok(Control::SaysNothing),
    };
    if length < needed {
        return Err(Malformed("a control frame is too short"));
    }
    let Some(content) = input.get(HEAD_BYTES..HEAD_BYTES + needed) else { return Ok(Control::Incomplete) };
    let word = u32::from_be_bytes([content[0], content[1], content[2], content[3]]);
    let stream = word & 0x7fff_ffff;
    Ok(Control::Told(match kind {
        SYN_REPLY => Piece::Reply { stream, fin: flags & FIN != 0 },
        RST_STREAM => Piece::Reset { stream },
        PING => Piece::Ping(word),
        _ => Piece::GoAway,
    }))
}

/// Writes what a client sends.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    /// The zlib stream of headers has begun.
    has_begun: bool,
}

impl Encoder {
    /// Opens a stream; ids are odd and rise.
    pub(crate) fn open(&mut self, stream: u32, headers: &[(&str, &str)], out: &mut BytesMut) {
        let mut block = BytesMut::new();
        let count = |it: usize| u32::try_from(it).expect("headers are few and short");
        block.put_u32(count(headers.len()));
        for (name, value) in headers {
            for text in [name, value] {
                block.put_u32(count(text.len()));
                block.put_slice(text.as_bytes());
            }
        }
        let packed = self.packed(&block);
        put_control(SYN_STREAM, 10 + packed.len(), out);
        out.put_u32(stream);
        // Belongs to no other stream, has no priority, no slot.
        out.put_u32(0);
        out.put_u16(0);
        out.put_slice(&packed);
    }

    /// A stored block, and an empty one: without it a reader may wait for more before it hands the first one on.
    fn packed(&mut self, block: &[u8]) -> BytesMut {
        let mut packed = BytesMut::new();
        if !std::mem::replace(&mut self.has_begun, true) {
            packed.put_slice(&[0x78, 0x01]);
        }
        let length = u16::try_from(block.len()).expect("headers are few and short");
        packed.put_u8(0);
        packed.put_u16_le(length);
        packed.put_u16_le(!length);
        packed.put_slice(block);
        packed.put_slice(&[0, 0, 0, 0xff, 0xff]);
        packed
    }
}

pub(crate) fn put_data(stream: u32, bytes: &[u8], fin: bool, out: &mut BytesMut) {
    let mut parts = bytes.chunks(DATA_BYTES_MAX).peekable();
    if parts.peek().is_none() && fin {
        put_part(stream, &[], true, out);
    }
    while let Some(part) = parts.next() {
        put_part(stream, part, fin && parts.peek().is_none(), out);
    }
}

fn put_part(stream: u32, part: &[u8], fin: bool, out: &mut BytesMut) {
    out.put_u32(stream);
    let flags = if fin { u32::from(FIN) << 24 } else { 0 };
    out.put_u32(flags | u32::try_from(part.len()).expect("parts are short"));
    out.put_slice(part);
}

pub(crate) fn put_ping(id: u32, out: &mut BytesMut) {
    put_control(PING, 4, out);
    out.put_u32(id);
}

fn put_control(kind: u16, length: usize, out: &mut BytesMut) {
    out.put_u16(0x8000 | VERSION);
    out.put_u16(kind);
    out.put_u32(u32::try_from(length).expect("control frames are short"));
}

#[cfg(test)]
mod tests;
