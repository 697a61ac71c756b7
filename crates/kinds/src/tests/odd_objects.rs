//! Rows are shown objects of every kind of oddity (others wrote to the store, older releases, patches): none may panic.

use corten_meta::Time;
use serde_json::{Value, json};

use super::golden;
use crate::{KINDS, Kind};

#[test]
fn rows_stand_odd_objects() {
    for kind in KINDS.iter() {
        for odd in [json!(null), json!({}), json!({"spec": null, "status": [], "metadata": "x"}), json!([])] {
            show(kind, &odd);
        }
    }
    let Some(objects) = golden::objects() else { return };
    for (name, bytes) in objects.iter().filter(|it| it.0.ends_with(".json")) {
        let object: Value = serde_json::from_slice(bytes).expect("JSON");
        let (api_version, kind) = (object["apiVersion"].as_str(), object["kind"].as_str());
        let Some(kind) = crate::by_kind(api_version.unwrap_or_default(), kind.unwrap_or_default()) else { continue };
        for replace in [|_: &Value| json!(null), |_: &Value| json!("x"), |_: &Value| json!([]), |_: &Value| json!(-1)] {
            show(kind, &with_leaves(&object, &replace));
        }
        show(kind, &object);
        work(kind, object, name);
    }
}

pub(super) fn show(kind: &Kind, object: &Value) {
    for column in kind.columns.iter() {
        column.cell(object, Time::from_unix_seconds(0));
    }
}

/// All a policy does to an object that fits its type.
pub(super) fn work(kind: &Kind, mut object: Value, name: &str) {
    let old = object.clone();
    if let Some(view) = &kind.view_of {
        (view.to_stored)(&mut object);
    }
    kind.policy.default(&mut object);
    kind.policy.prepare_create(&mut object);
    kind.policy.prepare_update(&mut object, &old);
    for violation in [kind.policy.validate(&object), kind.policy.validate_update(&object, &old)].concat() {
        assert!(!violation.message.is_empty(), "{name}: {violation}");
    }
}

fn with_leaves(value: &Value, replace: &impl Fn(&Value) -> Value) -> Value {
    match value {
        Value::Object(map) => map.iter().map(|(name, it)| (name.clone(), with_leaves(it, replace))).collect(),
        Value::Array(items) => items.iter().map(|it| with_leaves(it, replace)).collect(),
        leaf => replace(leaf),
    }
}
