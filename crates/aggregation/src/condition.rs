//! The condition `Available` of an APIService.

use corten_meta::{Time, transition_time};
use serde_json::{Value, json};

/// Of the type `Available`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Condition {
    pub(crate) is_available: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Condition {
    /// Does it say what became of a question, and not that there is nobody to ask?
    pub(crate) fn is_of_its_answer(&self) -> bool {
        matches!(self.reason, "Passed" | "FailedDiscoveryCheck")
    }

    /// The APIService with the condition; `None` where it says so already (`SetAPIServiceCondition`).
    pub(crate) fn put_into(&self, object: &Value, now: Time) -> Option<Value> {
        let status = if self.is_available { "True" } else { "False" };
        let mut new = object.clone();
        let mut conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let at = conditions.iter().position(|it| it["type"] == "Available");
        let before = at.map(|it| conditions[it].clone()).unwrap_or_default();
        if before["status"] == status && before["reason"] == self.reason && before["message"] == *self.message {
            return None;
        }
        let since = transition_time(Some(&before), status, now);
        let condition = json!({
            "type": "Available", "status": status, "lastTransitionTime": since,
            "reason": self.reason, "message": self.message,
        });
        match at {
            Some(at) => conditions[at] = condition,
            None => conditions.push(condition),
        }
        new["status"]["conditions"] = conditions.into();
        Some(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_written_once_and_keeps_its_time_while_its_status_stays() {
        let at = Time::from_unix_seconds;
        let failed = |message: &str| Condition {
            is_available: false,
            reason: "FailedDiscoveryCheck",
            message: message.to_owned(),
        };
        let first = failed("a").put_into(&json!({}), at(1_800_000_000)).expect("a change");
        assert_eq!(failed("a").put_into(&first, at(1_800_000_060)), None);
        let second = failed("b").put_into(&first, at(1_800_000_060)).expect("a change");
        let times = |it: &Value| it["status"]["conditions"][0]["lastTransitionTime"].clone();
        assert_eq!(times(&first), times(&second));
        let passed = Condition { is_available: true, reason: "Passed", message: "all checks passed".into() };
        let third = passed.put_into(&second, at(1_800_000_120)).expect("a change");
        assert_ne!(times(&second), times(&third));
        assert_eq!(third["status"]["conditions"].as_array().map(Vec::len), Some(1));
    }
}
