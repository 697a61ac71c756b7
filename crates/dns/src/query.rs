//! What a client asks, read from its packet; and what is told to one that does not ask well.

use crate::{
    Name,
    numbers::{
        BAD_VERSION, CD, FORMAT_ERROR, HEADER, NOT_IMPLEMENTED, OPCODE, OPT, QR, RA, RD, UDP_BYTES_MAX, UDP_BYTES_MIN,
        long, put_word, word,
    },
};

/// One question, and the packet it came in.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    pub id: u16,
    pub(crate) flags: u16,
    pub question: Question,
    pub(crate) class: u16,
    pub edns: Option<Edns>,
    packet: &'a [u8],
    question_end: usize,
}

/// What is looked up: the same question has the same answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question {
    pub name: Name,
    pub qtype: u16,
    /// Signatures are wanted, too.
    pub dnssec_ok: bool,
    /// The client checks them by itself.
    pub checking_disabled: bool,
}

/// What the client says of itself (RFC 6891).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edns {
    /// The longest answer it takes over UDP.
    pub payload: u16,
    pub dnssec_ok: bool,
}

/// Why a packet is no query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rejected {
    /// An answer to it could begin a circle.
    Silence,
    /// It is answered with this code, without a look at what it asks.
    Code(u16),
}

/// Reads a query.
///
/// # Errors
/// What is to be done with a packet that is none: see [`reject`].
pub fn parse(packet: &[u8]) -> Result<Query<'_>, Rejected> {
    const WRONG: Rejected = Rejected::Code(FORMAT_ERROR);
    let count = |idx: usize| word(packet, 4 + 2 * idx).map(usize::from);
    let (Some(id), Some(flags), Some(n_additional)) = (word(packet, 0), word(packet, 2), count(3)) else {
        return Err(Rejected::Silence);
    };
    if flags & QR != 0 {
        return Err(Rejected::Silence);
    }
    if flags & OPCODE != 0 {
        return Err(Rejected::Code(NOT_IMPLEMENTED));
    }
    if count(0) != Some(1) {
        return Err(WRONG);
    }
    let name_end = plain_name_end(packet).ok_or(WRONG)?;
    let (name, _) = Name::read(packet, HEADER).ok_or(WRONG)?;
    let qtype = word(packet, name_end).ok_or(WRONG)?;
    let class = word(packet, name_end + 2).ok_or(WRONG)?;
    let question_end = name_end + 4;
    let n_before = count(1).unwrap_or(0) + count(2).unwrap_or(0);
    let edns = read_edns(packet, question_end, n_before, n_additional)?;
    let question =
        Question { name, qtype, dnssec_ok: edns.is_some_and(|it| it.dnssec_ok), checking_disabled: flags & CD != 0 };
    Ok(Query { id, flags, question, class, edns, packet, question_end })
}

/// A question's name has no pointers: there is nothing in front of it.
fn plain_name_end(packet: &[u8]) -> Option<usize> {
    let mut at = HEADER;
    loop {
        match usize::from(*packet.get(at)?) {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + length,
            _ => return None,
        }
    }
}

fn read_edns(packet: &[u8], mut at: usize, n_before: usize, n_additional: usize) -> Result<Option<Edns>, Rejected> {
    const WRONG: Rejected = Rejected::Code(FORMAT_ERROR);
    let mut edns = None;
    for idx in 0..n_before + n_additional {
        let name_at = at;
        at = Name::skip(packet, at).ok_or(WRONG)?;
        let (Some(rtype), Some(class), Some(ttl), Some(length)) =
            (word(packet, at), word(packet, at + 2), long(packet, at + 4), word(packet, at + 8))
        else {
            return Err(WRONG);
        };
        if rtype == OPT {
            if idx < n_before || edns.is_some() || at != name_at + 1 {
                return Err(WRONG);
            }
            if ttl >> 16 & 0xff != 0 {
                return Err(Rejected::Code(BAD_VERSION));
            }
            edns = Some(Edns { payload: class, dnssec_ok: ttl & 0x8000 != 0 });
        }
        at += 10 + usize::from(length);
        if at > packet.len() {
            return Err(WRONG);
        }
    }
    Ok(edns)
}

/// Writes the answer to a packet that is no query: a header, never more.
pub fn reject(packet: &[u8], code: u16, out: &mut Vec<u8>) {
    out.clear();
    let (Some(id), Some(flags)) = (word(packet, 0), word(packet, 2)) else { return };
    out.extend_from_slice(&id.to_be_bytes());
    out.extend_from_slice(&[0; 10]);
    put_word(out, 2, QR | RA | flags & (OPCODE | RD | CD) | code & 0xf);
    if code > 0xf {
        put_word(out, 10, 1);
        crate::numbers::write_opt(out, code, false);
    }
}

impl Query<'_> {
    /// How long the answer may be if it goes over UDP.
    pub fn udp_limit(&self) -> usize {
        udp_limit(self.edns)
    }

    /// The question as the client wrote it.
    pub(crate) fn question_bytes(&self) -> &[u8] {
        &self.packet[HEADER..self.question_end]
    }
}

/// How long an answer over UDP may be.
pub(crate) fn udp_limit(edns: Option<Edns>) -> usize {
    edns.map_or(UDP_BYTES_MIN, |it| usize::from(it.payload).clamp(UDP_BYTES_MIN, UDP_BYTES_MAX))
}

#[cfg(test)]
mod tests;
