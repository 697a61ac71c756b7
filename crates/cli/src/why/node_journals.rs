//! Journals of a cluster whose API server is upstream's, which has none: Corten's nodes are asked for theirs, through it. What
//! upstream's controllers and scheduler wait for is read off the objects, as far as these show it.

use corten_api::{
    core::v1::{Node, Pod},
    resources::{JOURNALS, NODES, PODS, REPLICA_SETS},
    version::is_own,
};
use corten_client::{Client, Error, ListParams};
use corten_meta::{Key, Resource};
use corten_reconcile::{
    Actor, Decision, Journal, Wait,
    node_journal::{self, NODE_JOURNALS, NodeJournals},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    fields::{key_of, text},
    reader::{Answer, Listed, PAGE, Source},
};

/// So many nodes are asked at most, one after the other.
const NODES_MAX: usize = 32;

/// Where objects come from where journals are the nodes'.
struct OfNodes<'c> {
    client: &'c Client,
    /// The API server's release.
    version: String,
}

/// Where `corten why` reads from: the server alone where it is Corten's.
pub(crate) async fn source(client: &Client) -> Box<dyn Source + '_> {
    match client.server_version().await {
        Ok(version) if !is_own(&version) => Box::new(OfNodes { client, version }),
        // Who gives no answer gives none to what is asked next, either.
        _ => Box::new(client.clone()),
    }
}

