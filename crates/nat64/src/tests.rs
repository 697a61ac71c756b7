//! Packets out of their parts, and what they become: every length and checksum is counted anew by a reader of its own.

use std::net::Ipv4Addr;

use super::*;
use crate::ip::{TCP, UDP};

const MTU: usize = 1500;

fn ends() -> Ends {
    Ends::LOCAL
}

fn remote() -> Ipv4Addr {
    Ipv4Addr::new(198, 51, 100, 7)
}

/// One packet in the words of no family.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Packet {
    source: String,
    destination: String,
    protocol: u8,
    hops: u8,
    class: u8,
    /// Number, offset in bytes, more.
    fragment: Option<(u32, usize, bool)>,
    payload: Vec<u8>,
}

impl Packet {
    fn out(protocol: u8, payload: &[u8]) -> Self {
        let (source, destination) = (ends().inside.to_string(), ends().ipv6_of(remote()).to_string());
        Self { source, destination, protocol, hops: 61, class: 0xb8, fragment: None, payload: payload.to_vec() }
    }

    fn back(protocol: u8, payload: &[u8]) -> Self {
        let (source, destination) = (remote().to_string(), ends().outside.to_string());
        Self { source, destination, protocol, hops: 50, class: 0x10, fragment: None, payload: payload.to_vec() }
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let length = self.payload.len();
        if let Ok(source) = self.source.parse::<Ipv6Addr>() {
            let total = length + if self.fragment.is_some() { 8 } else { 0 };
            let next = if self.fragment.is_some() { 44 } else { self.protocol };
            out.extend([0x60 | self.class >> 4, self.class << 4, 0, 0]);
            out.extend(u16::try_from(total).expect("short").to_be_bytes());
            out.extend([next, self.hops]);
            out.extend(source.octets());
            out.extend(self.destination.parse::<Ipv6Addr>().expect("of one family").octets());
            if let Some((id, offset, has_more)) = self.fragment {
                out.extend([self.protocol, 0]);
                out.extend((u16::try_from(offset).expect("short") | u16::from(has_more)).to_be_bytes());
                out.extend(id.to_be_bytes());
            }
        } else {
            out.extend([0x45, self.class]);
            out.extend(u16::try_from(20 + length).expect("short").to_be_bytes());
            let (id, offset, has_more) = self.fragment.unwrap_or((0, 0, false));
            out.extend(u16::try_from(id).expect("short").to_be_bytes());
            let flags = if self.fragment.is_none() { 0x4000 } else { u16::from(has_more) << 13 };
            out.extend((u16::try_from(offset / 8).expect("short") | flags).to_be_bytes());
            out.extend([self.hops, self.protocol, 0, 0]);
            out.extend(self.source.parse::<Ipv4Addr>().expect("an address").octets());
            out.extend(self.destination.parse::<Ipv4Addr>().expect("of one family").octets());
            let checksum = full(&[&out]);
            out[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        out.extend(&self.payload);
        out
    }

    fn read(bytes: &[u8]) -> Self {
        let word = |at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
        if bytes[0] >> 4 == 6 {
            assert_eq!(usize::from(word(4)), bytes.len() - 40, "the length");
            let ip = |at: usize| Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[at..at + 16]).expect("16")).to_string();
            let (mut protocol, mut payload, mut fragment) = (bytes[6], &bytes[40..], None);
            if protocol == 44 {
                let id = u32::from_be_bytes(bytes[44..48].try_into().expect("4"));
                fragment = Some((id, usize::from(word(42) & !7), word(42) & 1 == 1));
                (protocol, payload) = (bytes[40], &bytes[48..]);
            }
            let class = bytes[0] << 4 | bytes[1] >> 4;
            let (source, destination, payload) = (ip(8), ip(24), payload.to_vec());
            return Self { source, destination, protocol, hops: bytes[7], class, fragment, payload };
        }
        assert_eq!((bytes[0], full(&[&bytes[..20]])), (0x45, 0), "the header");
        assert_eq!(usize::from(word(2)), bytes.len(), "the length");
        let ip = |at: usize| Ipv4Addr::from(<[u8; 4]>::try_from(&bytes[at..at + 4]).expect("4")).to_string();
        let (flags, offset) = (word(6) & 0xe000, usize::from(word(6) & 0x1fff) * 8);
        let fragment = (flags & 0x4000 == 0).then_some((u32::from(word(4)), offset, flags & 0x2000 != 0));
        let (class, hops, protocol) = (bytes[1], bytes[8], bytes[9]);
        Self { source: ip(12), destination: ip(16), protocol, hops, class, fragment, payload: bytes[20..].to_vec() }
    }

