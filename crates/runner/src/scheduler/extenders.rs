//! Asks extenders over HTTP. Whatever one of them does ends within its timeout, and an answer may not be much larger than what it was
//! asked; nodes and pods that it was not asked about count for nothing.

mod client;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use bytes::Bytes;
use corten_api::resources::{NODES, PODS};
use corten_client::{Client, Error, ListParams, Transport};
use corten_meta::{Key, Status};
use corten_scheduler::{
    Advice, Consultation, Event, Extender, ExtenderFailure, NodeAdvice, NodeRefusal, NodeVictims, Question,
};
use futures_util::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};

use self::client::ExtenderClient;
use super::writes::{BoundPod, bind};
use crate::scheduler_measures::Binder;

const PAGE: u32 = 500;
/// No score is larger: sums of them stay numbers.
const SCORE_MAX: i64 = 1 << 20;

/// How an extender is reached, or what is wrong with its configuration.
pub type ReachExtender = Arc<dyn Fn(&Extender) -> Result<Arc<dyn Transport>, String> + Send + Sync>;

/// All extenders of the configuration.
pub(super) struct Extenders(Vec<ExtenderClient>);

/// Extenders are reached over the network, as they are configured.
pub(super) fn extenders_over_network() -> ReachExtender {
    Arc::new(client::over_network)
}

/// Can these extenders be asked as they are configured?
///
/// # Errors
/// What is wrong with one of them.
pub fn check_extenders(extenders: &[Extender]) -> Result<(), String> {
    extenders.iter().try_for_each(|it| client::over_network(it).map(drop))
}

/// Objects as the API server sent them, by name.
type Objects = BTreeMap<String, Bytes>;

/// Who is asked, and what about.
struct Asking<'a> {
    api: &'a Client,
    pod: Bytes,
    /// Read only where somebody wants whole nodes.
    nodes: Objects,
}

impl Extenders {
    pub(super) fn new(extenders: &[Extender], reach: &ReachExtender) -> Self {
        Self(extenders.iter().map(|it| ExtenderClient::new(it, reach)).collect())
    }

    pub(super) async fn consult(self: Arc<Self>, api: Client, consultation: Consultation) -> Event {
        let Consultation { pod, uid, id, question } = consultation;
        let answer = match question {
            Question::Nodes { nodes, filters, scorers } => {
                self.on_nodes(&api, (&pod, &uid), nodes, (&filters, &scorers)).await.map(Advice::Nodes)
            }
            Question::Victims { candidates, extenders } => {
                self.on_victims(&api, (&pod, &uid), candidates, &extenders).await.map(Advice::Victims)
            }
        };
        Event::Advised { pod, id, answer }
    }

    /// `findNodesThatPassExtenders`, then `prioritizeNodes` of those that are left.
    async fn on_nodes(
        &self,
        api: &Client,
        pod: (&Key, &str),
        mut nodes: Vec<String>,
        (filters, scorers): (&[usize], &[usize]),
    ) -> Result<NodeAdvice, ExtenderFailure> {
        let asked = || filters.iter().chain(scorers);
        let first = asked().next().copied().unwrap_or_default();
        let failed = |extender, message| ExtenderFailure { extender, message };
        let wants_nodes = asked().any(|it| !self.0[*it].of.node_cache_capable);
        let asking = Asking::new(api, pod, wants_nodes).await.map_err(|it| failed(first, it))?;
        let mut refused = BTreeMap::new();
        for idx in filters {
            if nodes.is_empty() {
                break;
            }
            match self.0[*idx].filter(&asking, &nodes).await {
                Ok((kept, reasons)) => {
                    let kept: BTreeSet<String> = kept.into_iter().collect();
                    let (stay, go): (Vec<_>, Vec<_>) = nodes.into_iter().partition(|it| kept.contains(it));
                    nodes = stay;
                    refused.extend(go.into_iter().map(|name| {
                        let reason = reasons.get(&name).cloned().unwrap_or_default();
                        (name, NodeRefusal { extender: *idx, reason })
                    }));
                }
                Err(error) if self.0[*idx].of.ignorable => {
                    tracing::debug!(extender = self.0[*idx].of.url_prefix, error, "an extender is ignored");
                }
                Err(error) => return Err(failed(*idx, error)),
            }
        }
        // Where only one is left there is nothing to be compared.
        let scorers = if nodes.len() > 1 { scorers } else { &[] };
        let mut scores: BTreeMap<String, i64> = BTreeMap::new();
        for (idx, found) in
            scorers.iter().zip(join_all(scorers.iter().map(|it| self.0[*it].scores(&asking, &nodes))).await)
        {
            let extender = &self.0[*idx].of;
            match found {
                Ok(found) => found.into_iter().for_each(|(node, score)| {
                    *scores.entry(node).or_default() += score.clamp(-SCORE_MAX, SCORE_MAX) * extender.weight;
                }),
                // As upstream: what scores is never missed.
                Err(error) => tracing::debug!(extender = extender.url_prefix, error, "an extender gives no scores"),
            }
        }
        Ok(NodeAdvice { nodes, refused, scores })
    }

