//! One object at one revision: the bytes of its JSON without `resourceVersion`, and where that belongs.

use std::sync::Arc;

use bytes::Bytes;
use corten_store::Revision;

use super::record::Record;

/// Shared by the snapshots, the event log and every answer that is being sent.
#[derive(Debug)]
pub struct Stored {
    /// `namespace/name`, or `name`.
    pub(crate) key: Arc<str>,
    pub(crate) value: Bytes,
    /// The length of the value's head: `{"kind":..,"apiVersion":..,"metadata":{`.
    pub(crate) splice: usize,
    pub(crate) revision: Revision,
    pub(crate) record: Record,
}

impl Stored {
    pub fn namespace(&self) -> &str {
        self.key.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    pub fn name(&self) -> &str {
        self.key.split_once('/').map_or(&*self.key, |(_, name)| name)
    }

    pub fn uid(&self) -> &str {
        &self.record.uid
    }

    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// As stored: without `resourceVersion`.
    pub fn value(&self) -> &Bytes {
        &self.value
    }

    pub fn labels(&self) -> &std::collections::BTreeMap<String, String> {
        &self.record.labels
    }

    /// The whole object as clients see it.
    pub fn json(&self) -> Bytes {
        let mut out = Vec::with_capacity(self.value.len() + VERSION_BYTES);
        self.write(&mut out);
        out.into()
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.write_at(self.revision, out);
    }

    /// As if last changed at `revision`: what a deletion's event says of the object.
    pub(crate) fn write_at(&self, revision: Revision, out: &mut Vec<u8>) {
        spliced(&self.value, self.splice, revision, out);
    }

    /// As an item of a list, whose items say neither kind nor version.
    pub(crate) fn write_item(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"metadata":{"#);
        version(self.revision, out);
        out.extend_from_slice(&self.value[self.splice..]);
    }

    /// The object as a DOM for a write, with `resourceVersion`: as [`Self::parse`], but `managedFields` stays the text it is.
    /// Few writes change it much, and as a DOM it would be the largest part of most objects.
    pub(crate) fn draft(&self) -> serde_json::Value {
        let (head, rest) = self.value.split_at(self.splice);
        let Some(list) = rest.strip_prefix(OWNERS) else { return self.parse() };
        let mut first = serde_json::Deserializer::from_slice(list).into_iter::<serde::de::IgnoredAny>();
        let end = first.next().map_or(0, |_| first.byte_offset());
        let (list, after) = list.split_at(end);
        let Ok(list) = std::str::from_utf8(list) else { return self.parse() };
        let without = [head, after.strip_prefix(b",").unwrap_or(after)].concat();
        let mut object: serde_json::Value =
            serde_json::from_slice(&without).expect("only values that were read as JSON before are kept");
        object["metadata"]["managedFields"] = list.into();
        object["metadata"]["resourceVersion"] = self.revision.to_string().into();
        object
    }

    /// The object as a DOM, with `resourceVersion`.
    pub(crate) fn parse(&self) -> serde_json::Value {
        let mut object: serde_json::Value =
            serde_json::from_slice(&self.value).expect("only values that were read as JSON before are kept");
        object["metadata"]["resourceVersion"] = self.revision.to_string().into();
        object
    }
}

/// How the metadata of an object with owners begins.
pub(crate) const OWNERS: &[u8] = br#""managedFields":"#;

/// Room for `"resourceVersion":"18446744073709551615",`.
pub(crate) const VERSION_BYTES: usize = 41;

pub(crate) fn spliced(value: &[u8], splice: usize, revision: Revision, out: &mut Vec<u8>) {
    out.extend_from_slice(&value[..splice]);
    version(revision, out);
    out.extend_from_slice(&value[splice..]);
}

fn version(revision: Revision, out: &mut Vec<u8>) {
    out.extend_from_slice(br#""resourceVersion":""#);
    let mut digits = [0_u8; 20];
    let (mut at, mut rest) = (digits.len(), revision);
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(rest % 10).expect("a digit");
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
    out.extend_from_slice(br#"","#);
}
