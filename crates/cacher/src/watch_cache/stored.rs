//! One object at one revision: the bytes of its JSON without `resourceVersion`, and where that belongs.

use std::{
    any::Any,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use corten_meta::depth::{self, LEVELS_MAX, Read};
use corten_store::Revision;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{converted::Converted, message::Messages, record::Record};

/// Shared by the snapshots, the event log and every answer that is being sent.
#[derive(Debug)]
pub struct Stored {
    /// `namespace/name`, or `name`.
    pub key: Arc<str>,
    pub value: Bytes,
    /// The length of the value's head: `{"kind":..,"apiVersion":..,"metadata":{`.
    pub splice: usize,
    pub revision: Revision,
    pub record: Record,
    /// See [`Stored::projection`].
    pub(super) projected: OnceLock<Arc<dyn Any + Send + Sync>>,
    /// See [`Stored::message`].
    pub(super) messages: Messages,
    /// The object in other versions, where a webhook converts it.
    pub converted: Converted,
}

impl Stored {
    pub(super) fn new(key: Arc<str>, value: Bytes, splice: usize, revision: Revision, record: Record) -> Self {
        Self {
            key,
            value,
            splice,
            revision,
            record,
            projected: OnceLock::new(),
            messages: Messages::default(),
            converted: Converted::default(),
        }
    }

    /// The version it is stored in, without its group.
    pub fn version(&self) -> &str {
        const BETWEEN: &[u8] = br#"","metadata":{"#;
        let head = &self.value[..self.splice.saturating_sub(BETWEEN.len())];
        let start = head.iter().rposition(|it| matches!(it, b'/' | b'"')).map_or(0, |it| it + 1);
        std::str::from_utf8(&head[start..]).unwrap_or_default()
    }

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

    pub fn write(&self, out: &mut Vec<u8>) {
        self.write_at(self.revision, out);
    }

    /// As if last changed at `revision`: what a deletion's event says of the object.
    pub fn write_at(&self, revision: Revision, out: &mut Vec<u8>) {
        spliced(&self.value, self.splice, revision, out);
    }

    /// As an item of a list, whose items say neither kind nor version.
    pub fn write_item(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"metadata":{"#);
        version(self.revision, out);
        out.extend_from_slice(&self.value[self.splice..]);
    }

    /// The object as a DOM for a write, with `resourceVersion`: as [`Self::parse`], but `managedFields` stays the text it is.
    /// Few writes change it much, and as a DOM it would be the largest part of most objects.
    pub fn draft(&self) -> Value {
        self.draft_as_far_as_it_goes().value
    }

    /// As [`Self::draft`]; says whether all of the object is in it.
    pub fn draft_as_far_as_it_goes(&self) -> Read {
        let (head, rest) = self.value.split_at(self.splice);
        let Some(list) = rest.strip_prefix(OWNERS) else { return self.read(&self.value) };
        let Some((end, depth)) = depth::of_first(list) else { return self.read(&self.value) };
        let (list, after) = list.split_at(end);
        let Ok(list) = std::str::from_utf8(list) else { return self.read(&self.value) };
        let mut draft = self.read(&[head, after.strip_prefix(b",").unwrap_or(after)].concat());
        // Owners that no write would be allowed to keep are nobody's loss.
        if depth + AROUND_OWNERS <= LEVELS_MAX {
            draft.value["metadata"]["managedFields"] = list.into();
        }
        draft
    }

    /// What `T` reads of the object; its default where it reads nothing. Kept, so that whatever is looked up for every write is
    /// read once. Of several `T` the first is kept.
    pub fn projection<T: DeserializeOwned + Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let read = || Arc::new(serde_json::from_slice::<T>(&self.value).unwrap_or_default());
        let kept = self.projected.get_or_init(|| read());
        kept.clone().downcast().unwrap_or_else(|_| read())
    }

    /// The object as a DOM, with `resourceVersion`. What an earlier release stored may be nested deeper than a DOM may be: then
    /// null stands for what is too deep.
    pub fn parse(&self) -> Value {
        self.read(&self.value).value
    }

    fn read(&self, json: &[u8]) -> Read {
        let mut read = depth::read(json).expect("only values that were read as JSON before are kept");
        read.value["metadata"]["resourceVersion"] = self.revision.to_string().into();
        read
    }
}

/// Is the text of `managedFields` within the bound where it stands, in the metadata of an object?
pub fn owners_fit(list: &str) -> bool {
    depth::of_text(list.as_bytes()) + AROUND_OWNERS <= LEVELS_MAX
}

/// The object, and its metadata.
const AROUND_OWNERS: usize = 2;

/// How the metadata of an object with owners begins.
pub const OWNERS: &[u8] = br#""managedFields":"#;

/// Room for `"resourceVersion":"18446744073709551615",`.
pub(crate) const VERSION_BYTES: usize = 41;

pub fn spliced(value: &[u8], splice: usize, revision: Revision, out: &mut Vec<u8>) {
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
