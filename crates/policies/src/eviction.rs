//! What a PodDisruptionBudget says to an eviction, and what it holds afterwards.
//!
//! `status.disruptionsAllowed` is what its loop last counted; an eviction takes one from it and leaves the Pod's name in
//! `disruptedPods`, so that the next count does not give the same one again.

use corten_meta::{Cause, LabelSelector, Resource, Status, Time};
use corten_validation::read::{items, text};
use serde_json::{Value, json};

/// More than so many evictions that the loop has not seen are not let pass.
const DISRUPTED_MAX: usize = 2000;
const VIOLATES: &str = "Cannot evict pod as it would violate the pod's disruption budget.";
/// The resource, as `EvictionREST` names it in a refusal.
const BUDGET: Resource = Resource::namespaced("policy", "v1", "PodDisruptionBudget", "poddisruptionbudget");

/// Pods whose end disrupts nobody: they have ended, have not begun, or are going already.
pub fn disrupts_nobody(pod: &Value) -> bool {
    has_ended(pod) || text(pod, "/status/phase") == "Pending"
}

/// Could the Pod still become one whose end disrupts somebody?
pub fn has_ended(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Succeeded" | "Failed") || !pod["metadata"]["deletionTimestamp"].is_null()
}

/// Does the budget guard the Pod? No selector selects nothing, an empty one everything.
pub fn guards(budget: &Value, pod: &Value) -> bool {
    let selector = &budget["spec"]["selector"];
    let labels = pod["metadata"]["labels"].as_object().into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect();
    selector.is_object()
        && serde_json::from_value::<LabelSelector>(selector.clone()).is_ok_and(|it| it.matches(&labels))
}

/// The Pod is not healthy, and the budget does not mind such Pods going: nothing is taken from it.
pub fn minds_not(budget: &Value, pod: &Value) -> bool {
    let is_ready = items(pod, "/status/conditions").iter().any(|it| it["type"] == "Ready" && it["status"] == "True");
    let number = |name: &str| budget["status"][name].as_i64().unwrap_or_default();
    let is_healthy = number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0;
    !is_ready && (budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" || is_healthy)
}

/// Takes one disruption from the budget.
///
/// # Errors
/// 429 where it has none to give, or its loop has not seen it yet.
#[expect(clippy::result_large_err, reason = "a Status is made once for each refused eviction")]
pub fn take(budget: &mut Value, pod: &str, now: Time) -> Result<(), Status> {
    let name = text(budget, "/metadata/name").to_owned();
    let number = |pointer: &str| budget.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    if number("/status/observedGeneration") < number("/metadata/generation") {
        return Err(still_processed(&name));
    }
    let allowed = number("/status/disruptionsAllowed");
    if allowed < 0 {
        return Err(Status::forbidden(&BUDGET, &name, "pdb disruptions allowed is negative"));
    }
    if budget["status"]["disruptedPods"].as_object().is_some_and(|it| it.len() > DISRUPTED_MAX) {
        let detail = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Status::forbidden(&BUDGET, &name, detail));
    }
    if allowed == 0 {
        return Err(refused(0, &why_none(budget, &name)));
    }
    let status = &mut budget["status"];
    status["disruptionsAllowed"] = json!(allowed.saturating_sub(1));
    if !status["disruptedPods"].is_object() {
        status["disruptedPods"] = json!({});
    }
    status["disruptedPods"][pod] = json!(now.to_string());
    if allowed == 1 {
        insufficient(status, now);
    }
    Ok(())
}

/// The budget changed while it was looked at.
pub fn still_processed(name: &str) -> Status {
    refused(10, &format!("The disruption budget {name} is still being processed by the server."))
}

fn why_none(budget: &Value, name: &str) -> String {
    let failed = items(budget, "/status/conditions").iter().find(|it| {
        it["type"] == "DisruptionAllowed"
            && it["status"] == "False"
            && it["reason"] == "SyncFailed"
            && it["observedGeneration"] == budget["metadata"]["generation"]
    });
    if let Some(condition) = failed {
        let reason = text(condition, "/message");
        return format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {reason}"
        );
    }
    let number = |name: &str| budget["status"][name].as_i64().unwrap_or_default();
    let (needs, has) = (number("desiredHealthy"), number("currentHealthy"));
    format!("The disruption budget {name} needs {needs} healthy pods and has {has} currently")
}

