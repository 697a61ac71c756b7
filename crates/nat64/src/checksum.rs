//! The Internet's checksum (RFC 1071), and how it follows a change of addresses (RFC 1624).

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::ip::{Headers, TCP, UDP, put_word, word};

pub(crate) trait Address: Copy {
    /// The sum of its 16-bit words.
    fn sum(self) -> u64;
}

impl Address for Ipv4Addr {
    fn sum(self) -> u64 {
        sum(&self.octets())
    }
}

impl Address for Ipv6Addr {
    fn sum(self) -> u64 {
        sum(&self.octets())
    }
}

/// The sum of all 16-bit words; a last single byte is the upper half of one.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<2>();
    let sum: u64 = words.iter().map(|it| u64::from(u16::from_be_bytes(*it))).sum();
    sum + rest.first().map_or(0, |it| u64::from(*it) << 8)
}

/// In 16 bits: what is carried out is added.
pub(crate) fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    u16::try_from(sum).unwrap_or(u16::MAX)
}

/// What a header says of a sum.
pub(crate) fn of(sum: u64) -> u16 {
    !folded(sum)
}

/// The checksum once `old` has become `new` in what it is about.
pub(crate) fn adjusted(checksum: u16, old: u64, new: u64) -> u16 {
    of(u64::from(!checksum) + u64::from(!folded(old)) + u64::from(folded(new)))
}

/// What a checksum over a payload is about beside it (RFC 8200, section 8.1). That of IPv4 has the same sum.
pub(crate) fn pseudo_header<A: Address>(source: A, destination: A, length: usize, protocol: u8) -> u64 {
    let length = u64::try_from(length).unwrap_or_default();
    source.sum() + destination.sum() + (length >> 16) + (length & 0xffff) + u64::from(protocol)
}

/// Has the checksum of a payload follow the change of addresses. Other protocols than TCP and UDP count none, or are not known: they
/// are passed on as they are. `None`: the packet cannot be passed on.
pub(crate) fn carry<A: Address, B: Address>(
    headers: &Headers<A>,
    payload: &mut [u8],
    (source, destination): (B, B),
) -> Option<()> {
    let at = match headers.protocol {
        _ if !headers.is_first() => return Some(()),
        TCP => 16,
        UDP => 6,
        _ => return Some(()),
    };
    let checksum = word(payload, at)?;
    let (old, new) = (headers.source.sum() + headers.destination.sum(), source.sum() + destination.sum());
    let checksum = match (headers.protocol, checksum) {
        // IPv6 wants one. Of a fragment it cannot be known.
        (UDP, 0) if headers.fragment.is_some() => return None,
        (UDP, 0) => of(pseudo_header(source, destination, payload.len(), UDP) + sum(payload)),
        _ => adjusted(checksum, old, new),
    };
    let is_none = headers.protocol == UDP && checksum == 0;
    put_word(payload, at, if is_none { u16::MAX } else { checksum })
}
