//! Pods whose packets the machine under their node drops, or sends elsewhere: they look well, and whoever needs them does not reach them.

use std::collections::BTreeSet;

use corten_api::resources::PODS;
use corten_kinds::Kind;
use corten_meta::{Key, LabelSelector};
use corten_reconcile::Wait;
use serde_json::{Value, json};

use super::found::Findings;
use crate::why::{
    fields::{condition, items, text},
    reader::Reader,
};

/// What a node says of its machine, and what that does to packets of Pods.
const UNREACHED: [(&str, &str); 2] =
    [("PodTrafficFiltered", "drops packets of pods"), ("PodRangeTaken", "sends packets for pods elsewhere")];

/// Is it a wait of a node that bears on its Pods' packets?
pub(crate) fn bears_on_packets(wait: &Wait) -> bool {
    UNREACHED.iter().any(|it| wait.reason == it.0)
}

pub(super) async fn filtered(reader: &Reader<'_>, kind: &Kind, object: &Value, found: &mut Findings) {
    let selector = match &*kind.singular {
        "pod" => return on_nodes(reader, nodes(std::slice::from_ref(object)), found).await,
        "service" => json!({ "matchLabels": object["spec"]["selector"] }),
        "daemonset" | "deployment" | "replicaset" | "statefulset" => object["spec"]["selector"].clone(),
        "replicationcontroller" => json!({ "matchLabels": object["spec"]["selector"] }),
        _ => return,
    };
    let Ok(selector) = serde_json::from_value::<LabelSelector>(selector) else { return };
    if selector == LabelSelector::default() {
        return;
    }
    let labels = |it: &Value| serde_json::from_value(it["metadata"]["labels"].clone()).unwrap_or_default();
    let pods = reader.list(&PODS, text(object, "/metadata/namespace")).await;
    let selected: Vec<Value> = pods.iter().filter(|it| selector.matches(&labels(it))).cloned().collect();
    on_nodes(reader, nodes(&selected), found).await;
}

/// Where Pods with a network of their own are that serve. What one that does not serve waits for is its own affair.
fn nodes(pods: &[Value]) -> BTreeSet<String> {
    let is_ready = |it: &Value| condition(it, "Ready").is_some_and(|it| it["status"] == "True");
    let serves = |it: &&Value| it["spec"]["hostNetwork"] != true && is_ready(it);
    let nodes = pods.iter().filter(serves).map(|it| text(it, "/spec/nodeName").to_owned());
    nodes.filter(|it| !it.is_empty()).collect()
}

async fn on_nodes(reader: &Reader<'_>, nodes: BTreeSet<String>, found: &mut Findings) {
    let Some(kind) = corten_kinds::by_name("node") else { return };
    for node in nodes {
        let decisions = reader.decisions(kind, &Key::cluster(&*node)).await;
        for (reason, does) in UNREACHED {
            let Some(wait) = decisions.iter().flat_map(|it| &it.waits).find(|it| it.reason == reason) else { continue };
            let message = format!("the machine of node {node} {does}: {}", wait.message);
            let told = Wait { since: wait.since, ..Wait::new(reason, message, wait.actor) };
            found.wait(told.on("Node", &node));
        }
    }
}

/// The Pods and Services that a filter on one of these nodes bears on, by the journals of what somebody must act for.
pub(crate) fn is_filtered(kind: &Kind, object: &Value, filtered: &BTreeSet<String>) -> bool {
    !filtered.is_empty()
        && match &*kind.singular {
            "pod" => !nodes(std::slice::from_ref(object)).is_disjoint(filtered),
            "service" => !items(object, "/spec/ports").is_empty(),
            "daemonset" | "deployment" | "replicaset" | "replicationcontroller" | "statefulset" => true,
            _ => false,
        }
}
