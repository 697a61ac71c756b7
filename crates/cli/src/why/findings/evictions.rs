//! Pods of a cordoned node that disruption budgets keep there, as evictions of them are answered.

use corten_api::resources::{POD_DISRUPTION_BUDGETS, PODS};
use corten_meta::LabelSelector;
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use crate::why::{
    fields::{condition, items, key_of, text, time},
    reader::Reader,
};

/// So many Pods are named.
const NAMED: usize = 2;

/// Which Pods stay, and which budgets hold them.
pub(super) async fn refused(reader: &Reader<'_>, node: &str) -> Option<Wait> {
    let budgets = reader.list(&POD_DISRUPTION_BUDGETS, "").await;
    let mut full = budgets.iter().filter(|it| it["status"]["disruptionsAllowed"] == 0).peekable();
    full.peek()?;
    let pods = reader.list_where(&PODS, "", &format!("spec.nodeName={node}")).await;
    let held: Vec<(&Value, &Value)> =
        full.flat_map(|budget| pods.iter().filter(|it| holds(budget, it)).map(move |it| (it, budget))).collect();
    let says = |(pod, budget): &(&Value, &Value)| {
        let (pod, budget) = (key_of(pod), key_of(budget).name);
        format!("pod/{} in {} stays: poddisruptionbudget/{budget} lets none of its pods go", pod.name, pod.namespace)
    };
    let mut said: Vec<String> = held.iter().map(says).collect();
    said.sort();
    let n_more = said.len().saturating_sub(NAMED);
    said.truncate(NAMED);
    said.extend((n_more > 0).then(|| format!("and {n_more} more stay")));
    let since = held.iter().filter_map(|it| time(&condition(it.1, "DisruptionAllowed")?["lastTransitionTime"])).min();
    let wait = Wait::new("EvictionRefused", said.join("; "), Actor::Operator);
    (!held.is_empty()).then_some(Wait { since, ..wait })
}

/// Is an eviction of the Pod refused for the sake of the budget? As in upstream's `EvictionREST`.
fn holds(budget: &Value, pod: &Value) -> bool {
    let Ok(selector) = serde_json::from_value::<LabelSelector>(budget["spec"]["selector"].clone()) else {
        return false;
    };
    let labels = serde_json::from_value(pod["metadata"]["labels"].clone()).unwrap_or_default();
    let is_its = text(pod, "/metadata/namespace") == text(budget, "/metadata/namespace") && selector.matches(&labels);
    is_its && is_to_be_evicted(pod) && !may_go_unready(budget, pod)
}

/// A drain leaves out what a DaemonSet would make again and what the node itself has made; no budget keeps what does not run.
fn is_to_be_evicted(pod: &Value) -> bool {
    let is_leaving = pod["metadata"]["deletionTimestamp"].is_string();
    let is_mirror = pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_string();
    let is_of_daemon_set = items(pod, "/metadata/ownerReferences").iter().any(|it| it["kind"] == "DaemonSet");
    let does_not_run = matches!(text(pod, "/status/phase"), "Pending" | "Succeeded" | "Failed");
    !is_leaving && !is_mirror && !is_of_daemon_set && !does_not_run
}

/// A Pod that is not ready serves nobody: the budget's policy says when it may go all the same.
fn may_go_unready(budget: &Value, pod: &Value) -> bool {
    let is_ready = condition(pod, "Ready").is_some_and(|it| it["status"] == "True");
    let healthy = |name: &str| budget["status"][name].as_i64().unwrap_or(0);
    let (current, desired) = (healthy("currentHealthy"), healthy("desiredHealthy"));
    !is_ready && (budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" || desired > 0 && current >= desired)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_an_eviction_is_refused_for_is_held() {
        let budget = |policy: &str, current: i64| {
            json!({
                "metadata": {"name": "db", "namespace": "shop"},
                "spec": {"selector": {"matchLabels": {"app": "db"}}, "unhealthyPodEvictionPolicy": policy},
                "status": {"disruptionsAllowed": 0, "currentHealthy": current, "desiredHealthy": 1},
            })
        };
        let pod = |ready: &str, phase: &str, more: Value| {
            let mut metadata = json!({"name": "db-0", "namespace": "shop", "labels": {"app": "db"}});
            metadata.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
            json!({"metadata": metadata, "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]}})
        };
        let running = pod("True", "Running", json!({}));
        let unready = pod("False", "Running", json!({}));
        for (budget, pod, expected) in [
            (budget("", 1), running.clone(), true),
            (budget("AlwaysAllow", 1), running, true),
            (budget("", 1), unready.clone(), false),
            (budget("", 0), unready.clone(), true),
            (budget("AlwaysAllow", 0), unready, false),
            (budget("", 1), pod("True", "Running", json!({"namespace": "other"})), false),
            (budget("", 1), pod("True", "Running", json!({"labels": {"app": "web"}})), false),
            (budget("", 1), pod("True", "Running", json!({"deletionTimestamp": "2026-11-20T12:00:00Z"})), false),
            (budget("", 1), pod("True", "Running", json!({"ownerReferences": [{"kind": "DaemonSet"}]})), false),
            (
                budget("", 1),
                pod("True", "Running", json!({"annotations": {"kubernetes.io/config.mirror": "x"}})),
                false,
            ),
            (budget("", 0), pod("False", "Pending", json!({})), false),
            (budget("", 0), pod("False", "Failed", json!({})), false),
        ] {
            assert_eq!(holds(&budget, &pod), expected, "{budget} {pod}");
        }
    }
}
