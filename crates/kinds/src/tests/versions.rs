//! Views: whatever one version can say, the stored one holds, and gives back.

use serde_json::Value;

use super::golden;
use crate::{KINDS, Kind};

#[test]
fn every_view_shows_a_stored_row() {
    for kind in KINDS.iter().filter(|it| it.view_of.is_some()) {
        let stored = kind.stored_row();
        assert!(stored.view_of.is_none() && stored.is_stored(), "{} has no stored row", kind.schema.name());
        assert_eq!(stored.resource.namespaced, kind.resource.namespaced, "{}", kind.schema.name());
        assert!(kind.selectable_fields.len() <= stored.selectable_fields.len(), "{}", kind.schema.name());
        for verb in stored.verbs {
            assert!(kind.allows(*verb), "{} cannot be asked to {}", kind.schema.name(), verb.as_str());
        }
    }
}

#[test]
fn golden_objects_survive_the_stored_form() {
    let Some(objects) = golden::objects() else { return };
    let mut seen = 0;
    for kind in KINDS.iter() {
        let Some(view) = &kind.view_of else { continue };
        let shown = object(&objects, kind);
        let mut stored = shown.clone();
        (view.to_stored)(&mut stored);
        fits(kind.stored_row(), &stored);
        (view.from_stored)(&mut stored);
        // `Convert_autoscaling_HorizontalPodAutoscaler_To_v1_HorizontalPodAutoscaler`: the older version says in
        // an annotation what it has no field for.
        if let Some(annotations) = stored["metadata"]["annotations"].as_object_mut() {
            annotations.retain(|name, _| !name.starts_with("autoscaling.alpha.kubernetes.io/"));
        }
        assert_eq!(stored, shown, "{}", kind.schema.name());

        let stored = object(&objects, kind.stored_row());
        let mut shown = stored.clone();
        (view.from_stored)(&mut shown);
        fits(kind, &shown);
        seen += 1;
    }
    assert!(seen > 0);
}

fn object(objects: &[(String, Vec<u8>)], kind: &Kind) -> Value {
    let group = if kind.resource.group.is_empty() { "core" } else { &kind.resource.group };
    let name = format!("HEAD/{group}.{}.{}.json", kind.resource.version, kind.resource.kind);
    let found = objects.iter().find(|it| it.0 == name).unwrap_or_else(|| panic!("no {name}"));
    serde_json::from_slice(&found.1).expect("JSON")
}

fn fits(kind: &Kind, object: &Value) {
    let findings = corten_schema::check(kind.schema.name(), object);
    assert!(findings.is_empty(), "{}: {findings:?}", kind.schema.name());
}
