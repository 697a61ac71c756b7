//! Messages to the packet filter: a batch of them that the kernel takes as one.

use corten_proxy::rules::Change;

use super::objects;
pub(super) use crate::netlink::{ACK, Bytes, DUMP, attributes};

pub(super) const CREATE: u16 = 0x400;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
pub(super) const NFTABLES: u16 = 10;
/// How a batch begins and ends: for which subsystem it is.
const OF_NFTABLES: [u8; 4] = [0, 0, 0, 10];
pub(super) const INET: u8 = 1;

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
        bytes.framed(BATCH_BEGIN, 0, 1, OF_NFTABLES, |_| {});
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
        bytes.framed(BATCH_END, 0, end, OF_NFTABLES, |_| {});
        Self { bytes: bytes.0, changes: of }
    }

    /// Of a family of tables that the proxy's words do not know.
    pub(super) fn of_messages(family: u8, messages: &[Message]) -> Self {
        let mut bytes = Bytes::default();
        bytes.framed(BATCH_BEGIN, 0, 1, OF_NFTABLES, |_| {});
        for (at, Message { kind, flags, body }) in messages.iter().enumerate() {
            let ack = if at + 1 == messages.len() { ACK } else { 0 };
            let sequence = u32::try_from(at + 2).expect("a transaction is bounded by the kernel's memory");
            bytes.message(NFTABLES << 8 | kind, flags | ack, sequence, family, |it| it.0.extend_from_slice(&body.0));
        }
        let end = u32::try_from(messages.len() + 2).expect("as above");
        bytes.framed(BATCH_END, 0, end, OF_NFTABLES, |_| {});
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

/// The table that a message about chains, rules or tables is about: always the first attribute.
pub fn table_of(body: &[u8]) -> Option<String> {
    let (_, name) = attributes(body.get(4..)?).find(|it| it.0 == 1)?;
    let end = name.iter().position(|it| *it == 0).unwrap_or(name.len());
    Some(String::from_utf8_lossy(&name[..end]).into_owned())
}
