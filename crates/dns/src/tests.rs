//! What tests of all files share: messages as text, and queries.

mod shown;
mod texts;

pub(crate) use shown::{number_of, shown};

use crate::Name;

/// A query as a client sends it.
pub(crate) fn query(id: u16, name: &str, qtype: u16) -> Vec<u8> {
    let mut packet = id.to_be_bytes().to_vec();
    packet.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.').filter(|it| !it.is_empty()) {
        packet.push(u8::try_from(label.len()).expect("a short label"));
        packet.extend_from_slice(label.as_bytes());
    }
    packet.push(0);
    packet.extend_from_slice(&qtype.to_be_bytes());
    packet.extend_from_slice(&[0, 1]);
    packet
}

/// The same with EDNS.
pub(crate) fn with_edns(mut packet: Vec<u8>, payload: u16, dnssec_ok: bool) -> Vec<u8> {
    packet[11] += 1;
    packet.extend_from_slice(&[0, 0, 41]);
    packet.extend_from_slice(&payload.to_be_bytes());
    packet.extend_from_slice(&[0, 0, if dnssec_ok { 0x80 } else { 0 }, 0, 0, 0]);
    packet
}

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).unwrap_or_else(|| panic!("{text} is a name"))
}
