use serde_json::json;

use super::*;

#[test]
fn a_condition_tells_by_its_type_and_its_kind() {
    let autoscaler = "horizontalpodautoscaler";
    for (kind, r#type, status, reason, is_told) in [
        (autoscaler, "ScalingActive", "False", "FailedGetResourceMetric", true),
        (autoscaler, "ScalingActive", "False", "ScalingDisabled", false),
        (autoscaler, "AbleToScale", "False", "FailedGetScale", true),
        (autoscaler, "AbleToScale", "True", "ReadyForNewScale", false),
        (autoscaler, "ScalingLimited", "True", "TooManyReplicas", false),
        ("apiservice", "Available", "Unknown", "", true),
        ("customresourcedefinition", "NamesAccepted", "False", "ListKindConflict", true),
        ("customresourcedefinition", "KubernetesAPIApprovalPolicyConformant", "False", "UnapprovedAnnotation", false),
        ("customresourcedefinition", "NonStructuralSchema", "True", "Violations", true),
        ("deployment", "Available", "False", "MinimumReplicasUnavailable", false),
        ("flowschema", "Dangling", "True", "NotFound", true),
        ("flowschema", "Dangling", "False", "Found", false),
        ("service", "corten.dev/PoolAddresses", "False", "PoolExhausted", true),
        ("service", "corten.dev/PoolAddresses", "True", "Assigned", false),
        ("servicecidr", "Ready", "False", "", true),
        ("storageversionmigration", "Failed", "True", "StorageVersionMigrationFailed", true),
    ] {
        let kind = corten_kinds::by_name(kind).expect("a kind");
        let object = json!({"status": {"conditions": [{"type": r#type, "status": status, "reason": reason}]}});
        assert_eq!(bad(kind, &object).count(), usize::from(is_told), "{} {type} {status}", kind.singular);
        let mut found = Findings::default();
        waits(kind, &object, &mut found);
        assert!(found.waits.iter().all(|(_, it)| !it.reason.is_empty() && !it.message.ends_with(": ")));
    }
}

#[test]
fn no_condition_is_older_than_its_object() {
    let kind = corten_kinds::by_name("apiservice").expect("a kind");
    let object = json!({"metadata": {"creationTimestamp": "2026-11-20T12:00:00Z"}, "status": {"conditions": [
        {"type": "Available", "status": "Unknown", "lastTransitionTime": "1970-01-01T00:00:00Z"}]}});
    let mut found = Findings::default();
    waits(kind, &object, &mut found);
    assert_eq!(found.waits[0].1.since, time(&json!("2026-11-20T12:00:00Z")));
}

#[test]
fn a_growth_that_has_no_room_is_not_refused_for_good() {
    for (code, expected) in [("OutOfRange", Actor::Author), ("ResourceExhausted", Actor::Operator)] {
        let kind = corten_kinds::by_name("persistentvolumeclaim").expect("a kind");
        let message = format!("rpc error: code = {code} desc = no");
        let object = json!({"status": {
            "allocatedResourceStatuses": {"storage": "ControllerResizeInfeasible"},
            "conditions": [{"type": "ControllerResizeError", "status": "True", "message": message}]}});
        let mut found = Findings::default();
        waits(kind, &object, &mut found);
        assert_eq!(found.waits[0].1.actor, expected, "{code}");
    }
}

#[test]
fn every_kind_read_elsewhere_is_one() {
    assert!(GOOD.is_sorted() && BAD.is_sorted() && READ_ELSEWHERE.is_sorted());
    for kind in READ_ELSEWHERE {
        assert_eq!(corten_kinds::by_name(kind).map(|it| &*it.singular), Some(kind));
    }
}