    /// Is the checksum of the whole payload right?
    fn is_counted(&self) -> bool {
        let length = u32::try_from(self.payload.len()).expect("short").to_be_bytes();
        let of_6 = |it: &str| it.parse::<Ipv6Addr>().map(|it| it.octets().to_vec());
        let of_4 = |it: &str| it.parse::<Ipv4Addr>().map(|it| it.octets().to_vec()).expect("an address");
        let octets = |it: &str| of_6(it).unwrap_or_else(|_| of_4(it));
        let pseudo = [octets(&self.source), octets(&self.destination), length.to_vec(), vec![0, self.protocol]];
        let pseudo = if self.protocol == ICMP4 { Vec::new() } else { pseudo.concat() };
        full(&[&pseudo, &self.payload]) == 0
    }

    fn counted(mut self, at: usize) -> Self {
        self.payload[at..at + 2].fill(0);
        let length = u32::try_from(self.payload.len()).expect("short").to_be_bytes();
        let octets = |it: &str| match it.parse::<Ipv6Addr>() {
            Ok(it) => it.octets().to_vec(),
            Err(_) => it.parse::<Ipv4Addr>().expect("an address").octets().to_vec(),
        };
        let pseudo = [octets(&self.source), octets(&self.destination), length.to_vec(), vec![0, self.protocol]];
        let pseudo = if self.protocol == ICMP4 { Vec::new() } else { pseudo.concat() };
        let checksum = full(&[&pseudo, &self.payload]);
        self.payload[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        self
    }
}

/// RFC 1071 by the letter.
fn full(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        if sum > 0xffff {
            sum -= 0xffff;
        }
    }
    !u16::try_from(sum).expect("it is folded")
}

fn translated(bytes: &[u8]) -> Vec<Packet> {
    let mut sent = Vec::new();
    Translator::new(ends(), MTU).translate(bytes, |it| sent.push(Packet::read(it)));
    sent
}

fn one(packet: &Packet) -> Packet {
    let sent = translated(&packet.bytes());
    assert_eq!(sent.len(), 1, "{packet:?}");
    sent[0].clone()
}

fn segment(length: usize) -> Vec<u8> {
    (0..length).map(|it| u8::try_from(it * 7 % 251).expect("a byte")).collect()
}

#[test]
fn segments_go_both_ways_with_right_checksums() {
    for (protocol, at) in [(TCP, 16), (UDP, 6)] {
        for length in [20, 21, 1400] {
            let sent = Packet::out(protocol, &segment(length)).counted(at);
            let got = one(&sent);
            assert_eq!((&*got.source, &*got.destination), ("192.0.0.1", "198.51.100.7"));
            assert_eq!((got.hops, got.class, got.protocol), (61, 0xb8, protocol));
            assert!(got.is_counted(), "{got:?}");
            assert_eq!(got.payload[..at], sent.payload[..at]);
            let back = one(&Packet::back(protocol, &segment(length)).counted(at));
            assert_eq!((&*back.source, &*back.destination), ("64:ff9b:1::c633:6407", "64:ff9b:1:1::1"));
            assert_eq!((back.hops, back.class, back.fragment), (50, 0x10, None));
            assert!(back.is_counted(), "{back:?}");
        }
    }
}

#[test]
fn what_was_broken_stays_broken() {
    for (protocol, at) in [(TCP, 16), (UDP, 6), (ICMP6, 2)] {
        let mut payload = segment(64);
        (payload[0], payload[1]) = (128, 0);
        let mut sent = Packet::out(protocol, &payload).counted(at);
        sent.payload[40] ^= 1;
        assert!(!one(&sent).is_counted());
    }
}

#[test]
fn a_datagram_without_a_checksum_gets_one() {
    let mut payload = segment(33);
    payload[6..8].fill(0);
    assert!(one(&Packet::back(UDP, &payload)).is_counted());
    // Of a part it cannot be known.
    let part = Packet { fragment: Some((7, 0, true)), ..Packet::back(UDP, &segment(32)) };
    assert_eq!(translated(&part.bytes()).len(), 1);
    let mut without = part.clone();
    without.payload[6..8].fill(0);
    assert_eq!(translated(&without.bytes()), []);
}

#[test]
fn echoes_go_both_ways() {
    for (there, here) in [(128, 8), (129, 0)] {
        let mut payload = segment(64);
        (payload[0], payload[1]) = (there, 0);
        let got = one(&Packet::out(ICMP6, &payload).counted(2));
        assert_eq!((got.protocol, got.payload[0], &got.payload[4..]), (ICMP4, here, &payload[4..]));
        assert!(got.is_counted());
        payload[0] = here;
        let got = one(&Packet::back(ICMP4, &payload).counted(2));
        assert_eq!((got.protocol, got.payload[0], &got.payload[4..]), (ICMP6, there, &payload[4..]));
        assert!(got.is_counted());
    }
}

