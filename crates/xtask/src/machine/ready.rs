//! What is not Ready yet, of a list of Pods or nodes.
//!
//! After a boot the API shows what was true before it, until the kubelet has looked. So a Pod counts as Ready only when its
//! containers have started since.

use serde_json::Value;

/// Its name; `None` where it is Ready and stays. `booted` is when its machine started, written as the API writes times.
pub(crate) fn not_ready<'a>(object: &'a Value, booted: &str) -> Option<&'a str> {
    let items = |of: &'a Value| of.as_array().map(Vec::as_slice).unwrap_or_default();
    let status = &object["status"];
    let is_ready = items(&status["conditions"]).iter().any(|it| it["type"] == "Ready" && it["status"] == "True");
    let is_ending = !object["metadata"]["deletionTimestamp"].is_null();
    // Times of this form are in order when their texts are.
    let has_started = |it: &Value| it["state"]["running"]["startedAt"].as_str().is_some_and(|it| it >= booted);
    let has_started = items(&status["containerStatuses"]).iter().all(has_started);
    if is_ready && has_started && !is_ending { None } else { object["metadata"]["name"].as_str() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BOOTED: &str = "2026-01-02T03:04:05Z";

    fn pod(ready: &str, started: &str) -> Value {
        let conditions = json!([{"type": "PodScheduled", "status": "True"}, {"type": "Ready", "status": ready}]);
        let containers = json!([{"state": {"running": {"startedAt": started}}}]);
        json!({"metadata": {"name": "a"}, "status": {"conditions": conditions, "containerStatuses": containers}})
    }

    #[test]
    fn a_pod_is_waited_for_until_it_is_ready() {
        assert_eq!(not_ready(&pod("True", "2026-01-02T03:04:05Z"), BOOTED), None);
        assert_eq!(not_ready(&pod("False", "2026-01-02T03:04:05Z"), BOOTED), Some("a"));
        assert_eq!(not_ready(&json!({"metadata": {"name": "a"}}), BOOTED), Some("a"));
    }

    #[test]
    fn what_was_true_before_the_boot_does_not_count() {
        assert_eq!(not_ready(&pod("True", "2026-01-02T03:04:04Z"), BOOTED), Some("a"));
    }

    #[test]
    fn a_pod_that_ends_is_waited_for() {
        let mut ending = pod("True", BOOTED);
        ending["metadata"]["deletionTimestamp"] = "2026-01-02T03:05:00Z".into();
        assert_eq!(not_ready(&ending, BOOTED), Some("a"));
    }

    #[test]
    fn a_node_has_no_containers() {
        let node = json!({"metadata": {"name": "a"}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        assert_eq!(not_ready(&node, BOOTED), None);
    }
}