fn refused(retry_after_seconds: u32, why: &str) -> Status {
    let mut status = Status::too_many_requests(VIOLATES, retry_after_seconds);
    let details = status.details.get_or_insert_default();
    details.retry_after_seconds = Some(retry_after_seconds).filter(|it| *it > 0);
    details.causes.push(Cause { reason: "DisruptionBudget".into(), message: why.into(), field: String::new() });
    status
}

/// The condition `DisruptionAllowed` of a budget that has nothing left to give.
fn insufficient(status: &mut Value, now: Time) {
    let generation = status["observedGeneration"].clone();
    let mut conditions = status["conditions"].as_array().cloned().unwrap_or_default();
    let before = conditions.iter().position(|it| it["type"] == "DisruptionAllowed");
    let same = before.map(|at| &conditions[at]).filter(|it| it["status"] == "False");
    let since = same.map_or_else(|| json!(now.to_string()), |it| it["lastTransitionTime"].clone());
    let condition = json!({
        "type": "DisruptionAllowed", "status": "False", "observedGeneration": generation,
        "lastTransitionTime": since, "reason": "InsufficientPods", "message": "",
    });
    match before {
        Some(at) => conditions[at] = condition,
        None => conditions.push(condition),
    }
    status["conditions"] = conditions.into();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(spec: &Value, status: &Value) -> Value {
        json!({ "metadata": { "name": "b", "generation": 2 }, "spec": spec, "status": status })
    }

    #[test]
    fn budgets_give_what_they_have() {
        let now = Time::from_unix_seconds(0);
        for (status, expected) in [
            (json!({ "observedGeneration": 2, "disruptionsAllowed": 2 }), Ok(1)),
            (json!({ "observedGeneration": 2, "disruptionsAllowed": 1 }), Ok(0)),
            (
                json!({ "observedGeneration": 1, "disruptionsAllowed": 1 }),
                Err((429, "The disruption budget b is still being processed by the server.")),
            ),
            (
                json!({ "observedGeneration": 2, "disruptionsAllowed": 0, "desiredHealthy": 3, "currentHealthy": 2 }),
                Err((429, "The disruption budget b needs 3 healthy pods and has 2 currently")),
            ),
            (
                json!({ "observedGeneration": 2, "disruptionsAllowed": 0, "conditions": [
                    { "type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "observedGeneration": 2, "message": "why" }] }),
                Err((
                    429,
                    "The disruption budget b does not allow evicting pods currently because it failed sync: why",
                )),
            ),
            (json!({ "observedGeneration": 2, "disruptionsAllowed": -1 }), Err((403, ""))),
        ] {
            let mut budget = budget(&json!({}), &status);
            match (take(&mut budget, "p", now), expected) {
                (Ok(()), Ok(left)) => {
                    assert_eq!(budget["status"]["disruptionsAllowed"], left);
                    assert_eq!(budget["status"]["disruptedPods"], json!({ "p": "1970-01-01T00:00:00Z" }));
                    assert_eq!(budget["status"]["conditions"][0]["reason"] == "InsufficientPods", left == 0);
                }
                (Err(status), Err((code, cause))) => {
                    assert_eq!(status.code, code);
                    let causes = status.details.unwrap_or_default().causes;
                    assert_eq!(causes.first().map_or("", |it| &it.message), cause);
                }
                (found, expected) => panic!("{found:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn unhealthy_pods_may_go() {
        let (sick, well) = (json!({}), json!({ "status": { "conditions": [{ "type": "Ready", "status": "True" }] } }));
        let enough = json!({ "currentHealthy": 2, "desiredHealthy": 2 });
        let short = json!({ "currentHealthy": 1, "desiredHealthy": 2 });
        let always = json!({ "unhealthyPodEvictionPolicy": "AlwaysAllow" });
        for (spec, status, pod, expected) in [
            (json!({}), &enough, &sick, true),
            (json!({}), &enough, &well, false),
            (json!({}), &short, &sick, false),
            (always.clone(), &short, &sick, true),
            (always, &short, &well, false),
            (json!({}), &json!({}), &sick, false),
        ] {
            assert_eq!(minds_not(&budget(&spec, status), pod), expected, "{spec} {status} {pod}");
        }
    }

    #[test]
    fn selectors_select() {
        let pod = json!({ "metadata": { "labels": { "app": "web" } } });
        for (selector, expected) in [
            (json!(null), false),
            (json!({}), true),
            (json!({ "matchLabels": { "app": "web" } }), true),
            (json!({ "matchLabels": { "app": "db" } }), false),
        ] {
            assert_eq!(guards(&json!({ "spec": { "selector": selector } }), &pod), expected, "{selector}");
        }
    }
}
