use super::*;

#[test]
fn the_class_of_attributes_changes_once_bound_and_does_not_go_once_applied() {
    let applied = |what: &str| {
        let why = format!("update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil");
        vec![format!("spec.volumeAttributesClassName: Forbidden: {why}")]
    };
    for (phase, current, class, expected) in [
        ("Bound", json!("gold"), json!("silver"), Vec::new()),
        ("Bound", json!(null), json!("silver"), Vec::new()),
        ("Bound", json!(null), json!(null), Vec::new()),
        ("Bound", json!(null), json!(""), Vec::new()),
        ("Bound", json!("gold"), json!(null), applied("nil")),
        ("Bound", json!("gold"), json!(""), applied("empty string")),
        (
            "Pending",
            json!(null),
            json!("silver"),
            vec![format!("spec: Forbidden: {ONLY}\nspec.volumeAttributesClassName: \"gold\" -> \"silver\"")],
        ),
    ] {
        let old = json!({
            "metadata": { "name": "data" },
            "spec": { "volumeName": "pv1", "storageClassName": "a", "volumeAttributesClassName": "gold" },
            "status": { "phase": phase, "currentVolumeAttributesClassName": current },
        });
        let mut new = old.clone();
        new["spec"]["volumeAttributesClassName"] = class.clone();
        let found: Vec<String> =
            PersistentVolumeClaim.validate_update(&new, &old).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{phase} {current} {class}");
    }
}
