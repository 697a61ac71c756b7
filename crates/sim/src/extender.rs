//! An extender as the scheduler's configuration may name one: while the weather is bad it hangs, breaks off, lies and forgets; by good
//! weather it lets everything through.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use corten_api::resources::PODS;
use corten_client::{Body, BoxFuture, Client, Transport, TransportError};
use corten_meta::Key;
use corten_runner::ReachExtender;
use corten_scheduler::Extender;
use http::{Request, Response};
use serde_json::{Map, Value, json};

use crate::{
    line::{Weather, whole},
    seeded_rng::SeededRng,
};

const TIMEOUT: Duration = Duration::from_secs(2);

/// One that is asked everything that an extender can be asked.
pub(crate) fn configured(dice: &SeededRng) -> Extender {
    let verb = |it: &str| it.to_owned();
    Extender {
        url_prefix: "http://extender".into(),
        filter_verb: verb("filter"),
        prioritize_verb: verb("prioritize"),
        preempt_verb: verb("preempt"),
        bind_verb: if dice.percent(50) { verb("bind") } else { String::new() },
        weight: 1,
        timeout: TIMEOUT,
        node_cache_capable: dice.percent(50),
        ignorable: dice.percent(50),
        ..Extender::default()
    }
}

#[derive(Clone)]
pub(crate) struct FlakyExtender {
    pub(crate) weather: Arc<Weather>,
    pub(crate) dice: SeededRng,
    /// What it binds Pods with.
    pub(crate) api: Client,
}

impl FlakyExtender {
    pub(crate) fn reached(self) -> ReachExtender {
        Arc::new(move |_| Ok(Arc::new(self.clone())))
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Body>, TransportError> {
        let asked: Value = serde_json::from_slice(request.body()).map_err(|it| TransportError(it.to_string()))?;
        tokio::time::sleep(self.dice.millis(1, 50)).await;
        let is_bad = self.weather.is_bad();
        let fate = if is_bad { self.dice.below(100) } else { 100 };
        match fate {
            0..5 => tokio::time::sleep(TIMEOUT * 4).await,
            5..10 => return Err(TransportError("the extender breaks off".into())),
            10..15 => return answered(500, &json!("the extender fails")),
            15..20 => return answered(200, &json!({ "Error": "the extender says no" })),
            20..23 => return answered(200, &json!([[], {}, "nonsense"])),
            _ => {}
        }
        let answer = match request.uri().path() {
            "/filter" => self.filter(&asked, is_bad),
            "/prioritize" => self.scores(&asked),
            "/preempt" => self.victims(&asked, is_bad),
            _ => self.bind(&asked, is_bad).await,
        };
        answered(200, &answer)
    }

    /// Of bad nodes it says so, or just leaves them out; it knows nodes that nobody asked about.
    fn filter(&self, asked: &Value, is_bad: bool) -> Value {
        let (mut kept, mut failed) = (Vec::new(), Map::new());
        for node in node_names(asked) {
            match if is_bad { self.dice.below(10) } else { 9 } {
                0 => drop(failed.insert(node.clone(), json!("the extender does not like it"))),
                1 => {}
                _ => kept.push(node),
            }
        }
        if is_bad && self.dice.percent(20) {
            kept.push("nowhere".into());
        }
        let nodes: Vec<Value> = kept.iter().map(|it| json!({ "metadata": { "name": it } })).collect();
        match asked["NodeNames"].is_array() {
            true => json!({ "NodeNames": kept, "FailedNodes": failed }),
            false => json!({ "Nodes": { "items": nodes }, "FailedNodes": failed }),
        }
    }

    fn scores(&self, asked: &Value) -> Value {
        let score = |node| json!({ "Host": node, "Score": self.dice.below(10) });
        node_names(asked).into_iter().chain(["nowhere".into()]).map(score).collect()
    }

    /// It spares some victims, and some nodes.
    fn victims(&self, asked: &Value, is_bad: bool) -> Value {
        let field = if asked["NodeNameToVictims"].is_object() { "NodeNameToVictims" } else { "NodeNameToMetaVictims" };
        let mut left = Map::new();
        for (node, victims) in asked[field].as_object().into_iter().flatten() {
            let pods = victims["Pods"].as_array().into_iter().flatten();
            let uid = |it: &Value| it["UID"].as_str().or(it["metadata"]["uid"].as_str()).map(str::to_owned);
            let uids = pods.filter_map(uid).filter(|_| !is_bad || self.dice.percent(80));
            let uids: Vec<Value> = uids.map(|it| json!({ "UID": it })).collect();
            if !is_bad || self.dice.percent(80) {
                left.insert(node.clone(), json!({ "Pods": uids, "NumPDBViolations": victims["NumPDBViolations"] }));
            }
        }
        json!({ "NodeNameToMetaVictims": left })
    }

    /// It says that it did what it did not do, and the other way round.
    async fn bind(&self, asked: &Value, is_bad: bool) -> Value {
        let text = |name: &str| asked[name].as_str().unwrap_or_default();
        let pod = Key::new(text("PodNamespace"), text("PodName"));
        let fate = if is_bad { self.dice.below(10) } else { 9 };
        let metadata = json!({ "name": pod.name, "namespace": pod.namespace, "uid": text("PodUID") });
        let binding = json!({ "kind": "Binding", "apiVersion": "v1", "metadata": metadata,
                              "target": { "kind": "Node", "name": text("Node") } });
        let bound = match fate {
            0 => Ok(()),
            _ => self.api.create_subresource(&PODS, &pod, "binding", &binding).await.map(drop),
        };
        match bound {
            Ok(()) if fate == 1 => json!({ "Error": "the extender did it, and says that it failed" }),
            Ok(()) => json!({}),
            Err(error) => json!({ "Error": error.to_string() }),
        }
    }
}

impl Transport for FlakyExtender {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Body>, TransportError>> {
        Box::pin(self.exchange(request))
    }
}

fn node_names(asked: &Value) -> Vec<String> {
    let names = asked["NodeNames"].as_array().into_iter().flatten();
    let whole = asked["Nodes"]["items"].as_array().into_iter().flatten().map(|it| &it["metadata"]["name"]);
    names.chain(whole).filter_map(|it| it.as_str().map(str::to_owned)).collect()
}

fn answered(code: u16, answer: &Value) -> Result<Response<Body>, TransportError> {
    let response = Response::builder().status(code).body(whole(answer.to_string().into()));
    response.map_err(|it| TransportError(it.to_string()))
}
