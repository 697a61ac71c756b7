//! A message as lines of text, as `dig` would have it.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::{
    Name,
    numbers::{HEADER, OPT, long, word},
};

const TYPES: [(&str, u16); 17] = [
    ("A", 1),
    ("NS", 2),
    ("CNAME", 5),
    ("SOA", 6),
    ("PTR", 12),
    ("HINFO", 13),
    ("MX", 15),
    ("TXT", 16),
    ("AAAA", 28),
    ("SRV", 33),
    ("OPT", 41),
    ("TYPE99", 99),
    ("IXFR", 251),
    ("AXFR", 252),
    ("ANY", 255),
    ("CAA", 257),
    ("TSIG", 250),
];

pub(crate) fn number_of(qtype: &str) -> u16 {
    TYPES.iter().find(|it| it.0 == qtype).unwrap_or_else(|| panic!("{qtype} is a type")).1
}

/// The code and flags first, then the records, each with its section.
pub(crate) fn shown(packet: &[u8]) -> Vec<String> {
    let flags = word(packet, 2).expect("flags");
    let codes = ["NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN", "NOTIMP", "REFUSED"];
    let mut head = vec![codes.get(usize::from(flags & 0xf)).map_or("?".to_owned(), |it| (*it).to_owned())];
    for (bit, name) in [(0x8000, "qr"), (0x0400, "aa"), (0x0200, "tc"), (0x0100, "rd"), (0x0080, "ra"), (0x20, "ad")] {
        if flags & bit != 0 {
            head.push(name.to_owned());
        }
    }
    let mut lines = Vec::new();
    let mut at = HEADER;
    for _ in 0..word(packet, 4).expect("a count") {
        at = Name::read(packet, at).expect("a name").1 + 4;
    }
    for (idx, section) in ["", "authority ", "additional "].into_iter().enumerate() {
        for _ in 0..word(packet, 6 + 2 * idx).expect("a count") {
            let (owner, head_at) = Name::read(packet, at).expect("an owner");
            let rtype = word(packet, head_at).expect("a type");
            let ttl = long(packet, head_at + 4).expect("a ttl");
            let end = head_at + 10 + usize::from(word(packet, head_at + 8).expect("a length"));
            if rtype == OPT {
                head.push(format!("edns={}", word(packet, head_at + 2).expect("a size")));
                if ttl >> 24 > 0 {
                    head.push(format!("upper={}", ttl >> 24));
                }
            } else {
                let type_name = TYPES.iter().find(|it| it.1 == rtype).map_or("?", |it| it.0);
                lines.push(format!("{section}{owner} {ttl} {type_name} {}", data(packet, rtype, head_at + 10, end)));
            }
            at = end;
        }
    }
    assert_eq!(at, packet.len(), "nothing follows the last record");
    lines.insert(0, head.join(" "));
    lines
}

fn data(packet: &[u8], rtype: u16, at: usize, end: usize) -> String {
    let name = |at| Name::read(packet, at).expect("a name");
    let number = |at| word(packet, at).expect("a number");
    match rtype {
        1 => Ipv4Addr::from(<[u8; 4]>::try_from(&packet[at..end]).expect("four bytes")).to_string(),
        28 => Ipv6Addr::from(<[u8; 16]>::try_from(&packet[at..end]).expect("sixteen bytes")).to_string(),
        2 | 5 | 12 => name(at).0.to_string(),
        15 => format!("{} {}", number(at), name(at + 2).0),
        33 => format!("{} {} {} {}", number(at), number(at + 2), number(at + 4), name(at + 6).0),
        6 => {
            let (server, next) = name(at);
            let (mailbox, next) = name(next);
            // The serial changes with everything.
            let numbers: Vec<String> =
                (1..5).map(|it| long(packet, next + 4 * it).expect("five").to_string()).collect();
            format!("{server} {mailbox} * {}", numbers.join(" "))
        }
        _ => format!("{:?}", String::from_utf8_lossy(&packet[at..end])),
    }
}
