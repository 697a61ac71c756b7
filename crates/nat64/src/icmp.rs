//! Echoes, and errors with the packet that they are about (RFC 7915, sections 4.2 and 5.2). What else there is of ICMP concerns one link
//! alone, and is not passed on.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::{
    checksum::{self, Address},
    ip::{Ends, HEADER4, HEADER6, Headers, ICMP4, ICMP6, MTU_MIN, UDP, put_word, word},
    ipv4, ipv6,
};

const HEADER: usize = 8;
const UNREACHABLE6: u8 = 1;
const TOO_BIG6: u8 = 2;
const TIME_EXCEEDED6: u8 = 3;
const PARAMETER6: u8 = 4;
const ECHO6: u8 = 128;
const ECHO_REPLY6: u8 = 129;

const ECHO_REPLY4: u8 = 0;
const UNREACHABLE4: u8 = 3;
const ECHO4: u8 = 8;
const TIME_EXCEEDED4: u8 = 11;
const PROTOCOL4: u8 = 2;
const PORT4: u8 = 3;
const FRAGMENTATION_NEEDED4: u8 = 4;
/// What an IPv6 packet is longer by than the same of IPv4.
const LONGER: usize = HEADER6 - HEADER4;
/// Where IPv6's header names its payload's protocol.
const NEXT_HEADER: u32 = 6;

pub(crate) fn is_error6(message: &[u8]) -> bool {
    message.first().is_some_and(|it| *it < ECHO6)
}

/// The message on the IPv4 side. None of a fragment: its checksum covers what is not there.
pub(crate) fn to_ipv4(ends: &Ends, headers: &Headers<Ipv6Addr>, message: &[u8]) -> Option<Vec<u8>> {
    if headers.fragment.is_some() {
        return None;
    }
    let pseudo = checksum::pseudo_header(headers.source, headers.destination, message.len(), ICMP6);
    let (kind, code, rest) = match *message {
        [ECHO6 | ECHO_REPLY6, ..] => return echo(message, pseudo, 0),
        [kind, code, _, _, a, b, c, d, ..] => error4(kind, code, u32::from_be_bytes([a, b, c, d]))?,
        _ => return None,
    };
    // It is counted anew: what is broken must not become good by that.
    if checksum::of(pseudo + checksum::sum(message)) != 0 {
        return None;
    }
    let mut out = vec![kind, code, 0, 0];
    out.extend_from_slice(&rest.to_be_bytes());
    out.extend(inner4(ends, &message[HEADER..])?);
    let checksum = checksum::of(checksum::sum(&out));
    put_word(&mut out, 2, checksum)?;
    Some(out)
}

/// The message on the IPv6 side, with the addresses that it has there.
pub(crate) fn to_ipv6(
    ends: &Ends,
    headers: &Headers<Ipv4Addr>,
    message: &[u8],
    (source, destination): (Ipv6Addr, Ipv6Addr),
) -> Option<Vec<u8>> {
    if headers.fragment.is_some() {
        return None;
    }
    let pseudo = |length| checksum::pseudo_header(source, destination, length, ICMP6);
    let (kind, code, rest) = match *message {
        [ECHO4 | ECHO_REPLY4, ..] => return echo(message, 0, pseudo(message.len())),
        [kind, code, _, _, _, _, c, d, ..] => error6(kind, code, u16::from_be_bytes([c, d]))?,
        _ => return None,
    };
    if checksum::of(checksum::sum(message)) != 0 {
        return None;
    }
    let mut out = vec![kind, code, 0, 0];
    out.extend_from_slice(&rest.to_be_bytes());
    out.extend(inner6(ends, &message[HEADER..])?);
    // As long as a router may answer (RFC 4443, section 2.4).
    out.truncate(MTU_MIN - HEADER6);
    let checksum = checksum::of(pseudo(out.len()) + checksum::sum(&out));
    put_word(&mut out, 2, checksum)?;
    Some(out)
}

/// An echo, asked or answered; `old` and `new` are what its checksum is about beside it.
fn echo(message: &[u8], old: u64, new: u64) -> Option<Vec<u8>> {
    if message.len() < HEADER {
        return None;
    }
    let kind = match message[0] {
        ECHO6 => ECHO4,
        ECHO_REPLY6 => ECHO_REPLY4,
        ECHO4 => ECHO6,
        _ => ECHO_REPLY6,
    };
    let mut out = message.to_vec();
    out[0] = kind;
    let (old, new) = (old + checksum::sum(&message[..2]), new + checksum::sum(&out[..2]));
    let checksum = checksum::adjusted(word(message, 2)?, old, new);
    put_word(&mut out, 2, checksum)?;
    Some(out)
}

