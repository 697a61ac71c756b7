//! Headers of IPv4 (RFC 791).

use std::net::Ipv4Addr;

use crate::{
    checksum,
    ip::{Fragment, HEADER4, Headers, MTU_MIN, word},
};

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;
/// Options that say which way the packet takes.
const LOOSE_ROUTE: u8 = 131;
const STRICT_ROUTE: u8 = 137;

/// A whole packet, and its payload.
pub(crate) fn read(packet: &[u8]) -> Option<(Headers<Ipv4Addr>, &[u8])> {
    let (headers, payload) = read_start(packet)?;
    Some((headers, payload.get(..headers.payload_length)?))
}

/// A packet of which the end may be missing.
pub(crate) fn read_start(packet: &[u8]) -> Option<(Headers<Ipv4Addr>, &[u8])> {
    let first = *packet.first()?;
    let length = usize::from(first & 0xf) * 4;
    if first >> 4 != 4 || length < HEADER4 {
        return None;
    }
    let header = packet.get(..length)?;
    if is_led(&header[HEADER4..]) || checksum::of(checksum::sum(header)) != 0 {
        return None;
    }
    let total = usize::from(word(header, 2)?);
    let (id, flags) = (u32::from(word(header, 4)?), word(header, 6)?);
    let (offset, has_more) = (flags & OFFSET, flags & MORE_FRAGMENTS != 0);
    let address = |at: usize| Some(Ipv4Addr::from(*header.get(at..)?.first_chunk::<4>()?));
    let headers = Headers {
        class: header[1],
        hops: header[8],
        protocol: header[9],
        source: address(12)?,
        destination: address(16)?,
        fragment: (offset > 0 || has_more).then_some(Fragment { id, offset, has_more }),
        id,
        may_be_fragmented: flags & DONT_FRAGMENT == 0,
        payload_length: total.checked_sub(length)?,
    };
    let payload = &packet[length..];
    Some((headers, &payload[..payload.len().min(headers.payload_length)]))
}

/// Do options lead it by some way?
fn is_led(mut options: &[u8]) -> bool {
    loop {
        match *options {
            [] | [0, ..] => return false,
            [1, ref rest @ ..] => options = rest,
            [LOOSE_ROUTE | STRICT_ROUTE, ..] => return true,
            [_, length, ..] => match options.get(usize::from(length.max(2))..) {
                Some(rest) => options = rest,
                None => return true,
            },
            [_] => return true,
        }
    }
}

/// The header of a packet whose payload has `length` bytes, or is said to have (RFC 7915, section 5.1).
pub(crate) fn write(headers: &Headers<Ipv4Addr>, length: usize, out: &mut Vec<u8>) -> Option<()> {
    let total = u16::try_from(HEADER4 + length).ok()?;
    let (id, flags) = match headers.fragment {
        // What is left of the number: nothing else is known of the packet.
        Some(it) => (it.id & 0xffff, it.offset | if it.has_more { MORE_FRAGMENTS } else { 0 }),
        // Small ones may be fragmented on their way: who sent them knows nothing of that.
        None if headers.may_be_fragmented && usize::from(total) <= MTU_MIN - HEADER4 => (headers.id & 0xffff, 0),
        None => (0, DONT_FRAGMENT),
    };
    out.clear();
    out.extend_from_slice(&[0x45, headers.class]);
    out.extend_from_slice(&total.to_be_bytes());
    out.extend_from_slice(&u16::try_from(id).unwrap_or_default().to_be_bytes());
    out.extend_from_slice(&flags.to_be_bytes());
    out.extend_from_slice(&[headers.hops, headers.protocol, 0, 0]);
    out.extend_from_slice(&headers.source.octets());
    out.extend_from_slice(&headers.destination.octets());
    let checksum = checksum::of(checksum::sum(out));
    out[10..12].copy_from_slice(&checksum.to_be_bytes());
    Some(())
}
