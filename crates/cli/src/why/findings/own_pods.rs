//! A webhook that refuses the Pods of its own server: it does not answer because they do not run, and they do not run because it
//! does not answer.

use corten_api::resources::{ENDPOINT_SLICES, NAMESPACES, PODS, SERVICES};
use corten_meta::{Key, Selector};
use corten_reconcile::{Actor, Wait};
use serde::Deserialize as _;
use serde_json::Value;

use super::services;
use crate::why::{
    fields::{items, text},
    reader::Reader,
};

/// What makes Pods of a template.
const MAKERS: [&str; 6] = ["deployment", "statefulset", "daemonset", "replicaset", "replicationcontroller", "job"];

/// `None` as well where it cannot be told: conditions may leave those Pods out.
pub(super) async fn refused(reader: &Reader<'_>, webhook: &Value) -> Option<Wait> {
    let service = &webhook["clientConfig"]["service"];
    let has_conditions = !items(webhook, "/matchConditions").is_empty();
    if !service.is_object() || webhook["failurePolicy"] == "Ignore" || has_conditions || !is_about_pods(webhook) {
        return None;
    }
    let key = Key::new(text(service, "/namespace"), text(service, "/name"));
    let namespace = &*key.namespace;
    let service = reader.get(&SERVICES, &key).await?;
    let wanted = service["spec"]["selector"].as_object().filter(|it| !it.is_empty())?;
    let is_selected = |labels: &Value| wanted.iter().all(|(name, value)| labels[name] == *value);
    let slices = reader.list(&ENDPOINT_SLICES, namespace).await;
    if !reader.is_whole(&ENDPOINT_SLICES, &slices) || services::ready(&slices).contains(&key) {
        return None;
    }
    // One that was let in waits for something else.
    let pods = reader.list(&PODS, namespace).await;
    if !reader.is_whole(&PODS, &pods) || pods.iter().any(|it| is_selected(&it["metadata"]["labels"])) {
        return None;
    }
    let own = reader.get(&NAMESPACES, &Key::cluster(namespace)).await?;
    if !selects(&webhook["namespaceSelector"], &own["metadata"]["labels"]) {
        return None;
    }
    for kind in MAKERS.into_iter().filter_map(corten_kinds::by_name) {
        let makers = reader.list(&kind.resource, namespace).await;
        let is_it = |it: &&Value| {
            let labels = &it["spec"]["template"]["metadata"]["labels"];
            it["spec"]["replicas"] != 0 && is_selected(labels) && selects(&webhook["objectSelector"], labels)
        };
        if let Some(maker) = makers.iter().find(is_it) {
            let message = format!(
                "webhook {} refuses the pods of its own server, {}/{} in {namespace}: it cannot answer before they run, and they cannot be made before it answers",
                text(webhook, "/name"),
                kind.singular,
                text(maker, "/metadata/name"),
            );
            return Some(Wait::new("WebhookRefusesItsOwn", message, Actor::Author));
        }
    }
    None
}

/// Is it asked about new Pods?
fn is_about_pods(webhook: &Value) -> bool {
    items(webhook, "/rules").iter().any(|rule| {
        let names = |pointer: &str, any: &[&str]| {
            items(rule, pointer).iter().filter_map(Value::as_str).any(|it| any.contains(&it))
        };
        rule["scope"] != "Cluster"
            && names("/apiGroups", &["", "*"])
            && names("/apiVersions", &["v1", "*"])
            && names("/operations", &["CREATE", "*"])
            && names("/resources", &["pods", "*", "*/*"])
    })
}

/// Without a selector it is about all.
fn selects(selector: &Value, labels: &Value) -> bool {
    let selector = Selector::deserialize(selector).unwrap_or_default();
    selector.matches(&serde_json::from_value(labels.clone()).unwrap_or_default())
}
