//! What the loops of nodes in other processes have noted, asked of their kubelets' servers for `corten why`.
//!
//! Whoever asks why waits for it: a node has a moment to answer, and one that did not is not asked again for a while. A node is believed
//! of itself and of the Pods that are bound to it. Of a Service or a policy each node says what it waits for itself.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use corten_access::Clock;
use corten_api::resources::{NODES, PODS};
use corten_cacher::watch_cache::{Caches, ResourceCache};
use corten_meta::{Key, Resource, Status, Time};
use corten_reconcile::{
    Decision, Journal,
    node_journal::{self, NODE_JOURNALS, NODE_JOURNALS_MAX, NodeJournals},
};
use corten_stream::Dialed;
use futures_util::{StreamExt, stream};
use http::Method;
use http_body_util::{BodyExt, Limited};
use parking_lot::Mutex;
use serde::{Deserialize, de::DeserializeOwned};

use crate::{KubeletClient, Node, cached, complaint};

/// From the first packet to the last byte.
const DEADLINE: Duration = Duration::from_millis(1500);
/// Who did not answer is not asked again for so long.
const SILENCE: Duration = Duration::from_secs(10);
/// So long what a node waits for is taken as it was told.
const FRESH: Duration = Duration::from_secs(3);
const BODY_BYTES_MAX: usize = 2 * 1024 * 1024;
/// So many nodes are asked at once what they wait for, and further ones not.
const NODES_MAX: usize = 128;

/// With what nodes are asked.
pub struct Asking<'a> {
    /// `None`: there is no way to any node.
    pub kubelets: Option<&'a KubeletClient>,
    pub caches: &'a Caches,
    pub clock: &'a Clock,
    /// Whose loops are those of this process.
    pub own: Option<&'a str>,
}

/// What nodes say of one object.
#[derive(Default)]
pub struct FromNodes {
    pub decisions: Vec<Decision>,
    /// `m2 does not answer: …`
    pub unanswered: Vec<String>,
}

/// What was learnt of one node.
#[derive(Default)]
struct Known {
    /// When it did not answer, and why.
    silent: Option<(Time, String)>,
    /// All that waits there, and when it said so.
    waiting: Option<(Time, Arc<Waiting>)>,
}

/// What is waited for, by what waits.
pub type Waiting = BTreeMap<(Resource, Key), Vec<Decision>>;

#[derive(Default)]
pub struct RemoteJournals {
    nodes: Mutex<BTreeMap<String, Known>>,
}

impl RemoteJournals {
    /// What the loops of other processes decided about an object: of a Pod and a Node its node's, of anything else those that wait.
    pub async fn of(&self, asking: &Asking<'_>, resource: &Resource, key: &Key) -> FromNodes {
        if asking.kubelets.is_none() || !node_journal::is_of_nodes(resource) {
            return FromNodes::default();
        }
        let Some(node) = node_of(asking.caches, resource, key) else {
            let decisions = self.all(asking).await.remove(&(resource.clone(), key.clone())).unwrap_or_default();
            return FromNodes { decisions, unanswered: Vec::new() };
        };
        if node.is_empty() || asking.own == Some(node.as_str()) {
            return FromNodes::default();
        }
        let (namespace, name) = node_journal::journal_name(resource, key);
        let path = format!("{NODE_JOURNALS}/{namespace}/{name}");
        match self.ask::<Journal>(asking, &node, &path).await {
            Ok(journal) => {
                FromNodes { decisions: journal.map(|it| it.decisions).unwrap_or_default(), unanswered: Vec::new() }
            }
            Err(why) => FromNodes { decisions: Vec::new(), unanswered: vec![why] },
        }
    }

    /// What waits on other nodes, as far as each may say so. Those that do not answer in time say nothing.
    pub async fn all(&self, asking: &Asking<'_>) -> Waiting {
        let mut all = Waiting::new();
        let nodes = asking.caches.get(&NODES).filter(|_| asking.kubelets.is_some()).map(|it| it.snapshot());
        let names = nodes.iter().flat_map(|it| it.range("", None)).map(|it| it.name().to_owned());
        let names: Vec<String> = names.filter(|it| asking.own != Some(it.as_str())).collect();
        for (node, waiting) in self.waiting(asking, &names).await {
            for ((resource, key), decisions) in waiting.iter() {
                let is_there = |cache: &ResourceCache| cache.get(&key.namespace, &key.name).is_some();
                let said = match node_of(asking.caches, resource, key) {
                    Some(own) if own == node => decisions.clone(),
                    None if asking.caches.get(resource).is_some_and(is_there) => decisions
                        .iter()
                        .map(|it| Decision { by: format!("{} on {node}", it.by), ..it.clone() })
                        .collect(),
                    _ => continue,
                };
                beside(all.entry((resource.clone(), key.clone())).or_default(), said);
            }
        }
        all
    }

