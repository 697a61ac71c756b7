//! One extender: its address, how it is trusted, and its verbs.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    sync::Arc,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use corten_client::{
    Client, Error, Transport,
    https::{HttpsTransport, PlainTransport},
    kubeconfig::RestConfig,
};
use corten_meta::Key;
use corten_scheduler::{Extender, NodeVictims, Pem};
use http::{Request, header};
use serde_json::{Map, Value, json};

use super::{Asking, ReachExtender, field};

/// An answer may be this much larger than twice what was asked.
const ANSWER_BYTES_MORE: usize = 1 << 20;

pub(super) struct ExtenderClient {
    pub(super) of: Extender,
    /// Or why there is none.
    client: Result<Client, String>,
}

/// Node names that are kept, and the reasons against others.
type Filtered = (Vec<String>, BTreeMap<String, String>);

impl ExtenderClient {
    /// Where it cannot be reached as it is configured, every question to it fails.
    pub(super) fn new(of: &Extender, reach: &ReachExtender) -> Self {
        let client = reach(of).map(|it| Client::new(it).with_deadline(of.timeout));
        Self { of: of.clone(), client }
    }

    pub(super) async fn filter(&self, asking: &Asking<'_>, nodes: &[String]) -> Result<Filtered, String> {
        let body = asking.arguments(nodes, self.of.node_cache_capable);
        let answer = self.ask(&self.of.filter_verb, body).await?;
        check(&answer, &self.of.filter_verb)?;
        let texts = |it: &Value| -> Vec<String> {
            it.as_array().into_iter().flatten().filter_map(|it| it.as_str().map(str::to_owned)).collect()
        };
        let name = |it: &Value| it["metadata"]["name"].as_str().map(str::to_owned);
        let names = field(&answer, "NodeNames");
        let kept = match self.of.node_cache_capable && names.is_array() {
            true => texts(names),
            false => {
                field(field(&answer, "Nodes"), "items").as_array().into_iter().flatten().filter_map(name).collect()
            }
        };
        let mut reasons = BTreeMap::new();
        // What is said of a node that stays so comes first.
        for map in ["FailedAndUnresolvableNodes", "FailedNodes"] {
            for (node, reason) in field(&answer, map).as_object().into_iter().flatten() {
                reasons.entry(node.clone()).or_insert_with(|| reason.as_str().unwrap_or_default().to_owned());
            }
        }
        // A node that is turned down is not kept, whatever else is said of it.
        let kept = kept.into_iter().filter(|it| !reasons.contains_key(it)).collect();
        Ok((kept, reasons))
    }

    /// Of the nodes that it was asked about.
    pub(super) async fn scores(&self, asking: &Asking<'_>, nodes: &[String]) -> Result<Vec<(String, i64)>, String> {
        let body = asking.arguments(nodes, self.of.node_cache_capable);
        let answer = self.ask(&self.of.prioritize_verb, body).await?;
        let list = answer.as_array().ok_or("its answer is no list of scores")?;
        let asked: BTreeSet<&str> = nodes.iter().map(|it| &**it).collect();
        let mut scores = BTreeMap::new();
        for it in list {
            let host = field(it, "Host").as_str().filter(|it| asked.contains(it));
            if let (Some(host), Some(score)) = (host, field(it, "Score").as_i64()) {
                scores.insert(host.to_owned(), score);
            }
        }
        Ok(scores.into_iter().collect())
    }

    /// The candidates that it leaves, with the victims that it leaves of those it was shown.
    pub(super) async fn victims(
        &self,
        asking: &Asking<'_>,
        candidates: &[NodeVictims],
    ) -> Result<Vec<NodeVictims>, String> {
        let mut victims = Map::new();
        for it in candidates {
            let mut pods = Vec::new();
            for (key, uid) in &it.victims {
                pods.push(match self.of.node_cache_capable {
                    true => json!({ "UID": uid }),
                    false => whole(asking.api, key, uid).await?,
                });
            }
            victims.insert(it.node.clone(), json!({ "Pods": pods, "NumPDBViolations": it.n_violations }));
        }
        let pod: Value = serde_json::from_slice(&asking.pod).map_err(|it| it.to_string())?;
        let body = match self.of.node_cache_capable {
            true => json!({ "Pod": pod, "NodeNameToVictims": null, "NodeNameToMetaVictims": victims }),
            false => json!({ "Pod": pod, "NodeNameToVictims": victims, "NodeNameToMetaVictims": null }),
        };
        let answer = self.ask(&self.of.preempt_verb, body.to_string().into()).await?;
        check(&answer, &self.of.preempt_verb)?;
        let left = field(&answer, "NodeNameToMetaVictims");
        let left_on = |candidate: &NodeVictims| {
            let told = left.get(&candidate.node)?;
            let uids: BTreeSet<&str> =
                field(told, "Pods").as_array()?.iter().filter_map(|it| field(it, "UID").as_str()).collect();
            let victims: Vec<_> = candidate.victims.iter().filter(|it| uids.contains(&*it.1)).cloned().collect();
            let n_violations = field(told, "NumPDBViolations").as_u64().and_then(|it| it.try_into().ok()).unwrap_or(0);
            (!victims.is_empty()).then(|| NodeVictims { node: candidate.node.clone(), victims, n_violations })
        };
        Ok(candidates.iter().filter_map(left_on).collect())
    }

