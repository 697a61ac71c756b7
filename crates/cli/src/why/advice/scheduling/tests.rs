use super::*;

#[test]
fn a_taint_that_is_tolerated_is_not_blamed() {
    let node = json!({"spec": {"taints": [
        {"key": "soft", "effect": "PreferNoSchedule"},
        {"key": "drained", "value": "yes", "effect": "NoExecute"},
        {"key": "speed", "value": "7", "effect": "NoSchedule"},
    ]}});
    let drained = json!({"key": "drained", "operator": "Exists", "effect": "NoExecute"});
    for (tolerations, blamed) in [
        (json!([]), Some("drained")),
        (json!([{"key": "drained", "operator": "Exists", "effect": "NoSchedule"}]), Some("drained")),
        (json!([drained]), Some("speed")),
        (json!([drained, {"key": "speed", "operator": "Gt", "value": "9"}]), Some("speed")),
        (json!([drained, {"key": "speed", "operator": "Gt", "value": "5"}]), None),
        (json!([{"operator": "Exists"}]), None),
    ] {
        let pod = json!({"spec": {"tolerations": tolerations}});
        let found = untolerated(&pod, &node).map(|it| text(it, "/key"));
        assert_eq!(found, blamed, "{tolerations}");
    }
}
