//! Whole bodies of answers: the prefix, the envelope that names the kind, and in it an object, a list or an event.

use serde_json::Value;

use super::{
    MAGIC, encode, type_of,
    wire::{Payload, Reader, Writer, put_varint, varint_len},
};

/// The number of `resourceVersion` in ObjectMeta.
const VERSION: u32 = 6;
/// Of an envelope: TypeMeta, the object, its content's encoding and type, which are always those of plain protobuf.
const TYPE_META: u32 = 1;
const RAW: u32 = 2;
pub(super) const ENVELOPE_TAIL: [u8; 4] = [3 << 3 | 2, 0, 4 << 3 | 2, 0];
/// The tag of metadata in every object and list, and that of the items in a list.
const METADATA: u8 = 1 << 3 | 2;
const ITEMS: u8 = 2 << 3 | 2;

/// An object without `resourceVersion`, which is put in when it is sent.
#[derive(Debug)]
pub struct Message {
    /// What follows the metadata.
    rest: Box<[u8]>,
    /// The metadata before and after the version.
    before: Box<[u8]>,
    after: Box<[u8]>,
}

impl Message {
    /// `None` where protobuf has no such type.
    pub fn of(type_name: &str, object: &Value) -> Option<Self> {
        let of = crate::find(type_name).filter(|it| it.has_protobuf())?;
        let mut out = Writer::default();
        encode::message(of, object, &mut out);
        let mut fields = Reader(&out.0);
        let Ok(Some((1, Payload::Bytes(metadata)))) = fields.next() else { return None };
        Self::parts(metadata, fields.0)
    }

    /// `PartialObjectMetadata`, whatever the object is.
    pub fn of_metadata(object: &Value) -> Self {
        let of = crate::find("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta").expect("the table has it");
        let mut out = Writer::default();
        encode::message(of, &object["metadata"], &mut out);
        Self::parts(&out.0, &[]).expect("what was just written can be read")
    }

    /// The same object's metadata alone.
    pub fn metadata(&self) -> Self {
        Self { rest: Box::default(), before: self.before.clone(), after: self.after.clone() }
    }

    fn parts(metadata: &[u8], rest: &[u8]) -> Option<Self> {
        let mut fields = Reader(metadata);
        loop {
            let place = metadata.len() - fields.0.len();
            if fields.next().ok()??.0 == VERSION {
                return Some(Self { rest: rest.into(), before: metadata[..place].into(), after: fields.0.into() });
            }
        }
    }

    fn metadata_len(&self, revision: &str) -> usize {
        self.before.len() + field_len(revision.len()) + self.after.len()
    }

    /// How much [`Self::write`] writes.
    pub fn len(&self, revision: &str) -> usize {
        field_len(self.metadata_len(revision)) + self.rest.len()
    }

    /// How much [`put_item`] writes.
    pub fn item_len(&self, revision: &str) -> usize {
        field_len(self.len(revision))
    }

    /// As of this revision.
    pub fn write(&self, revision: &str, out: &mut Vec<u8>) {
        out.push(METADATA);
        put_varint(out, self.metadata_len(revision) as u64);
        out.extend_from_slice(&self.before);
        out.push(u8::try_from(VERSION << 3 | 2).expect("a small number"));
        put_varint(out, revision.len() as u64);
        out.extend_from_slice(revision.as_bytes());
        out.extend_from_slice(&self.after);
        out.extend_from_slice(&self.rest);
    }
}

/// A tag of one byte, the length, the content.
fn field_len(content: usize) -> usize {
    1 + varint_len(content as u64) + content
}

/// The body of an object.
pub fn body(api_version: &str, kind: &str, object: &Message, revision: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(object.len(revision) + api_version.len() + kind.len() + 32);
    envelope(api_version, kind, object.len(revision), &mut out);
    object.write(revision, &mut out);
    out.extend_from_slice(&ENVELOPE_TAIL);
    out
}

/// How the body of a list begins whose items, as [`put_item`] writes them, are `items` bytes long.
pub fn list_head(api_version: &str, kind: &str, metadata: &Value, items: usize) -> Vec<u8> {
    let mut list = Writer::default();
    let of = crate::find("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta").expect("the table has it");
    list.nested(1, |out| encode::message(of, metadata, out));
    let mut out = Vec::new();
    envelope(api_version, kind, list.0.len() + items, &mut out);
    out.extend_from_slice(&list.0);
    out
}

/// Writes an item of a list.
pub fn put_item(object: &Message, revision: &str, out: &mut Vec<u8>) {
    out.push(ITEMS);
    put_varint(out, object.len(revision) as u64);
    object.write(revision, out);
}

/// How the body of a list ends.
pub fn list_tail() -> &'static [u8] {
    &ENVELOPE_TAIL
}

/// The body of what is no stored object: a Status, a review, a list that is short. `None` where protobuf has no such type.
pub fn whole(object: &Value) -> Option<Vec<u8>> {
    let text = |name: &str| object[name].as_str();
    let kind = text("kind")?;
    // The list of versions has none of its own.
    let api_version = text("apiVersion").or((kind == "APIVersions").then_some("v1"))?;
    let mut content = Writer::default();
    if put_object(api_version, kind, object, &mut content).is_none() {
        let item = kind.strip_suffix("List")?;
        // An empty list, too, is of a kind that protobuf has, or none.
        put_object(api_version, item, &Value::Null, &mut Writer::default())?;
        let list = crate::find("io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta")?;
        content.nested(1, |out| encode::message(list, &object["metadata"], out));
        for object in object["items"].as_array().into_iter().flatten() {
            let mut message = Writer::default();
            put_object(api_version, item, object, &mut message)?;
            content.bytes(2, &message.0);
        }
    }
    let mut out = Vec::with_capacity(content.0.len() + 64);
    envelope(api_version, kind, content.0.len(), &mut out);
    out.extend_from_slice(&content.0);
    out.extend_from_slice(&ENVELOPE_TAIL);
    Some(out)
}

fn put_object(api_version: &str, kind: &str, object: &Value, out: &mut Writer) -> Option<()> {
    if (api_version, kind) == ("meta.k8s.io/v1", "PartialObjectMetadata") {
        let of = crate::find("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")?;
        out.nested(1, |out| encode::message(of, &object["metadata"], out));
        return Some(());
    }
    let of = type_of(api_version, kind).filter(|it| it.has_protobuf())?;
    encode::message(of, object, out);
    Some(())
}

/// An event of a watch: its length in four bytes, its type, and the body of its object.
pub fn event(event_type: &str, body: &[u8]) -> Vec<u8> {
    let mut event = Writer(vec![0; 4]);
    event.bytes(1, event_type.as_bytes());
    event.nested(2, |out| out.bytes(1, body));
    let length = u32::try_from(event.0.len() - 4).expect("an object is smaller than the largest message");
    event.0[..4].copy_from_slice(&length.to_be_bytes());
    event.0
}

pub(super) fn envelope(api_version: &str, kind: &str, content: usize, out: &mut Vec<u8>) {
    let mut head = Writer(MAGIC.to_vec());
    head.nested(TYPE_META, |out| {
        out.bytes(1, api_version.as_bytes());
        out.bytes(2, kind.as_bytes());
    });
    out.extend_from_slice(&head.0);
    out.push(u8::try_from(RAW << 3 | 2).expect("a small number"));
    put_varint(out, content as u64);
}
