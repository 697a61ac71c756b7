//! Shows stored objects in the version that was asked for, and takes objects of that version into the stored one.
//!
//! Where both versions have the same fields, only the head of the stored bytes is another one: nothing is read or built.

use bytes::Bytes;
use corten_kinds::{Kind, ViewOf};
use corten_meta::depth;
use corten_store::Revision;
use serde_json::Value;

use crate::watch_cache::{EventType, Stored, head, spliced};

/// The object as the store has it.
pub fn to_stored(asked: &Kind, object: &mut Value) {
    let Some(view) = &asked.view_of else { return };
    (view.to_stored)(object);
    identify(object, &view.stored.kind, view.stored.api_version());
}

/// The stored object as `asked` shows it.
pub fn from_stored(asked: &Kind, object: &mut Value) {
    let Some(view) = &asked.view_of else { return };
    (view.from_stored)(object);
    asked.schema.complete(object);
    identify(object, &asked.resource.kind, asked.resource.api_version());
}

fn identify(object: &mut Value, kind: &str, api_version: String) {
    object["kind"] = kind.into();
    object["apiVersion"] = api_version.into();
}

/// A whole stored object's JSON as `asked` shows it.
pub fn shown(asked: &Kind, json: Bytes) -> Bytes {
    let Some(view) = &asked.view_of else { return json };
    let stored_head = head(&view.stored);
    if view.same_fields && json.starts_with(stored_head.as_bytes()) {
        let mut out = head(&asked.resource).into_bytes();
        out.extend_from_slice(&json[stored_head.len()..]);
        return out.into();
    }
    let mut object = depth::read(&json).expect("what is stored is JSON").value;
    from_stored(asked, &mut object);
    object.to_string().into()
}

/// As [`Stored::write_at`], in the asked form.
pub fn write(asked: &Kind, object: &Stored, revision: Revision, out: &mut Vec<u8>) {
    match &asked.view_of {
        None => object.write_at(revision, out),
        Some(ViewOf { same_fields: true, .. }) => {
            out.extend_from_slice(head(&asked.resource).as_bytes());
            spliced(&object.value()[object.splice..], 0, revision, out);
        }
        Some(_) => write_value(&converted(asked, object, revision), out),
    }
}

/// As [`Stored::write_item`], in the asked form.
pub fn write_item(asked: &Kind, object: &Stored, out: &mut Vec<u8>) {
    match &asked.view_of {
        None | Some(ViewOf { same_fields: true, .. }) => object.write_item(out),
        Some(_) => {
            let mut item = converted(asked, object, object.revision);
            if let Some(item) = item.as_object_mut() {
                item.shift_remove("kind");
                item.shift_remove("apiVersion");
            }
            write_value(&item, out);
        }
    }
}

/// An event's frame in the asked form.
pub fn write_frame(asked: &Kind, seen: EventType, subject: &Stored, revision: Revision, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"type":""#);
    out.extend_from_slice(seen.as_str().as_bytes());
    out.extend_from_slice(br#"","object":"#);
    write(asked, subject, revision, out);
    out.extend_from_slice(b"}\n");
}

fn converted(asked: &Kind, object: &Stored, revision: Revision) -> Value {
    let mut value = object.parse();
    value["metadata"]["resourceVersion"] = revision.to_string().into();
    from_stored(asked, &mut value);
    value
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("writing to memory does not fail");
}