    /// `callExtenders` of preemption: each is shown what the one before it has left.
    async fn on_victims(
        &self,
        api: &Client,
        pod: (&Key, &str),
        mut candidates: Vec<NodeVictims>,
        extenders: &[usize],
    ) -> Result<Vec<NodeVictims>, ExtenderFailure> {
        let first = extenders.first().copied().unwrap_or_default();
        let asking = Asking::new(api, pod, false).await;
        let asking = asking.map_err(|message| ExtenderFailure { extender: first, message })?;
        for idx in extenders {
            if candidates.is_empty() {
                break;
            }
            match self.0[*idx].victims(&asking, &candidates).await {
                Ok(left) => candidates = left,
                Err(error) if self.0[*idx].of.ignorable => {
                    tracing::debug!(extender = self.0[*idx].of.url_prefix, error, "an extender is ignored");
                }
                Err(message) => return Err(ExtenderFailure { extender: *idx, message }),
            }
        }
        Ok(candidates)
    }

    /// Has an extender bind the pod, and looks what became of it, whatever it says. Gives the pod's node.
    pub(super) async fn bind(
        &self,
        api: &Client,
        extender: usize,
        (pod, uid): (&Key, &str),
        node: &str,
    ) -> Result<Binder, Error> {
        const UNBOUND: &str = "it says that it bound the pod, which has no node";
        let extender = &self.0[extender];
        let answer = extender.bind((pod, uid), node).await;
        let found: BoundPod = api.get_as(&PODS, pod).await?;
        if found.metadata.uid == uid && !found.spec.node_name.is_empty() {
            let is_wanted = found.spec.node_name == node;
            return Ok(if is_wanted { Binder::This } else { Binder::Another(found.spec.node_name) });
        }
        if extender.of.ignorable {
            return bind(api, pod, uid, node).await;
        }
        let error = answer.err().unwrap_or_else(|| UNBOUND.into());
        Err(Status::unavailable(format!("extender {}: {error}", extender.of.url_prefix)).into())
    }
}

impl<'a> Asking<'a> {
    async fn new(api: &'a Client, (pod, uid): (&Key, &str), wants_nodes: bool) -> Result<Self, String> {
        let failed = |it: Error| it.to_string();
        let found = api.get(&PODS, pod).await.map_err(failed)?;
        if named(&found)?.uid != uid {
            return Err(format!("pod {pod} is another one by now"));
        }
        let mut asking = Self { api, pod: found, nodes: Objects::new() };
        if wants_nodes {
            asking.read_nodes().await.map_err(failed)?;
        }
        Ok(asking)
    }

    async fn read_nodes(&mut self) -> Result<(), Error> {
        let mut params = ListParams { limit: PAGE, ..ListParams::default() };
        loop {
            let list = self.api.list(&NODES, &params).await?;
            let named = list.items.into_iter().filter_map(|it| Some((named(&it).ok()?.name, it)));
            self.nodes.extend(named);
            if list.continue_token.is_empty() {
                return Ok(());
            }
            params.continue_token = list.continue_token;
        }
    }

    /// `ExtenderArgs`: whole nodes for who does not know them.
    fn arguments(&self, names: &[String], by_name: bool) -> Bytes {
        let mut body = b"{\"Pod\":".to_vec();
        body.extend_from_slice(&self.pod);
        if by_name {
            body.extend_from_slice(b",\"Nodes\":null,\"NodeNames\":");
            body.extend_from_slice(json!(names).to_string().as_bytes());
        } else {
            body.extend_from_slice(b",\"NodeNames\":null,\"Nodes\":{\"metadata\":{},\"items\":[");
            let found: Vec<&[u8]> = names.iter().filter_map(|it| self.nodes.get(it)).map(|it| &**it).collect();
            body.extend_from_slice(&found.join(&b","[..]));
            body.extend_from_slice(b"]}");
        }
        body.push(b'}');
        body.into()
    }
}

#[derive(Deserialize)]
struct Object {
    metadata: Named,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Named {
    name: String,
    uid: String,
}

fn named(object: &[u8]) -> Result<Named, String> {
    serde_json::from_slice::<Object>(object).map(|it| it.metadata).map_err(|it| it.to_string())
}

/// A field, however its letters are written: Go reads JSON so, and extenders are written for it.
fn field<'v>(value: &'v Value, name: &str) -> &'v Value {
    let found = value.as_object().and_then(|it| it.iter().find(|it| it.0.eq_ignore_ascii_case(name)));
    found.map_or(&Value::Null, |it| it.1)
}