/// The type, the code, and what stands behind the checksum.
fn error4(kind: u8, code: u8, rest: u32) -> Option<(u8, u8, u32)> {
    const HOST: u8 = 1;
    const PROHIBITED: u8 = 10;
    Some(match (kind, code) {
        (UNREACHABLE6, 0 | 2 | 3) => (UNREACHABLE4, HOST, 0),
        (UNREACHABLE6, 1) => (UNREACHABLE4, PROHIBITED, 0),
        (UNREACHABLE6, 4) => (UNREACHABLE4, PORT4, 0),
        (TOO_BIG6, _) => {
            let mtu = usize::try_from(rest).ok()?.saturating_sub(LONGER).min(usize::from(u16::MAX));
            (UNREACHABLE4, FRAGMENTATION_NEEDED4, u32::try_from(mtu).ok()?)
        }
        (TIME_EXCEEDED6, code) => (TIME_EXCEEDED4, code, 0),
        (PARAMETER6, 1) => (UNREACHABLE4, PROTOCOL4, 0),
        _ => return None,
    })
}

/// `mtu` is that of the next link, where it says one.
fn error6(kind: u8, code: u8, mtu: u16) -> Option<(u8, u8, u32)> {
    const NO_ROUTE: u8 = 0;
    const PROHIBITED: u8 = 1;
    const PORT: u8 = 4;
    Some(match (kind, code) {
        (UNREACHABLE4, 0 | 1 | 5..=8 | 11 | 12) => (UNREACHABLE6, NO_ROUTE, 0),
        (UNREACHABLE4, 9 | 10 | 13 | 15) => (UNREACHABLE6, PROHIBITED, 0),
        (UNREACHABLE4, PROTOCOL4) => (PARAMETER6, 1, NEXT_HEADER),
        (UNREACHABLE4, PORT4) => (UNREACHABLE6, PORT, 0),
        (UNREACHABLE4, FRAGMENTATION_NEEDED4) => {
            let mtu = (usize::from(mtu) + LONGER).max(MTU_MIN);
            (TOO_BIG6, 0, u32::try_from(mtu).ok()?)
        }
        (TIME_EXCEEDED4, code) => (TIME_EXCEEDED6, code, 0),
        _ => return None,
    })
}

/// The packet that an error is about, which went the other way.
fn inner4(ends: &Ends, packet: &[u8]) -> Option<Vec<u8>> {
    let (headers, payload) = ipv6::read_start(packet)?;
    let source = ends.ipv4_behind(headers.source).filter(|it| ends.is_host(*it))?;
    if headers.destination != ends.inside {
        return None;
    }
    let destination = ends.outside;
    let pseudo = checksum::pseudo_header(headers.source, headers.destination, headers.payload_length, ICMP6);
    let (protocol, body) = match headers.protocol {
        ICMP6 if headers.is_first() => (ICMP4, inner_echo(payload, pseudo, 0)?),
        ICMP6 => (ICMP4, payload.to_vec()),
        other => (other, inner_payload(&headers, payload, (source, destination))),
    };
    let mut out = Vec::new();
    ipv4::write(&headers.with(protocol, source, destination), headers.payload_length, &mut out)?;
    out.extend(body);
    Some(out)
}

fn inner6(ends: &Ends, packet: &[u8]) -> Option<Vec<u8>> {
    let (headers, payload) = ipv4::read_start(packet)?;
    if headers.source != ends.outside || !ends.is_host(headers.destination) {
        return None;
    }
    let (source, destination) = (ends.inside, ends.ipv6_of(headers.destination));
    let pseudo = checksum::pseudo_header(source, destination, headers.payload_length, ICMP6);
    let (protocol, body) = match headers.protocol {
        ICMP4 if headers.is_first() => (ICMP6, inner_echo(payload, 0, pseudo)?),
        ICMP4 => (ICMP6, payload.to_vec()),
        other => (other, inner_payload(&headers, payload, (source, destination))),
    };
    let mut out = Vec::new();
    ipv6::write(&headers.with(protocol, source, destination), headers.payload_length, &mut out)?;
    out.extend(body);
    Some(out)
}

/// Errors about errors there are none.
fn inner_echo(message: &[u8], old: u64, new: u64) -> Option<Vec<u8>> {
    let is_echo = matches!(message.first(), Some(&(ECHO4 | ECHO_REPLY4 | ECHO6 | ECHO_REPLY6)));
    if is_echo { echo(message, old, new) } else { None }
}

/// Of a packet that is not there to its end the checksum may be missing, and cannot be counted.
fn inner_payload<A: Address, B: Address>(headers: &Headers<A>, payload: &[u8], ends: (B, B)) -> Vec<u8> {
    let mut body = payload.to_vec();
    let is_without = headers.protocol == UDP && word(&body, 6) == Some(0);
    if !is_without {
        // What is cut before its checksum stays as it is.
        let _ = checksum::carry(headers, &mut body, ends);
    }
    body
}