/// An error about a datagram, of which only the start is in it.
fn error(inner: &Packet, protocol: u8, kind: u8, code: u8, rest: u32) -> Vec<u8> {
    let mut payload = vec![kind, code, 0, 0];
    payload.extend(rest.to_be_bytes());
    payload.extend(&inner.bytes()[..if protocol == ICMP4 { 28 } else { 48 }]);
    payload
}

#[test]
fn errors_name_the_packet_that_they_are_about() {
    let (went_out, went_back) =
        (Packet::out(UDP, &segment(600)).counted(6), Packet::back(UDP, &segment(600)).counted(6));
    // What was sent out comes back in an error from a router, in the packet's own form there.
    let seen_there = one(&went_out);
    for (kind, code, rest, expected) in [
        (3, 0, 0, Some((1, 0, 0))),
        (3, 1, 0, Some((1, 0, 0))),
        (3, 3, 0, Some((1, 4, 0))),
        (3, 2, 0, Some((4, 1, 6))),
        (3, 13, 0, Some((1, 1, 0))),
        (3, 4, 1400, Some((2, 0, 1420))),
        (3, 4, 0, Some((2, 0, 1280))),
        (11, 0, 0, Some((3, 0, 0))),
        (5, 0, 0, None),
        (12, 0, 0, None),
        (13, 0, 0, None),
    ] {
        let router = Packet { source: "203.0.113.9".into(), ..Packet::back(ICMP4, &[]) };
        let sent = Packet { payload: error(&seen_there, ICMP4, kind, code, rest), ..router }.counted(2);
        let got = translated(&sent.bytes());
        assert_eq!(got.len(), usize::from(expected.is_some()), "{kind} {code}");
        let (Some(got), Some((kind6, code6, rest6))) = (got.first(), expected) else { continue };
        assert_eq!((got.payload[0], got.payload[1]), (kind6, code6), "{kind} {code}");
        assert_eq!(got.payload[4..8], u32::to_be_bytes(rest6), "{kind} {code}");
        assert!(got.is_counted() && got.source == "64:ff9b:1::cb00:7109", "{got:?}");
        // The very start of what was sent, but for what fragments are known by.
        assert_eq!(got.payload[8..], went_out.bytes()[..48], "{kind} {code}");
    }
    for (kind, code, rest, expected) in [
        (1, 0, 0, Some((3, 1, 0))),
        (1, 1, 0, Some((3, 10, 0))),
        (1, 4, 0, Some((3, 3, 0))),
        (2, 0, 1280, Some((3, 4, 1260))),
        (3, 0, 0, Some((11, 0, 0))),
        (4, 1, 6, Some((3, 2, 0))),
        (4, 0, 0, None),
        (133, 0, 0, None),
    ] {
        let router = Packet { source: "fd00::1".into(), ..Packet::out(ICMP6, &[]) };
        let sent = Packet { payload: error(&one(&went_back), ICMP6, kind, code, rest), ..router }.counted(2);
        let got = translated(&sent.bytes());
        assert_eq!(got.len(), usize::from(expected.is_some()), "{kind} {code}");
        let (Some(got), Some((kind4, code4, rest4))) = (got.first(), expected) else { continue };
        assert_eq!((got.payload[0], got.payload[1]), (kind4, code4), "{kind} {code}");
        assert_eq!(got.payload[4..8], u32::to_be_bytes(rest4), "{kind} {code}");
        assert!(got.is_counted() && got.source == "192.0.0.1", "{got:?}");
        assert_eq!(got.payload[20..], went_back.bytes()[12..28], "addresses and the start of the datagram");
    }
}

/// Nobody is told of a connection that is none of this machine's.
#[test]
fn an_error_is_about_what_went_through_here() {
    let (out, back) = (Packet::out(UDP, &segment(60)).counted(6), Packet::back(UDP, &segment(60)).counted(6));
    let (out4, back6) = (one(&out), one(&back));
    let of_4 = Packet { source: "203.0.113.9".into(), ..Packet::back(ICMP4, &[]) };
    let of_6 = Packet { source: "fd00::1".into(), ..Packet::out(ICMP6, &[]) };
    for (router, inner, kind, expected) in [
        (&of_4, out4.clone(), 3, 1),
        (&of_4, Packet { source: "203.0.113.1".into(), ..out4.clone() }, 3, 0),
        (&of_4, Packet { destination: "127.0.0.1".into(), ..out4 }, 3, 0),
        (&of_6, back6.clone(), 1, 1),
        (&of_6, Packet { destination: "64:ff9b:1::c633:6408".into(), ..back6.clone() }, 1, 0),
        (&of_6, Packet { source: "64:ff9b:1::7f00:1".into(), ..back6.clone() }, 1, 0),
        (&of_6, Packet { source: "fd00::7".into(), ..back6 }, 1, 0),
    ] {
        let payload = error(&inner, router.protocol, kind, 1, 0);
        let sent = Packet { payload, ..router.clone() }.counted(2);
        assert_eq!(translated(&sent.bytes()).len(), expected, "{inner:?}");
    }
}

