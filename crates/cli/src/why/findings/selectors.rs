//! What selects Pods or nodes and finds none, where that is not a Service.

use corten_api::resources::{NODES, PODS};
use corten_meta::{Key, LabelSelector};
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::found::Findings;
use crate::why::{State, fields::text, reader::Reader};

/// A budget without Pods lets none go, as there is none: that is no trouble, and may be a slip.
pub(super) async fn budget(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    if object["spec"]["selector"].is_null() || selects_none(reader, object, "/spec/selector").await {
        found.explains.push("NoDisruptionsAllowed");
        found.verdict = Some((State::Fine, "it matches no pod, and protects nothing".into()));
    }
}

/// The loop of each node that lays policies.
const NETWORK_POLICY: &str = "network-policy";

/// Whom it isolates, as the nodes say that have laid it.
pub(super) async fn network_policy(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let namespace = text(object, "/metadata/namespace");
    if selects_none(reader, object, "/spec/podSelector").await {
        found.notices.push(format!("it selects no pod of {namespace}"));
        return;
    }
    let Some(kind) = corten_kinds::by_name("networkpolicy") else { return };
    let decisions = reader.decisions_if_shown(kind, &Key::new(namespace, text(object, "/metadata/name"))).await;
    let laid = decisions.iter().filter(|it| it.by == NETWORK_POLICY).flat_map(|it| &it.effects);
    found.notices.extend(laid.map(|it| format!("it {it}")));
}

/// Does the selector there match no Pod of the object's namespace? False where that cannot be told.
async fn selects_none(reader: &Reader<'_>, object: &Value, place: &str) -> bool {
    let selector = object.pointer(place).cloned().unwrap_or_default();
    let Ok(selector) = serde_json::from_value::<LabelSelector>(selector) else { return false };
    let pods = reader.list(&PODS, text(object, "/metadata/namespace")).await;
    let labels = |it: &Value| serde_json::from_value(it["metadata"]["labels"].clone()).unwrap_or_default();
    reader.is_whole(&PODS, &pods) && !pods.iter().any(|it| selector.matches(&labels(it)))
}

/// Has its loop found no node for it?
pub(crate) fn is_nowhere(daemon_set: &Value) -> bool {
    let is_seen = daemon_set["status"]["observedGeneration"].as_i64() >= daemon_set["metadata"]["generation"].as_i64();
    is_seen
        && daemon_set["status"]["observedGeneration"].is_i64()
        && daemon_set["status"]["desiredNumberScheduled"].as_i64().unwrap_or(0) == 0
}

/// A DaemonSet whose Pods are wanted on no node is what it should be, and hardly what was meant.
pub(super) async fn daemon_set(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    if !is_nowhere(object) {
        return;
    }
    let nodes = reader.list(&NODES, "").await;
    if !reader.is_whole(&NODES, &nodes) {
        return found.add("NoNodeMatches", "its loop has found no node for its pods", Actor::Author);
    }
    if nodes.is_empty() {
        return found.add("NoNodes", "the cluster has no node", Actor::Operator);
    }
    let wanted = object.pointer("/spec/template/spec/nodeSelector").and_then(Value::as_object);
    let is_nowhere =
        |(key, value): &(&String, &Value)| !nodes.iter().any(|it| it["metadata"]["labels"][key.as_str()] == **value);
    let n_nodes = if nodes.len() == 1 { "the only node".to_owned() } else { format!("any of {} nodes", nodes.len()) };
    let message = match wanted.into_iter().flatten().find(is_nowhere) {
        Some((key, value)) => {
            let value = value.as_str().unwrap_or_default();
            format!("its nodeSelector asks for {key}={value}, which is no label of {n_nodes}: it runs no pod")
        }
        None => format!("its nodeSelector, node affinity and tolerations do not let it run on {n_nodes}"),
    };
    found.wait(Wait::new("NoNodeMatches", message, Actor::Author));
}
