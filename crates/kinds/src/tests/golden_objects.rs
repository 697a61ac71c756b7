//! Kubernetes's own objects with every field set: defaulting leaves nothing to default, and every rule can be asked.

use serde_json::{Value, json};

use super::golden;
use crate::{KINDS, Kind};

/// Of what rules say that compare the new object with the old one.
const CHANGED: [&str; 4] = ["immutable", "may not change", "must not be changed", "updates to"];

#[test]
fn defaults_are_whole_and_fit_the_type() {
    let Some(objects) = golden::objects() else { return };
    let mut seen = 0;
    for kind in KINDS.iter().filter(|it| it.view_of.is_none()) {
        let Some(mut object) = object(&objects, kind) else { continue };
        seen += 1;
        kind.policy.default(&mut object);
        let once = object.clone();
        kind.policy.default(&mut object);
        assert_eq!(once, object, "defaulting a {} again changes it", kind.resource.kind);
        let findings = corten_schema::check(kind.schema.name(), &object);
        assert!(findings.is_empty(), "defaults of {} do not fit the type: {findings:?}", kind.resource.kind);
        let stored = object.clone();
        kind.policy.prepare_create(&mut object);
        kind.policy.validate(&object);
        kind.policy.prepare_update(&mut object, &stored);
        kind.policy.prepare_status_update(&mut object, &stored);
        // Updates of some kinds are judged by the rules for creates once more (upstream's `ValidateRoleUpdate` calls
        // `ValidateRole`), and these objects break most of them.
        let mut unchanged = kind.policy.validate_update(&stored, &stored);
        if !kind.policy.validate(&stored).is_empty() {
            unchanged.retain(|it| CHANGED.iter().any(|word| it.message.contains(word)));
        }
        assert!(unchanged.is_empty(), "an update of a {} that changes nothing: {unchanged:?}", kind.resource.kind);
        kind.policy.validate_status_update(&stored, &stored);
        kind.policy.warnings(&stored, None);
    }
    assert!(seen > 40, "only {seen} golden objects were found");
}

#[test]
fn defaults_fill_in_the_status_only_where_the_kind_says_so() {
    let Some(objects) = golden::objects() else { return };
    for kind in KINDS.iter().filter(|it| it.view_of.is_none() && !it.policy.defaults_status()) {
        let Some(whole) = object(&objects, kind) else { continue };
        for part in ["spec", ""] {
            let mut object = whole.clone();
            object.as_object_mut().expect("an object").shift_remove(part);
            // With nothing in it, all that can be filled in is.
            for status in [whole["status"].clone(), json!({}), Value::Null] {
                object["status"] = status.clone();
                kind.policy.default(&mut object);
                assert_eq!(object["status"], status, "defaulting a {} changes its status", kind.resource.kind);
            }
        }
    }
}

/// Kinds that are never written have none.
fn object(objects: &[(String, Vec<u8>)], kind: &Kind) -> Option<Value> {
    let group = if kind.resource.group.is_empty() { "core" } else { &kind.resource.group };
    let name = format!("HEAD/{group}.{}.{}.json", kind.resource.version, kind.resource.kind);
    let (_, bytes) = objects.iter().find(|it| it.0 == name)?;
    Some(serde_json::from_slice(bytes).expect("JSON"))
}
