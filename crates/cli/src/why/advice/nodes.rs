//! Nodes that are not well, or of which nothing is heard, and what waits for them.

use serde_json::Value;

use super::case::{Advice, Case, shell};
use crate::why::{
    command::kubectl,
    fields::{items, text},
};

/// Another machine's data folder may be anywhere.
const LOG: &str = "on that machine: log/corten.log in its data folder";
/// Lets the cluster take from a node what may run there still.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";

pub(super) fn unwell(case: &Case<'_>) -> Advice {
    let on = case.wait.on.as_deref().filter(|it| it.starts_with("node/"));
    let node = on.or(Some(&case.at.subject)).filter(|it| it.starts_with("node/")).unwrap_or("nodes");
    let verb = if node == "nodes" { "get" } else { "describe" };
    let describe = kubectl("", &[verb, node]);
    match &*case.wait.reason {
        "NotReady" => Advice::run(describe)
            .who("whoever runs the node: Corten runs there, and what it says it lacks must come back")
            .hint(LOG),
        "NodeSilent" if case.at.subject.starts_with("node/") => silent(case, node.trim_start_matches("node/")),
        _ => Advice::run(describe).who(late(case)).hint(LOG),
    }
}

fn late(case: &Case<'_>) -> String {
    let who = "whoever runs the node: start Corten there as it was (`corten up` or `corten join`)";
    let is_service = case.root.path[0].subject.starts_with("service/");
    let itself = if is_service && case.wait.reason == "NodeLate" {
        "; the cluster itself leads requests elsewhere when the node counts as silent"
    } else {
        ""
    };
    format!("{who}{itself}")
}

fn silent(case: &Case<'_>, node: &str) -> Advice {
    let remove = format!("corten node remove {}", shell(node));
    let advice = Advice::run(format!("corten up # on {node}"));
    let advice = advice.hint(LOG).who(format!(
        "whoever runs the node: start Corten there as it was (`corten up` or `corten join`); where the machine is gone for good: `{remove}`"
    ));
    let first = case.root.path[0];
    let is_leaving = first.object["metadata"]["deletionTimestamp"].is_string();
    if !first.subject.starts_with("pod/") || !is_leaving || is_out_of_service(case.object) {
        return advice;
    }
    advice
        .hint("where the machine is off for good, one of these ends what waits for it:")
        .hint(kubectl("", &["taint", "nodes", node, OUT_OF_SERVICE]))
        .hint(kubectl(&first.namespace, &["delete", &first.subject, "--force"]))
}

fn is_out_of_service(node: &Value) -> bool {
    let key = OUT_OF_SERVICE.split('=').next().unwrap_or_default();
    items(node, "/spec/taints").iter().any(|it| text(it, "/key") == key)
}