    pub(super) async fn bind(&self, (pod, uid): (&Key, &str), node: &str) -> Result<(), String> {
        let body = json!({ "PodName": pod.name, "PodNamespace": pod.namespace, "PodUID": uid, "Node": node });
        check(&self.ask(&self.of.bind_verb, body.to_string().into()).await?, &self.of.bind_verb)
    }

    async fn ask(&self, verb: &str, body: Bytes) -> Result<Value, String> {
        let client = self.client.clone()?.with_answers_up_to(2 * body.len() + ANSWER_BYTES_MORE);
        let request = Request::post(format!("/{verb}")).header(header::CONTENT_TYPE, "application/json").body(body);
        let request = request.map_err(|it| it.to_string())?;
        let answered = tokio::time::timeout(self.of.timeout, client.request(request)).await;
        let answer = match answered {
            Err(_) => return Err(format!("no answer to {verb} within {:?}", self.of.timeout)),
            Ok(Err(Error::Transport(error))) => return Err(error.0),
            Ok(Err(error)) => return Err(format!("{verb} failed: {error}")),
            Ok(Ok(answer)) => answer.into_body(),
        };
        serde_json::from_slice(&answer).map_err(|error| format!("the answer to {verb} cannot be read: {error}"))
    }
}

pub(super) fn over_network(of: &Extender) -> Result<Arc<dyn Transport>, String> {
    Ok(match of.url_prefix.starts_with("https://") {
        false => Arc::new(PlainTransport::new(&of.url_prefix).map_err(|it| it.to_string())?),
        true => Arc::new(HttpsTransport::new(&target(of)?).map_err(|it| it.to_string())?),
    })
}

/// It may say that it failed, or something that says nothing. (Go reads `null` as an answer without fields.)
fn check(answer: &Value, verb: &str) -> Result<(), String> {
    if !(answer.is_object() || answer.is_null()) {
        return Err(format!("the answer to {verb} cannot be read: it is no object"));
    }
    match field(answer, "Error").as_str() {
        None | Some("") => Ok(()),
        Some(error) => Err(error.to_owned()),
    }
}

async fn whole(api: &Client, pod: &Key, uid: &str) -> Result<Value, String> {
    let found: Value = api.get_as(&corten_api::resources::PODS, pod).await.map_err(|it| it.to_string())?;
    if found["metadata"]["uid"] == *uid { Ok(found) } else { Err(format!("pod {pod} is another one by now")) }
}

/// As upstream: over HTTPS, an extender that there is no authority for is not checked where `enableHTTPS` is set.
fn target(of: &Extender) -> Result<RestConfig, String> {
    let ca = read(&of.tls.ca)?;
    let (certificate, key) = (read(&of.tls.certificate)?, read(&of.tls.key)?);
    Ok(RestConfig {
        server: of.url_prefix.clone(),
        insecure_skip_tls_verify: of.tls.insecure || (of.enable_https && ca.is_empty()),
        ca,
        identity: (!certificate.is_empty()).then_some((certificate, key)),
        server_name: Some(of.tls.server_name.clone()).filter(|it| !it.is_empty()),
        ..RestConfig::default()
    })
}

fn read(pem: &Pem) -> Result<Vec<u8>, String> {
    match pem {
        Pem::None => Ok(Vec::new()),
        Pem::Data(data) => BASE64_STANDARD.decode(data).map_err(|it| format!("its tlsConfig is no base64: {it}")),
        Pem::File(path) => fs::read(path).map_err(|it| format!("cannot read {path}: {it}")),
    }
}
