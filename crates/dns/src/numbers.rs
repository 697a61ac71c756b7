//! The numbers of RFC 1035 and its successors, and how they stand in a message.

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
pub(crate) const UDP_BYTES_MIN: usize = 512;
/// The resolvers' flag day of 2020: fits every path without fragments.
pub(crate) const UDP_BYTES_MAX: usize = 1232;
/// What the length in front of a message over TCP can say.
pub const TCP_BYTES_MAX: usize = 65535;
pub(crate) const OPT_BYTES: usize = 11;

pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

pub(crate) fn long(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

pub(crate) fn put_word(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
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
