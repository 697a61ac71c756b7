//! Headers of IPv6 (RFC 8200).

use std::net::Ipv6Addr;

use crate::ip::{FRAGMENT_HEADER, Fragment, HEADER6, Headers, ICMP6, word};

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;
/// So many headers stand before a payload; no sender writes more.
const HEADERS_MAX: usize = 8;

/// Is it, in IPv6, the number of what stands before a payload, or of its own messages of control?
pub(crate) fn is_header(protocol: u8) -> bool {
    matches!(protocol, HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION | ICMP6)
}

/// A whole packet, and its payload.
pub(crate) fn read(packet: &[u8]) -> Option<(Headers<Ipv6Addr>, &[u8])> {
    let (headers, payload) = read_start(packet)?;
    Some((headers, payload.get(..headers.payload_length)?))
}

/// A packet of which the end may be missing.
pub(crate) fn read_start(packet: &[u8]) -> Option<(Headers<Ipv6Addr>, &[u8])> {
    let header = packet.get(..HEADER6)?;
    if header[0] >> 4 != 6 {
        return None;
    }
    let mut length = usize::from(word(header, 4)?);
    let mut rest = &packet[HEADER6..];
    rest = &rest[..rest.len().min(length)];
    let (mut protocol, mut fragment) = (header[6], None);
    for _ in 0..HEADERS_MAX {
        let n_bytes = match protocol {
            FRAGMENT => {
                fragment = Some(read_fragment(rest)?);
                FRAGMENT_HEADER
            }
            // What still leads it somewhere else.
            ROUTING if *rest.get(3)? != 0 => return None,
            HOP_BY_HOP | ROUTING | DESTINATION => (usize::from(*rest.get(1)?) + 1) * 8,
            _ => {
                let address = |at: usize| Some(Ipv6Addr::from(*header.get(at..)?.first_chunk::<16>()?));
                let headers = Headers {
                    class: header[0] << 4 | header[1] >> 4,
                    hops: header[7],
                    protocol,
                    source: address(8)?,
                    destination: address(24)?,
                    fragment,
                    id: 0,
                    may_be_fragmented: true,
                    payload_length: length,
                };
                return Some((headers, rest));
            }
        };
        protocol = *rest.first()?;
        rest = rest.get(n_bytes..)?;
        length = length.checked_sub(n_bytes)?;
        // Headers of a later fragment are payload.
        if fragment.is_some_and(|it| it.offset > 0) && matches!(protocol, HOP_BY_HOP | ROUTING | DESTINATION | FRAGMENT)
        {
            return None;
        }
    }
    None
}

fn read_fragment(header: &[u8]) -> Option<Fragment> {
    let place = word(header, 2)?;
    let id = u32::from_be_bytes(*header.get(4..)?.first_chunk()?);
    Some(Fragment { id, offset: place >> 3, has_more: place & 1 != 0 })
}

/// The headers of a packet whose payload has `length` bytes, or is said to have.
pub(crate) fn write(headers: &Headers<Ipv6Addr>, length: usize, out: &mut Vec<u8>) -> Option<()> {
    let before = if headers.fragment.is_some() { FRAGMENT_HEADER } else { 0 };
    let total = u16::try_from(before + length).ok()?;
    out.clear();
    out.extend_from_slice(&[0x60 | headers.class >> 4, headers.class << 4, 0, 0]);
    out.extend_from_slice(&total.to_be_bytes());
    out.extend_from_slice(&[if before > 0 { FRAGMENT } else { headers.protocol }, headers.hops]);
    out.extend_from_slice(&headers.source.octets());
    out.extend_from_slice(&headers.destination.octets());
    if let Some(Fragment { id, offset, has_more }) = headers.fragment {
        out.extend_from_slice(&[headers.protocol, 0]);
        out.extend_from_slice(&(offset << 3 | u16::from(has_more)).to_be_bytes());
        out.extend_from_slice(&id.to_be_bytes());
    }
    Some(())
}
