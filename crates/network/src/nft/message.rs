//! Netlink messages: headers, attributes within attributes, and a batch of them that the kernel takes as one.

use corten_proxy::rules::Change;

use super::objects;

const HEADER: usize = 16;
pub(super) const REQUEST: u16 = 1;
pub(super) const ACK: u16 = 4;
pub(super) const DUMP: u16 = 0x300;
pub(super) const CREATE: u16 = 0x400;
const NESTED: u16 = 0x8000;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
pub(super) const NFTABLES: u16 = 10;
pub(super) const INET: u8 = 1;

/// Bytes under construction. Lengths are filled in where a part ends.
#[derive(Debug, Default)]
pub(super) struct Bytes(pub(super) Vec<u8>);

impl Bytes {
    pub(super) fn message(&mut self, kind: u16, flags: u16, sequence: u32, family: u8, fill: impl FnOnce(&mut Self)) {
        self.framed(kind, flags, sequence, (family, 0), fill);
    }

    fn framed(
        &mut self,
        kind: u16,
        flags: u16,
        sequence: u32,
        (family, resource): (u8, u16),
        fill: impl FnOnce(&mut Self),
    ) {
        let at = self.0.len();
        self.0.extend([0; 4]);
        self.0.extend(kind.to_ne_bytes());
        self.0.extend((flags | REQUEST).to_ne_bytes());
        self.0.extend(sequence.to_ne_bytes());
        self.0.extend([0; 4]);
        self.0.extend([family, 0]);
        self.0.extend(resource.to_be_bytes());
        fill(self);
        let length = u32::try_from(self.0.len() - at).expect("a message is bounded by what goes into it");
        self.0[at..at + 4].copy_from_slice(&length.to_ne_bytes());
    }

    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        let length = u16::try_from(value.len() + 4).expect("values are names, addresses and numbers");
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.align();
    }

    pub(super) fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) {
        let at = self.0.len();
        self.0.extend([0; 2]);
        self.0.extend((kind | NESTED).to_ne_bytes());
        fill(self);
        let length = u16::try_from(self.0.len() - at).expect("lists are cut before they are too long");
        self.0[at..at + 2].copy_from_slice(&length.to_ne_bytes());
    }

    pub(super) fn text(&mut self, kind: u16, value: &str) {
        self.attribute(kind, &[value.as_bytes(), &[0]].concat());
    }

    pub(super) fn number(&mut self, kind: u16, value: u32) {
        self.attribute(kind, &value.to_be_bytes());
    }

    fn align(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }
}

/// One transaction.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    /// The change behind each message, by its sequence number less one.
    pub(super) changes: Vec<usize>,
}

/// One message of a transaction.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) kind: u16,
    pub(super) flags: u16,
    pub(super) body: Bytes,
}

/// How many elements go into one message: an attribute is at most 64 KiB long.
const ELEMENTS_MAX: usize = 200;

impl Batch {
    pub(super) fn of(table: &str, changes: &[Change]) -> Self {
        let mut bytes = Bytes::default();
        let mut of = vec![0];
        bytes.framed(BATCH_BEGIN, 0, 1, (0, NFTABLES), |_| {});
        let mut at = 0;
        while at < changes.len() {
            let n = elements(&changes[at..]);
            let is_last = at + n == changes.len();
            objects::encode(table, &changes[at..at + n], &mut |kind, flags, is_end, fill| {
                of.push(at);
                let sequence = u32::try_from(of.len()).expect("a transaction is bounded by the kernel's memory");
                let ack = if is_last && is_end { ACK } else { 0 };
                bytes.message(NFTABLES << 8 | kind, flags | ack, sequence, INET, fill);
            });
            at += n;
        }
        let end = u32::try_from(of.len() + 1).expect("as above");
        bytes.framed(BATCH_END, 0, end, (0, NFTABLES), |_| {});
        Self { bytes: bytes.0, changes: of }
    }

    /// Of a family of tables that the proxy's words do not know.
    pub(super) fn of_messages(family: u8, messages: &[Message]) -> Self {
        let mut bytes = Bytes::default();
        bytes.framed(BATCH_BEGIN, 0, 1, (0, NFTABLES), |_| {});
        for (at, Message { kind, flags, body }) in messages.iter().enumerate() {
            let ack = if at + 1 == messages.len() { ACK } else { 0 };
            let sequence = u32::try_from(at + 2).expect("a transaction is bounded by the kernel's memory");
            bytes.message(NFTABLES << 8 | kind, flags | ack, sequence, family, |it| it.0.extend_from_slice(&body.0));
        }
        let end = u32::try_from(messages.len() + 2).expect("as above");
        bytes.framed(BATCH_END, 0, end, (0, NFTABLES), |_| {});
        Self { bytes: bytes.0, changes: (0..=messages.len()).collect() }
    }
}

/// How many of the first changes are elements for the same map, and go together.
fn elements(changes: &[Change]) -> usize {
    let same = changes.iter().zip(&changes[1..]).take_while(|pair| match pair {
        (Change::Add(a, _), Change::Add(b, _)) | (Change::Remove(a), Change::Remove(b)) => a.map == b.map,
        _ => false,
    });
    (same.count() + 1).min(ELEMENTS_MAX)
}

/// The attributes of what the kernel sent: kind and value. What does not add up ends the list.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [a, b, c, d, ..] = *bytes else { return None };
        let length = usize::from(u16::from_ne_bytes([a, b]));
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([c, d]) & 0x3fff, value))
    })
}

/// The table that a message about chains, rules or tables is about: always the first attribute.
pub fn table_of(body: &[u8]) -> Option<String> {
    let (_, name) = attributes(body.get(4..)?).find(|it| it.0 == 1)?;
    let end = name.iter().position(|it| *it == 0).unwrap_or(name.len());
    Some(String::from_utf8_lossy(&name[..end]).into_owned())
}

/// One message of the kernel's: its kind, its sequence number, and what is behind the header.
pub struct Answer<'a> {
    pub kind: u16,
    pub(super) sequence: u32,
    pub body: &'a [u8],
}

pub fn answers(mut bytes: &[u8]) -> impl Iterator<Item = Answer<'_>> {
    std::iter::from_fn(move || {
        let header = bytes.get(..HEADER)?;
        let word = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let length = usize::try_from(word(0)).ok()?;
        let body = bytes.get(HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Answer { kind: u16::from_ne_bytes([header[4], header[5]]), sequence: word(8), body })
    })
}
