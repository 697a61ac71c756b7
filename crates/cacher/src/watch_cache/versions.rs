//! Shows stored objects in the version that was asked for, and takes objects of that version into the stored one.
//!
//! Where both versions have the same fields, only the head of the stored bytes is another one: nothing is read or built.

use bytes::Bytes;
use corten_kinds::{Kind, Schema, Versions, ViewOf};
use corten_meta::depth;
use corten_store::Revision;
use serde_json::Value;

use super::{EventType, Stored, head, spliced, stored::VERSION_BYTES};

/// How an object gets from the version it is stored in to the one that was asked for.
enum VersionStep {
    AsItIs,
    /// Only the head is another one.
    OtherHead,
    OtherFields,
}

/// Of a custom resource that a webhook converts, the object is in the asked version already, or nobody could show it in that.
fn way(asked: &Kind, object: &Stored) -> VersionStep {
    match (&asked.versions, &asked.view_of) {
        (Some(versions), _) => match object.version() {
            version if *version == *asked.resource.version => VersionStep::AsItIs,
            version if versions.are_alike(version, &asked.resource.version) => VersionStep::OtherHead,
            _ => VersionStep::OtherFields,
        },
        (None, None) => VersionStep::AsItIs,
        (None, Some(ViewOf { same_fields: true, .. })) => VersionStep::OtherHead,
        (None, Some(_)) => VersionStep::OtherFields,
    }
}

/// Must the object's webhook be asked before it can be shown in this version?
pub fn needs_webhook(asked: &Kind, object: &Stored) -> bool {
    asked.conversion_webhook().is_some() && *object.version() != *asked.resource.version
}

/// The object as the store has it. A custom resource stays in the version it is in: see [`to_storage`].
pub fn to_stored(asked: &Kind, object: &mut Value) {
    let Some(view) = asked.view_of.as_ref().filter(|_| asked.versions.is_none()) else { return };
    (view.to_stored)(object);
    identify(object, &view.stored.kind, view.stored.api_version());
}

/// Is [`from_stored`] nothing to be done, and no webhook to be asked?
pub fn is_shown_as_it_is(asked: &Kind, object: &Value) -> bool {
    match asked.versions {
        Some(_) => object["apiVersion"] == asked.resource.api_version(),
        None => asked.view_of.is_none(),
    }
}

/// The stored object as `asked` shows it. One whose webhook must be asked is converted before.
pub fn from_stored(asked: &Kind, object: &mut Value) {
    if asked.versions.is_some() {
        return in_version(asked, object);
    }
    let Some(view) = &asked.view_of else { return };
    (view.from_stored)(object);
    asked.schema.complete(object);
    identify(object, &asked.resource.kind, asked.resource.api_version());
}

/// A custom resource in the version that it is written in, where no webhook converts it.
pub fn to_storage(versions: &Versions, object: &mut Value) {
    let storage = versions.storage();
    if object["apiVersion"] != storage.resource.api_version() {
        storage.schema.structural.prune(object);
        identify(object, &storage.resource.kind, storage.resource.api_version());
    }
}

/// Conversion by `None` changes the head alone; what the version shown does not know is left out (schemaCoercingConverter).
fn in_version(asked: &Kind, object: &mut Value) {
    let (resource, by_webhook) = (&asked.resource, asked.conversion_webhook().is_some());
    let api_version = resource.api_version();
    if object["apiVersion"] == api_version {
        return;
    }
    debug_assert!(!by_webhook, "who shows {resource} has its webhook convert it before");
    if let Schema::Structural(schema) = &asked.schema {
        schema.structural.prune(object);
    }
    identify(object, &resource.kind, api_version);
}

fn identify(object: &mut Value, kind: &str, api_version: String) {
    object["kind"] = kind.into();
    object["apiVersion"] = api_version.into();
}

/// A whole stored object's JSON as `asked` shows it; that of a custom resource is in its version already.
pub fn shown(asked: &Kind, json: Bytes) -> Bytes {
    let Some(view) = asked.view_of.as_ref().filter(|_| asked.versions.is_none()) else { return json };
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

/// The whole object in the asked form.
pub fn json(asked: &Kind, object: &Stored) -> Bytes {
    let mut out = Vec::with_capacity(object.value.len() + 2 * VERSION_BYTES);
    write(asked, object, object.revision, &mut out);
    out.into()
}

/// As [`Stored::write_at`], in the asked form.
pub fn write(asked: &Kind, object: &Stored, revision: Revision, out: &mut Vec<u8>) {
    match way(asked, object) {
        VersionStep::AsItIs => object.write_at(revision, out),
        VersionStep::OtherHead => {
            out.extend_from_slice(head(&asked.resource).as_bytes());
            spliced(&object.value()[object.splice..], 0, revision, out);
        }
        VersionStep::OtherFields => write_value(&converted(asked, object, revision), out),
    }
}

/// As [`Stored::write_item`], in the asked form. A custom resource says in lists, too, what it is: clients in Go fill that in for
/// others, who read what is there (`unstructured.UnstructuredList`).
pub fn write_item(asked: &Kind, object: &Stored, out: &mut Vec<u8>) {
    if asked.is_custom() {
        return write(asked, object, object.revision, out);
    }
    match way(asked, object) {
        VersionStep::AsItIs | VersionStep::OtherHead => object.write_item(out),
        VersionStep::OtherFields => {
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
