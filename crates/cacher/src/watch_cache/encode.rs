//! The one encoding of an object, made when it is written.

use std::collections::BTreeMap;

use bytes::Bytes;
use corten_meta::{Resource, depth};
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use crate::watch_cache::{OWNERS, head};

/// Most objects fit in without growing.
const ROOM: usize = 4096;

/// The object's JSON without `resourceVersion`, beginning with its kind's head, so that the place where
/// `resourceVersion` belongs is known without looking.
pub fn encode(resource: &Resource, object: &Value) -> Bytes {
    let entries = |it| Value::as_object(it).into_iter().flatten().map(|(name, value)| (name.as_str(), value));
    let metadata = &object["metadata"];
    encoded(resource, |out| owners(out, &metadata["managedFields"]), entries(metadata), entries(object))
}

/// As [`encode`], of a text in another order. What is nested in it is not looked at, however deep it goes.
///
/// # Errors
/// The text is no object.
pub fn encode_text(resource: &Resource, json: &[u8]) -> Result<Bytes, serde_json::Error> {
    depth::read(json)?;
    let object: Entries<'_> = serde_json::from_slice(json)?;
    let metadata: Entries<'_> =
        object.get("metadata").map_or(Ok(Entries::new()), |it| serde_json::from_str(it.get()))?;
    let owners = |out: &mut Vec<u8>| {
        if let Some(list) = metadata.get("managedFields").filter(|it| it.get().starts_with('[')) {
            out.extend_from_slice(OWNERS);
            out.extend_from_slice(list.get().as_bytes());
        }
    };
    Ok(encoded(resource, owners, named(&metadata), named(&object)))
}

type Entries<'a> = BTreeMap<String, &'a RawValue>;

fn named<'a>(entries: &'a Entries<'_>) -> impl Iterator<Item = (&'a str, &'a RawValue)> {
    entries.iter().map(|(name, value)| (name.as_str(), *value))
}

fn encoded<'a, V: Serialize + ?Sized + 'a>(
    resource: &Resource,
    owners: impl FnOnce(&mut Vec<u8>),
    metadata: impl Iterator<Item = (&'a str, &'a V)>,
    object: impl Iterator<Item = (&'a str, &'a V)>,
) -> Bytes {
    let mut out = head(resource).into_bytes();
    out.reserve(ROOM);
    let start = out.len();
    owners(&mut out);
    for (name, value) in metadata.filter(|it| !matches!(it.0, "resourceVersion" | "managedFields")) {
        entry(&mut out, start, name, value);
    }
    if out.len() == start {
        // What is put in there ends with a comma.
        entry(&mut out, start, "name", "");
    }
    out.push(b'}');
    for (name, value) in object.filter(|it| !matches!(it.0, "kind" | "apiVersion" | "metadata")) {
        entry(&mut out, 0, name, value);
    }
    out.push(b'}');
    // Kept for as long as the object lives: without the room that was not needed.
    out.into_boxed_slice().into()
}

/// First of all metadata, so that whoever needs the rest finds their end. Between reading and writing they are the text they
/// were stored as: see [`crate::watch_cache::Stored::draft`].
fn owners(out: &mut Vec<u8>, list: &Value) {
    match list {
        Value::String(text) if !text.is_empty() => {
            out.extend_from_slice(OWNERS);
            out.extend_from_slice(text.as_bytes());
        }
        Value::Array(_) => {
            out.extend_from_slice(OWNERS);
            serde_json::to_writer(out, list).expect("writing to memory does not fail");
        }
        _ => {}
    }
}

fn entry(out: &mut Vec<u8>, start: usize, name: &str, value: &(impl Serialize + ?Sized)) {
    if out.len() > start {
        out.push(b',');
    }
    serde_json::to_writer(&mut *out, name).expect("writing to memory does not fail");
    out.push(b':');
    serde_json::to_writer(&mut *out, value).expect("writing to memory does not fail");
}
