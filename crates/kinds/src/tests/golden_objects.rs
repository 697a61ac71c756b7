//! Kubernetes's own objects with every field set: defaulting leaves nothing to default, and every rule can be asked.

use serde_json::Value;

use super::golden;
use crate::{KINDS, Kind};

#[test]
fn defaults_are_whole_and_fit_the_type() {
    let Some(objects) = golden::objects() else { return };
    let mut seen = 0;
    for kind in KINDS.iter().filter(|it| it.view_of.is_none()) {
        let Some(mut object) = object(&objects, kind) else { continue };
        seen += 1;
        // ValidateNodeUpdate checks taints whether they change or not, and the object's have an effect that there is not.
        if let Some(effect) = object.pointer_mut("/spec/taints/0/effect").filter(|_| kind.resource.kind == "Node") {
            *effect = "NoSchedule".into();
        }
        kind.policy.default(&mut object);
        let once = object.clone();
        kind.policy.default(&mut object);
        assert_eq!(once, object, "defaulting a {} again changes it", kind.resource.kind);
        let findings = corten_schema::check(kind.schema, &object);
        assert!(findings.is_empty(), "defaults of {} do not fit the type: {findings:?}", kind.resource.kind);
        let stored = object.clone();
        kind.policy.prepare_create(&mut object);
        kind.policy.validate(&object);
        kind.policy.prepare_update(&mut object, &stored);
        kind.policy.prepare_status_update(&mut object, &stored);
        let unchanged = kind.policy.validate_update(&stored, &stored);
        assert!(unchanged.is_empty(), "an update of a {} that changes nothing: {unchanged:?}", kind.resource.kind);
        kind.policy.validate_status_update(&stored, &stored);
        kind.policy.warnings(&stored, None);
    }
    assert!(seen > 40, "only {seen} golden objects were found");
}

/// Kinds that are never written have none.
fn object(objects: &[(String, Vec<u8>)], kind: &Kind) -> Option<Value> {
    let group = if kind.resource.group.is_empty() { "core" } else { &kind.resource.group };
    let name = format!("HEAD/{group}.{}.{}.json", kind.resource.version, kind.resource.kind);
    let (_, bytes) = objects.iter().find(|it| it.0 == name)?;
    Some(serde_json::from_slice(bytes).expect("JSON"))
}
