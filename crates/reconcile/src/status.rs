//! Turning a status that should be into the patch that makes it so.

use corten_meta::{Key, ObjectMeta, Resource};

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::Effect;

/// A patch of the `status` members that differ; nothing where none does. The uid keeps it from a namesake.
///
/// The first status says everything, zeros too: some counts have no `omitempty` in Kubernetes.
pub fn status_patch<T: Serialize + Default + PartialEq>(
    resource: Resource,
    meta: &ObjectMeta,
    old: &T,
    new: &T,
) -> Option<Effect> {
    let is_first = *old == T::default() && old != new;
    let changes = if is_first { object(new) } else { changed_members(&object(old), &object(new)) };
    if changes.is_empty() {
        return None;
    }
    let patch = json!({ "metadata": { "uid": meta.uid }, "status": changes });
    Some(Effect::Patch { resource, key: meta.key(), subresource: Some("status"), patch })
}

/// A patch of an object's main resource that fails if the object is no longer the one that was seen.
pub fn exact_patch(resource: Resource, meta: &ObjectMeta, mut patch: Value) -> Effect {
    patch["metadata"]["uid"] = json!(meta.uid);
    patch["metadata"]["resourceVersion"] = json!(meta.resource_version);
    Effect::Patch { resource, key: Key::new(&*meta.namespace, &*meta.name), subresource: None, patch }
}

fn object<T: Serialize>(status: &T) -> Map<String, Value> {
    match serde_json::to_value(status) {
        Ok(Value::Object(map)) => map,
        _ => unreachable!("a status is a struct of plain values"),
    }
}

/// A merge patch cannot put one object in another's place: what only the old one has must be named.
fn changed_members(old: &Map<String, Value>, new: &Map<String, Value>) -> Map<String, Value> {
    let gone = old.keys().filter(|it| !new.contains_key(*it)).map(|it| (it.clone(), Value::Null));
    let changed = new.iter().filter(|(name, value)| old.get(*name) != Some(value));
    let changed = changed.map(|(name, value)| {
        let change = match (old.get(name), value) {
            (Some(Value::Object(old)), Value::Object(new)) => Value::Object(changed_members(old, new)),
            _ => value.clone(),
        };
        (name.clone(), change)
    });
    changed.chain(gone).collect()
}
