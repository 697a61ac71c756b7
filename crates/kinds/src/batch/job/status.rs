//! What the status of a Job may say: an end is final, and comes with its time.

use std::collections::BTreeSet;

use corten_schema::Cursor;
use corten_validation::rules;
use serde_json::Value;

pub(super) fn validate(job: Cursor<'_>, old: &Value) {
    let status = job.at("status");
    rules::counts(status, &["active", "succeeded", "failed", "ready", "terminating"]);
    let holds = |of: &Value, kind: &str| {
        let conditions = of["conditions"].as_array().into_iter().flatten();
        conditions.filter(|it| it["type"] == kind).any(|it| it["status"] == "True")
    };
    let (complete, failed) = (holds(status.value(), "Complete"), holds(status.value(), "Failed"));
    let before = &old["status"];
    for kind in ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"] {
        if holds(before, kind) && !holds(status.value(), kind) {
            status.at("conditions").invalid(&format!("cannot disable the terminal {kind}=True condition"));
        }
    }
    if complete && failed {
        status.at("conditions").invalid("cannot specify both Complete=True and Failed=True conditions");
    }
    if complete && !status.at("startTime").exists() {
        status.at("startTime").missing("startTime is required for finished jobs");
    }
    let ended = status.at("completionTime");
    if ended.exists() && !complete {
        ended.invalid("completionTime cannot be set when there is no Complete=True condition");
    }
    if complete && !ended.exists() {
        ended.missing("completionTime is required for Complete jobs");
    }
    if !before["completionTime"].is_null() {
        rules::immutable(ended, &before["completionTime"]);
    }
    let was_suspended = old["spec"]["suspend"] == true;
    if !before["startTime"].is_null() && !was_suspended {
        rules::immutable(status.at("startTime"), &before["startTime"]);
    }
    uncounted(status.at("uncountedTerminatedPods"));
}

/// No Pod is counted twice.
fn uncounted(uncounted: Cursor<'_>) {
    let mut seen = BTreeSet::new();
    for uid in uncounted.list("succeeded").chain(uncounted.list("failed")) {
        if uid.is_empty() {
            uid.invalid("must not be empty");
        } else if seen.contains(uid.str()) {
            uid.duplicate();
        }
        seen.insert(uid.str());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn many_uncounted_pods_are_told_apart() {
        let mut uids: Vec<String> = (0..200_000).map(|it| format!("uid-{it}")).collect();
        let job = |uids: &[String]| json!({"status": {"uncountedTerminatedPods": {"succeeded": uids}}});
        let check = |job: &Value| corten_schema::violations(job, |it| validate(it, &Value::Null));
        assert_eq!(check(&job(&uids)), []);
        uids.push("uid-0".into());
        assert_eq!(check(&job(&uids)).len(), 1);
    }
}
