//! The one encoding of an object, made when it is written.

use bytes::Bytes;
use corten_meta::Resource;
use serde_json::Value;

use crate::watch_cache::{OWNERS, head};

/// Most objects fit in without growing.
const ROOM: usize = 4096;

/// The object's JSON without `resourceVersion`, beginning with its kind's head, so that the place where
/// `resourceVersion` belongs is known without looking.
pub(crate) fn encode(resource: &Resource, object: &Value) -> Bytes {
    let mut out = head(resource).into_bytes();
    out.reserve(ROOM);
    let start = out.len();
    owners(&mut out, &object["metadata"]["managedFields"]);
    for (name, value) in object["metadata"].as_object().into_iter().flatten() {
        if !matches!(&**name, "resourceVersion" | "managedFields") {
            entry(&mut out, start, name, value);
        }
    }
    if out.len() == start {
        // What is put in there ends with a comma.
        entry(&mut out, start, "name", &Value::String(String::new()));
    }
    out.push(b'}');
    for (name, value) in object.as_object().into_iter().flatten() {
        if !matches!(&**name, "kind" | "apiVersion" | "metadata") {
            entry(&mut out, 0, name, value);
        }
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

fn entry(out: &mut Vec<u8>, start: usize, name: &str, value: &Value) {
    if out.len() > start {
        out.push(b',');
    }
    serde_json::to_writer(&mut *out, name).expect("writing to memory does not fail");
    out.push(b':');
    serde_json::to_writer(&mut *out, value).expect("writing to memory does not fail");
}