#[test]
fn what_is_a_header_on_the_other_side_is_no_payload() {
    for protocol in [0, 43, 44, 58, 60] {
        assert_eq!(translated(&Packet::back(protocol, &segment(40)).bytes()), [], "{protocol}");
    }
    assert_eq!(translated(&Packet::out(ICMP4, &segment(40)).bytes()), []);
    assert_eq!(translated(&Packet::back(132, &segment(40)).bytes()).len(), 1, "other protocols are passed on");
}

#[test]
fn fragments_stay_fragments_and_those_that_grow_too_long_become_two() {
    let part = Packet { fragment: Some((0x1_0007, 1448, true)), ..Packet::out(UDP, &segment(1432)) };
    let got = one(&part);
    assert_eq!((got.fragment, &got.payload), (Some((7, 1448, true)), &part.payload));
    let part = Packet { fragment: Some((9, 1456, false)), ..Packet::back(UDP, &segment(1460)) };
    let got = translated(&part.bytes());
    let (first, rest) = (Some((9, 1456, true)), Some((9, 1456 + 1448, false)));
    assert_eq!(got.iter().map(|it| it.fragment).collect::<Vec<_>>(), [first, rest]);
    assert_eq!(got.iter().flat_map(|it| it.payload.clone()).collect::<Vec<_>>(), part.payload);
    assert!(got.iter().all(|it| it.payload.len() + 48 <= MTU));
    // Beyond the end of all packets.
    let part = Packet { fragment: Some((9, 65_528, false)), ..Packet::back(UDP, &segment(1460)) };
    assert_eq!(translated(&part.bytes()), []);
}

#[test]
fn extension_headers_are_left_behind() {
    let sent = Packet::out(UDP, &segment(40)).counted(6);
    let mut bytes = sent.bytes();
    // Hop by hop, then options for the destination: eight bytes each.
    bytes.splice(40..40, [60, 0, 1, 4, 0, 0, 0, 0, UDP, 0, 1, 4, 0, 0, 0, 0]);
    bytes[6] = 0;
    bytes[5] += 16;
    let got = translated(&bytes);
    assert_eq!(got.len(), 1);
    assert!(got[0].is_counted() && got[0].payload.len() == 40);
    // A route that is not at its end leads somewhere else.
    bytes[6] = 43;
    bytes[43] = 1;
    assert_eq!(translated(&bytes), []);
}

#[test]
fn nobody_but_hosts_of_others_is_reached() {
    let to = |destination: &str| {
        let address: Ipv4Addr = destination.parse().expect("an address");
        let destination = ends().ipv6_of(address).to_string();
        translated(&Packet { destination, ..Packet::out(UDP, &segment(20)).counted(6) }.bytes()).len()
    };
    for address in
        ["127.0.0.1", "0.0.0.0", "169.254.169.254", "224.0.0.251", "255.255.255.255", "240.0.0.1", "192.0.0.1"]
    {
        assert_eq!(to(address), 0, "{address}");
    }
    for address in ["10.0.0.1", "192.168.1.1", "1.1.1.1"] {
        assert_eq!(to(address), 1, "{address}");
    }
    let out = Packet::out(UDP, &segment(20));
    for packet in [
        Packet { source: "fd00::1".into(), ..out.clone() },
        Packet { destination: "2001:db8::1".into(), ..out.clone() },
        Packet { destination: "64:ff9b:1:1::2".into(), ..out },
        Packet { destination: "192.0.0.2".into(), ..Packet::back(UDP, &segment(20)) },
    ] {
        assert_eq!(translated(&packet.bytes()), [], "{packet:?}");
    }
}

/// Every cut of a packet, and every byte of it turned over.
#[test]
fn what_is_no_packet_is_dropped_without_a_panic() {
    let inner = Packet::back(UDP, &segment(60)).counted(6);
    let router = Packet { source: "fd00::1".into(), ..Packet::out(ICMP6, &[]) };
    let error = Packet { payload: error(&one(&inner), ICMP6, 1, 4, 0), ..router }.counted(2);
    let fragment = Packet { fragment: Some((9, 1456, false)), ..Packet::back(UDP, &segment(1460)) };
    for packet in [Packet::out(TCP, &segment(40)).counted(16), inner, error, fragment] {
        let bytes = packet.bytes();
        for end in 0..bytes.len() {
            assert_eq!(translated(&bytes[..end]), [], "{end} bytes of {packet:?}");
        }
        for at in 0..bytes.len() {
            for mask in [0x01, 0x80, 0xff] {
                let mut changed = bytes.clone();
                changed[at] ^= mask;
                translated(&changed);
            }
        }
    }
    translated(&[]);
}
