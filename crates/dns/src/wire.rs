//! The numbers of RFC 1035 and its successors, and the writer of answers.
//!
//! A writer never passes its limit: a record that does not fit is taken back, and in the answer section that sets `TC`.

use crate::{Edns, Name, Query};

pub const NO_ERROR: u16 = 0;
pub(crate) const FORMAT_ERROR: u16 = 1;
pub const SERVER_FAILURE: u16 = 2;
pub const NX_DOMAIN: u16 = 3;
pub const NOT_IMPLEMENTED: u16 = 4;
pub const REFUSED: u16 = 5;
pub(crate) const BAD_VERSION: u16 = 16;

pub(crate) const A: u16 = 1;
pub(crate) const NS: u16 = 2;
pub(crate) const CNAME: u16 = 5;
pub(crate) const SOA: u16 = 6;
pub(crate) const PTR: u16 = 12;
pub(crate) const HINFO: u16 = 13;
pub(crate) const MX: u16 = 15;
pub(crate) const TXT: u16 = 16;
pub(crate) const AAAA: u16 = 28;
pub(crate) const SRV: u16 = 33;
pub(crate) const OPT: u16 = 41;
pub(crate) const IXFR: u16 = 251;
pub(crate) const AXFR: u16 = 252;
pub(crate) const ANY: u16 = 255;

pub(crate) const INTERNET: u16 = 1;

pub(crate) const HEADER: usize = 12;
/// Bits of the header's second word.
pub(crate) const QR: u16 = 0x8000;
pub(crate) const OPCODE: u16 = 0x7800;
pub(crate) const AA: u16 = 0x0400;
pub(crate) const TC: u16 = 0x0200;
pub(crate) const RD: u16 = 0x0100;
pub(crate) const RA: u16 = 0x0080;
pub(crate) const AD: u16 = 0x0020;
pub(crate) const CD: u16 = 0x0010;

/// What any client can take that does not say otherwise.
const UDP_BYTES_MIN: usize = 512;
/// As upstream's servers and the resolvers' flag day of 2020: fits every path without fragments.
pub(crate) const UDP_BYTES_MAX: usize = 1232;
/// What the length in front of a message over TCP can say.
pub const TCP_BYTES_MAX: usize = 65535;
pub(crate) const OPT_BYTES: usize = 11;

/// How long an answer over UDP may be.
pub(crate) fn udp_limit(edns: Option<Edns>) -> usize {
    edns.map_or(UDP_BYTES_MIN, |it| usize::from(it.payload).clamp(UDP_BYTES_MIN, UDP_BYTES_MAX))
}

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn put_word(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Where a record's owner stands.
#[derive(Clone, Copy)]
pub(crate) enum Owner<'a> {
    /// The name that was asked for.
    Question,
    /// The end of that name: so many bytes after its beginning.
    Ending(usize),
    Of(&'a Name),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Answer,
    Authority,
    Additional,
}

/// Writes one answer: header and question first, then records, then [`Writer::finish`].
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    limit: usize,
    flags: u16,
    code: u16,
    counts: [u16; 3],
    edns: Option<Edns>,
    is_full: bool,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(query: &Query<'_>, limit: usize, out: &'a mut Vec<u8>) -> Self {
        out.clear();
        out.extend_from_slice(&query.id.to_be_bytes());
        out.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        out.extend_from_slice(query.question_bytes());
        let reserved = if query.edns.is_some() { OPT_BYTES } else { 0 };
        let flags = QR | RA | query.flags & (RD | CD);
        Self { out, limit: limit - reserved, flags, code: NO_ERROR, counts: [0; 3], edns: query.edns, is_full: false }
    }

    pub(crate) fn set(&mut self, flags: u16) {
        self.flags |= flags;
    }

    pub(crate) fn code(&mut self, code: u16) {
        self.code = code;
    }

    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Holds no more answers than this, for want of any: not of room.
    pub(crate) fn is_bare(&self, n_answers: usize) -> bool {
        usize::from(self.counts[0]) <= n_answers && !self.is_full
    }

    /// Adds a record; where it does not fit nothing is added any more.
    pub(crate) fn record(
        &mut self,
        section: Section,
        owner: Owner<'_>,
        rtype: u16,
        ttl: u32,
        data: impl FnOnce(&mut Vec<u8>),
    ) {
        if self.is_full {
            return;
        }
        let start = self.out.len();
        match owner {
            Owner::Question => self.out.extend_from_slice(&pointer(HEADER)),
            Owner::Ending(skip) => self.out.extend_from_slice(&pointer(HEADER + skip)),
            Owner::Of(name) => self.out.extend_from_slice(name.as_wire()),
        }
        self.out.extend_from_slice(&rtype.to_be_bytes());
        self.out.extend_from_slice(&INTERNET.to_be_bytes());
        self.out.extend_from_slice(&ttl.to_be_bytes());
        let at = self.out.len();
        self.out.extend_from_slice(&[0, 0]);
        data(self.out);
        let length = u16::try_from(self.out.len() - at - 2);
        let count = &mut self.counts[section as usize];
        match length {
            Ok(length) if self.out.len() <= self.limit && *count < u16::MAX => {
                put_word(self.out, at, length);
                *count += 1;
            }
            _ => {
                self.out.truncate(start);
                self.is_full = true;
                // What is missing from the additional section nobody waits for.
                if section != Section::Additional {
                    self.flags |= TC;
                }
            }
        }
    }

    /// Writes the counts, the flags and the client's due of EDNS.
    pub(crate) fn finish(self) {
        let mut counts = self.counts;
        if let Some(edns) = self.edns {
            write_opt(self.out, self.code, edns.dnssec_ok);
            counts[2] += 1;
        }
        put_word(self.out, 2, self.flags | self.code & 0xf);
        for (idx, count) in counts.into_iter().enumerate() {
            put_word(self.out, 6 + 2 * idx, count);
        }
    }
}

fn pointer(at: usize) -> [u8; 2] {
    (0xc000 | u16::try_from(at & 0x3fff).expect("fourteen bits fit")).to_be_bytes()
}

/// EDNS's pseudo record: what this server takes, and the upper bits of the code.
pub(crate) fn write_opt(out: &mut Vec<u8>, code: u16, dnssec_ok: bool) {
    let payload = u16::try_from(UDP_BYTES_MAX).expect("a small number");
    out.push(0);
    out.extend_from_slice(&OPT.to_be_bytes());
    out.extend_from_slice(&payload.to_be_bytes());
    let upper = u8::try_from(code >> 4).unwrap_or(0);
    out.extend_from_slice(&[upper, 0, if dnssec_ok { 0x80 } else { 0 }, 0, 0, 0]);
}