impl OfNodes<'_> {
    /// What a node's kubelet answers; nothing of one that is upstream's.
    async fn of<T: DeserializeOwned>(&self, node: &str, path: &str) -> Result<Option<T>, Error> {
        match self.client.get_path(&format!("{}/proxy{path}", NODES.path(&Key::cluster(node)))).await {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn nodes(&self) -> Result<Vec<String>, Error> {
        let nodes = self.client.list_as::<Node>(&NODES, &ListParams::default()).await?;
        let own = nodes.into_iter().filter(|it| {
            let version = it.status.as_ref().and_then(|it| it.node_info.as_ref()).map(|it| &it.kubelet_version);
            version.is_some_and(|it| is_own(it))
        });
        Ok(own.filter_map(|it| it.metadata.name).take(NODES_MAX).collect())
    }

    /// The nodes that may have a journal of an object.
    async fn nodes_about(&self, resource: &Resource, key: &Key) -> Result<Vec<String>, Error> {
        if *resource == NODES {
            return Ok(vec![key.name.clone()]);
        }
        if *resource == PODS {
            let pod: Pod = self.client.get_as(&PODS, key).await?;
            return Ok(pod.spec.and_then(|it| it.node_name).into_iter().collect());
        }
        self.nodes().await
    }

    async fn journal(&self, journal: &Key) -> Result<Value, Error> {
        let Some((resource, key)) = node_journal::about(&journal.namespace, &journal.name) else {
            return self.of_controllers(journal).await.map(|it| json!(it));
        };
        let mut found = Journal::default();
        if resource == PODS {
            let pod = Source::get(self.client, &PODS, &key).await?;
            found.decisions.extend(unscheduled(&pod).map(|it| decision("scheduler", it)));
        }
        for node in self.nodes_about(&resource, &key).await? {
            let path = format!("{NODE_JOURNALS}/{}/{}", journal.namespace, journal.name);
            match self.of::<Journal>(&node, &path).await {
                Ok(told) => found.decisions.extend(told.into_iter().flat_map(|it| it.decisions)),
                Err(error) => found.unanswered.push(format!("{node} does not answer: {error}")),
            }
        }
        Ok(json!(found))
    }

    /// What a workload waits for: the first of its own that is not ready.
    async fn of_controllers(&self, journal: &Key) -> Result<Journal, Error> {
        let mut found = Journal::default();
        let Some((kind, name)) = corten_kinds::by_journal(&journal.name) else { return Ok(found) };
        let Some((_, owned)) = OWNED.iter().find(|it| it.0 == &*kind.singular) else { return Ok(found) };
        let key = Key::new(&*journal.namespace, name);
        let owner = Source::get(self.client, &kind.resource, &key).await?;
        let params = ListParams { namespace: key.namespace.clone(), limit: PAGE, ..ListParams::default() };
        let objects = Source::list(self.client, owned, &params).await?.items;
        let first = objects.iter().find(|it| is_owned(it, &owner) && lacks(it));
        found.decisions.extend(first.map(|it| decision(&kind.singular, not_ready(owned, &key_of(it).name))));
        Ok(found)
    }

    async fn waiting(&self, namespace: &str) -> Result<Listed, Error> {
        let mut items = Vec::new();
        for node in self.nodes().await? {
            // The survey says of a node that is silent that it is.
            let told = self.of::<NodeJournals>(&node, NODE_JOURNALS).await.ok().flatten().unwrap_or_default();
            let is_asked = |it: &Journal| namespace.is_empty() || it.metadata.namespace == namespace;
            items.extend(told.items.into_iter().filter(is_asked).map(|it| json!(it)));
        }
        Ok(Listed { items, next: String::new() })
    }
}

/// Workloads, and what they make.
static OWNED: [(&str, Resource); 6] = [
    ("daemonset", PODS),
    ("deployment", REPLICA_SETS),
    ("job", PODS),
    ("replicaset", PODS),
    ("replicationcontroller", PODS),
    ("statefulset", PODS),
];

fn is_owned(object: &Value, owner: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().any(|it| it["controller"] == true && it["uid"] == owner["metadata"]["uid"])
}

/// A Pod that is not ready and has not done its work, or a ReplicaSet with fewer ready Pods than it wants.
fn lacks(object: &Value) -> bool {
    if object["spec"]["replicas"].is_u64() {
        return object["status"]["readyReplicas"].as_u64().unwrap_or(0)
            < object["spec"]["replicas"].as_u64().unwrap_or(0);
    }
    let conditions = object["status"]["conditions"].as_array();
    let is_ready = conditions.into_iter().flatten().any(|it| it["type"] == "Ready" && it["status"] == "True");
    !is_ready && object["status"]["phase"] != "Succeeded"
}

fn not_ready(resource: &Resource, name: &str) -> Wait {
    let (kind, message) = (&*resource.kind, format!("{} {name} is not ready", resource.kind));
    Wait::new("NotReady", message, Actor::Cluster).on(kind, name)
}

/// Why the scheduler has no node for a Pod.
fn unscheduled(pod: &Value) -> Option<Wait> {
    let conditions = pod["status"]["conditions"].as_array();
    let told = conditions.into_iter().flatten().find(|it| it["type"] == "PodScheduled" && it["status"] == "False")?;
    Some(Wait::new(text(told, "/reason"), text(told, "/message"), Actor::Operator))
}

fn decision(by: &str, wait: Wait) -> Decision {
    Decision { by: by.to_owned(), waits: vec![wait], ..Decision::default() }
}

impl Source for OfNodes<'_> {
    fn get<'a>(&'a self, resource: &'a Resource, key: &'a Key) -> Answer<'a, Result<Value, Error>> {
        if *resource == JOURNALS {
            return Box::pin(self.journal(key));
        }
        Source::get(self.client, resource, key)
    }

    fn list<'a>(&'a self, resource: &'a Resource, params: &'a ListParams) -> Answer<'a, Result<Listed, Error>> {
        if *resource == JOURNALS {
            return Box::pin(self.waiting(&params.namespace));
        }
        Source::list(self.client, resource, params)
    }

    fn list_metadata<'a>(
        &'a self,
        resource: &'a Resource,
        params: &'a ListParams,
    ) -> Answer<'a, Result<Listed, Error>> {
        Source::list_metadata(self.client, resource, params)
    }

    fn groups<'a>(&'a self) -> Answer<'a, Result<Vec<Value>, Error>> {
        self.client.groups()
    }

    fn log<'a>(&'a self, pod: &'a Key, container: &'a str, previous: bool) -> Answer<'a, Result<String, Error>> {
        self.client.log(pod, container, previous)
    }

    fn ready<'a>(&'a self, check: &'a str) -> Answer<'a, Result<(), Error>> {
        self.client.ready(check)
    }

    fn hides(&self) -> Option<String> {
        Some(format!("what Kubernetes's own parts wait for: its API server, {}, keeps no journals", self.version))
    }
}

#[cfg(test)]
mod tests;
