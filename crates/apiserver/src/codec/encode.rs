//! The one encoding of an object, made when it is written.

use bytes::Bytes;
use corten_meta::Resource;
use serde_json::Value;

use crate::watch_cache::head;

/// Most objects fit in without growing.
const ROOM: usize = 4096;

/// The object's JSON without `resourceVersion`, beginning with its kind's head, so that the place where
/// `resourceVersion` belongs is known without looking.
pub(crate) fn encode(resource: &Resource, object: &Value) -> Bytes {
    let mut out = head(resource).into_bytes();
    out.reserve(ROOM);
    let start = out.len();
    for (name, value) in object["metadata"].as_object().into_iter().flatten() {
        if name != "resourceVersion" {
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

fn entry(out: &mut Vec<u8>, start: usize, name: &str, value: &Value) {
    if out.len() > start {
        out.push(b',');
    }
    serde_json::to_writer(&mut *out, name).expect("writing to memory does not fail");
    out.push(b':');
    serde_json::to_writer(&mut *out, value).expect("writing to memory does not fail");
}