    /// What waits on each of `nodes` that answers in time.
    async fn waiting(&self, asking: &Asking<'_>, nodes: &[String]) -> Vec<(String, Arc<Waiting>)> {
        let names: Vec<String> = nodes.iter().take(NODES_MAX).cloned().collect();
        let mut telling = stream::iter(names)
            .map(|node| async move {
                let waiting = self.waiting_on(asking, &node).await;
                (node, waiting)
            })
            .buffer_unordered(NODES_MAX);
        let mut all = Vec::new();
        while let Some((node, waiting)) = telling.next().await {
            all.extend(waiting.map(|it| (node, it)));
        }
        drop(telling);
        all.sort_by(|a, b| a.0.cmp(&b.0));
        self.nodes.lock().retain(|name, _| nodes.contains(name));
        all
    }

    async fn waiting_on(&self, asking: &Asking<'_>, node: &str) -> Option<Arc<Waiting>> {
        let now = (asking.clock)();
        let known = self.nodes.lock().get(node).and_then(|it| it.waiting.clone());
        if let Some((_, waiting)) = known.filter(|it| now.since(it.0) < FRESH) {
            return Some(waiting);
        }
        let told: NodeJournals = self.ask(asking, node, NODE_JOURNALS).await.ok()?.unwrap_or_default();
        let of = |it: Journal| Some((node_journal::about(&it.metadata.namespace, &it.metadata.name)?, it.decisions));
        let waiting: Waiting = told.items.into_iter().take(NODE_JOURNALS_MAX).filter_map(of).collect();
        let waiting = Arc::new(waiting);
        self.nodes.lock().entry(node.to_owned()).or_default().waiting = Some((now, waiting.clone()));
        Some(waiting)
    }

    /// Nothing where the node knows no such path: its Corten is older.
    async fn ask<T: DeserializeOwned>(&self, asking: &Asking<'_>, node: &str, path: &str) -> Result<Option<T>, String> {
        let now = (asking.clock)();
        let silent = self.nodes.lock().get(node).and_then(|it| it.silent.clone());
        if let Some((_, why)) = silent.filter(|it| now.since(it.0) < SILENCE) {
            return Err(why);
        }
        let answer = tokio::time::timeout(DEADLINE, read(asking, node, path)).await;
        let answer = answer.unwrap_or_else(|_| Err("no answer within 1.5 s".to_owned()));
        let answer = answer.map_err(|it| format!("{node} does not answer: {it}"));
        let mut nodes = self.nodes.lock();
        let known = nodes.entry(node.to_owned()).or_default();
        known.silent = answer.as_ref().err().map(|it| ((asking.clock)(), it.clone()));
        answer
    }
}

/// Puts what nodes say beside what is known. What is waited for on all nodes alike is said once.
pub fn beside(decisions: &mut Vec<Decision>, said: Vec<Decision>) {
    for mut decision in said {
        let is_known = |reason: &str, message: &str| {
            decisions.iter().flat_map(|it| &it.waits).any(|it| it.reason == reason && it.message == message)
        };
        let n_before = decision.waits.len();
        decision.waits.retain(|it| !is_known(&it.reason, &it.message));
        if decision.waits.is_empty() && n_before > 0 && decision.steps.is_empty() {
            continue;
        }
        decisions.push(decision);
    }
}

#[derive(Deserialize)]
struct Pod {
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    node_name: String,
}

/// The one node that looks after an object, empty where there is none yet; `None` where every node does.
fn node_of(caches: &Caches, resource: &Resource, key: &Key) -> Option<String> {
    if *resource == NODES {
        return Some(key.name.clone());
    }
    if *resource != PODS {
        return None;
    }
    Some(cached::<Pod>(caches, &PODS, &key.namespace, &key.name).map(|it| it.spec.node_name).unwrap_or_default())
}

async fn read<T: DeserializeOwned>(asking: &Asking<'_>, node: &str, path: &str) -> Result<Option<T>, String> {
    // A Node that no kubelet has spoken for yet has nobody to ask.
    let Ok(node) = Node::find(asking.caches, node) else { return Ok(None) };
    let Some(kubelets) = asking.kubelets else { return Ok(None) };
    let response = match kubelets.dial(&node, &Method::GET, path, None).await {
        Ok(Dialed::Answered(response)) => response,
        Ok(Dialed::Switched(..)) => return Err("it left HTTP without being asked to".to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    if response.status() == http::StatusCode::NOT_FOUND {
        return Ok(None);
    }
    if !response.status().is_success() {
        let Status { message, code, .. } = complaint(response).await;
        return Err(format!("{code} {message}"));
    }
    let body = Limited::new(response.into_body(), BODY_BYTES_MAX).collect().await;
    let body = body.map_err(|it| it.to_string())?.to_bytes();
    serde_json::from_slice(&body).map(Some).map_err(|it| it.to_string())
}
