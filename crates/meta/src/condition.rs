//! What all conditions of objects have in common.

use serde_json::Value;

use crate::Time;

/// `lastTransitionTime` of a condition that has this status now, where it was `old` before: it changes with the status alone
/// (`meta.SetStatusCondition`). One that did not say when has changed now.
pub fn transition_time(old: Option<&Value>, status: &str, now: Time) -> Value {
    let since = old.filter(|it| it["status"] == status).map(|it| &it["lastTransitionTime"]);
    since.filter(|it| !it.is_null()).cloned().unwrap_or_else(|| Value::String(now.to_string()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_changes_with_the_status_alone() {
        let now = Time::from_unix_seconds(60);
        let old = json!({ "status": "True", "lastTransitionTime": "1970-01-01T00:00:01Z" });
        for (old, status, expected) in [
            (Some(&old), "True", "1970-01-01T00:00:01Z"),
            (Some(&old), "False", "1970-01-01T00:01:00Z"),
            (Some(&json!({ "status": "True" })), "True", "1970-01-01T00:01:00Z"),
            (None, "True", "1970-01-01T00:01:00Z"),
        ] {
            assert_eq!(transition_time(old, status, now), expected, "{old:?} {status}");
        }
    }
}
