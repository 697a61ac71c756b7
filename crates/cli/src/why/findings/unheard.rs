//! What is led to a node of which nothing is heard: it looks well until the node counts as silent, and nobody answers.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::resources::{ENDPOINT_SLICES, NODES};
use corten_meta::{Key, Time};
use corten_proxy::{
    Answer, BalancerNode, answering,
    projections::{EndpointSlice, Service},
};
use corten_reconcile::{Actor, Wait};
use serde::Deserialize;
use serde_json::Value;

use super::{
    found::Findings,
    nodes::last_heard,
    services::{SERVICE_NAME, is_ready_endpoint},
};
use crate::why::{
    fields::{items, text},
    reader::Reader,
};

/// What the node loop says of such a node, in its journal.
const UNHEARD: [&str; 2] = [LATE, "NodeSilent"];
const LATE: &str = "NodeLate";
/// As of the node loop: after so long a node that is late counts as silent.
const SILENT_AFTER_SECONDS: i64 = 50;
/// So many nodes are asked about.
const NODES_MAX: usize = 32;

/// The addresses of a Service, and its endpoints.
pub(super) async fn service(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    let slices = reader.list(&ENDPOINT_SLICES, namespace).await;
    let own: Vec<&Value> = slices.iter().filter(|it| it["metadata"]["labels"][SERVICE_NAME] == name).collect();
    addresses(reader, object, &own, found).await;
    endpoints(reader, &own, found).await;
}

/// A Pod that was well when its node was last heard.
pub(super) async fn pod(reader: &Reader<'_>, node: &str, found: &mut Findings) {
    // Of a node that is silent its own status tells.
    let Some(unheard) = Unheard::of(reader, node).await.filter(|it| it.wait.reason == LATE) else { return };
    found.wait(unheard.says(format!("it is on {}: whether it runs is not known", unheard.node())));
}

async fn addresses(reader: &Reader<'_>, service: &Value, slices: &[&Value], found: &mut Findings) {
    let Ok(service) = Service::deserialize(service) else { return };
    if !service.is_announced() {
        return;
    }
    // Who may not list nodes is not told of them.
    let Ok(nodes) = reader.try_list(&NODES).await else { return };
    let nodes: BTreeMap<String, BalancerNode> = nodes
        .iter()
        .filter_map(|it| Some((text(it, "/metadata/name").to_owned(), BalancerNode::deserialize(it).ok()?)))
        .collect();
    let slices: Vec<EndpointSlice> = slices.iter().filter_map(|it| EndpointSlice::deserialize(*it).ok()).collect();
    for Answer { address, node, is_other_ready } in answering(&service, &nodes, &slices.iter().collect::<Vec<_>>()) {
        let Some(unheard) = Unheard::of(reader, node).await else { continue };
        let then = match (is_other_ready, unheard.silent_at()) {
            (false, _) => "no other node is ready to take it over".to_owned(),
            (true, None) => "another node takes it over when that counts as silent".to_owned(),
            (true, Some(at)) => format!("another node takes it over when that counts as silent, at {at}"),
        };
        found.wait(unheard.says(format!("{address} is answered for by {}; {then}", unheard.node())));
    }
}

async fn endpoints(reader: &Reader<'_>, slices: &[&Value], found: &mut Findings) {
    // A Pod with addresses of both families is in two slices.
    let mut on: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for endpoint in slices.iter().flat_map(|it| items(it, "/endpoints")).filter(|it| is_ready_endpoint(it)) {
        let pod = text(endpoint, "/targetRef/name");
        let name = if pod.is_empty() { text(endpoint, "/addresses/0") } else { pod };
        on.entry(text(endpoint, "/nodeName")).or_default().insert(name);
    }
    let n_all: usize = on.values().map(BTreeSet::len).sum();
    for (node, there) in on.into_iter().filter(|it| !it.0.is_empty()).take(NODES_MAX) {
        let Some(unheard) = Unheard::of(reader, node).await else { continue };
        let (n, are) = (there.len(), if there.len() == 1 { "is" } else { "are" });
        let until = unheard.silent_at().map(|it| format!(" or counts as silent, at {it}")).unwrap_or_default();
        found.wait(unheard.says(format!(
            "{n} of {n_all} endpoints {are} on {}: requests that are led there are not answered until it is heard{until}",
            unheard.node()
        )));
    }
}

/// A node of which nothing is heard.
struct Unheard<'n> {
    name: &'n str,
    heard: Option<Time>,
    /// What it is told by.
    wait: Wait,
}

impl<'n> Unheard<'n> {
    async fn of(reader: &Reader<'_>, name: &'n str) -> Option<Self> {
        let decisions = reader.decisions_if_shown(corten_kinds::by_name("node")?, &Key::cluster(name)).await;
        let wait = decisions.into_iter().flat_map(|it| it.waits).find(|it| UNHEARD.contains(&&*it.reason))?;
        // Its Lease says it; who may not see that is told since when somebody waits for it.
        let heard = last_heard(reader, &Value::Null, name).await;
        Some(Self { name, heard, wait })
    }

    fn node(&self) -> String {
        let heard = self.heard.map(|it| format!(" since {}", it.whole_seconds())).unwrap_or_default();
        format!("node {}, of which nothing was heard{heard}", self.name)
    }

    /// None where it does already.
    fn silent_at(&self) -> Option<Time> {
        let heard = self.heard.filter(|_| self.wait.reason == LATE)?;
        Some(heard.whole_seconds().after_seconds(SILENT_AFTER_SECONDS))
    }

    fn says(&self, message: String) -> Wait {
        let told = Wait { since: self.wait.since, ..Wait::new(&self.wait.reason, message, Actor::Operator) };
        told.on("Node", self.name)
    }
}
