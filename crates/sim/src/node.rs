//! A simulated node: pods that are bound to it start after a while, now and then one is evicted, deleted ones go.

mod heartbeat;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering},
    task::Poll,
    time::Duration,
};

use corten_api::resources::{NODES, PODS};
use corten_client::{
    BoxFuture, Client, DeleteParams, Error, Identity, Informer, InformerEvent, InformerParams, PatchType, decode,
};
use corten_meta::{Key, ObjectMeta, Time};
use corten_runner::Clock;
use futures_util::{StreamExt, stream::FuturesUnordered};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep};

use crate::{line::Weather, node::heartbeat::beat, seeded_rng::SeededRng};

pub(crate) const CPU_MILLIS: i64 = 2400;
pub(crate) const MEMORY: &str = "8Gi";
pub(crate) const PODS_MAX: i64 = 40;

const RETRY: Duration = Duration::from_secs(1);

/// What a node says of itself.
pub(crate) fn ready(now: Time) -> Value {
    let resources = json!({"cpu": format!("{CPU_MILLIS}m"), "memory": MEMORY, "pods": PODS_MAX.to_string()});
    let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready",
                       "lastHeartbeatTime": now, "lastTransitionTime": now});
    json!({"status": {"capacity": resources, "allocatable": resources, "conditions": [ready]}})
}

/// One node and its agent. It keeps nothing: crashed and begun anew it finds all it needs in the API.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) dice: SeededRng,
    pub(crate) weather: Arc<Weather>,
}

#[derive(Clone, Deserialize)]
struct Pod {
    metadata: ObjectMeta,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Default, Deserialize)]
struct Status {
    #[serde(default)]
    phase: String,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Clone, Deserialize)]
struct Condition {
    r#type: String,
    status: String,
}

impl Status {
    /// Others say that it is not ready; only the node can know.
    fn is_doubted(&self) -> bool {
        self.phase == "Running" && self.conditions.iter().any(|it| it.r#type == "Ready" && it.status != "True")
    }
}

struct Agent {
    node: Node,
    informer: Informer<Pod>,
    pods: BTreeMap<Key, Pod>,
    /// When to look at a pod next.
    alarms: BTreeSet<(Instant, Key)>,
    acting: FuturesUnordered<BoxFuture<'static, (Key, Result<(), Error>)>>,
    busy: BTreeSet<Key>,
    sleep: std::pin::Pin<Box<Sleep>>,
}

impl Node {
    pub(crate) async fn run(self) {
        while let Err(error) = self.register().await {
            tracing::debug!(%error, "a node cannot register");
            tokio::time::sleep(RETRY).await;
        }
        let field_selector = format!("spec.nodeName={}", self.name);
        let params = InformerParams { field_selector, ..InformerParams::all(PODS) }.seeded_by(&self.name);
        let heartbeat = beat(self.client.clone(), self.name.clone(), self.clock.clone());
        let informer = Informer::decoding(self.client.clone(), params, |bytes| {
            let pod: Pod = decode(&bytes)?;
            Ok((Identity::of(&pod.metadata), pod))
        });
        let mut agent = Agent {
            node: self,
            informer,
            pods: BTreeMap::new(),
            alarms: BTreeSet::new(),
            acting: FuturesUnordered::new(),
            busy: BTreeSet::new(),
            sleep: Box::pin(tokio::time::sleep(RETRY)),
        };
        let act = async {
            loop {
                std::future::poll_fn(|context| agent.poll(context)).await;
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(heartbeat, act);
    }

    async fn register(&self) -> Result<(), Error> {
        let node = json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": self.name}});
        match self.client.create(&NODES, "", &node).await {
            Err(error) if !error.is_already_exists() => return Err(error),
            _ => {}
        }
        let key = Key::cluster(&*self.name);
        self.client.patch(&NODES, &key, "status", &PatchType::Merge, &ready((self.clock)())).await?;
        Ok(())
    }

    /// What a pod needs from its node now, if anything.
    fn act(&self, pod: &Pod) -> Option<BoxFuture<'static, (Key, Result<(), Error>)>> {
        let (client, key, uid) = (self.client.clone(), pod.metadata.key(), pod.metadata.uid.clone());
        if pod.metadata.is_deleting() {
            let params = DeleteParams { grace_seconds: Some(0), uid: Some(uid), ..DeleteParams::default() };
            return Some(Box::pin(async move {
                let gone = match client.delete(&PODS, &key, &params).await {
                    Err(error) if !error.is_not_found() && !error.is_conflict() => Err(error),
                    _ => Ok(()),
                };
                (key, gone)
            }));
        }
        let is_settled = matches!(&*pod.status.phase, "Running" | "Failed" | "Succeeded");
        if is_settled && pod.metadata.controller().is_some_and(|it| it.kind == "Job") {
            return self.end(pod);
        }
        if is_settled && !pod.status.is_doubted() {
            return None;
        }
        let is_evicted = self.weather.is_bad.load(Ordering::Relaxed) && self.dice.percent(3);
        let patch = self.status(is_evicted, &pod.metadata);
        Some(Box::pin(async move {
            let told = client.patch(&PODS, &key, "status", &PatchType::Merge, &patch).await;
            (key, told.map(|_| ()))
        }))
    }

    /// A job's pod has run: now and then it fails.
    fn end(&self, pod: &Pod) -> Option<BoxFuture<'static, (Key, Result<(), Error>)>> {
        if pod.status.phase != "Running" {
            return None;
        }
        let code = i32::from(self.dice.percent(15));
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let now = (self.clock)();
        let terminated = json!({"exitCode": code, "finishedAt": now});
        let patch = json!({
            "metadata": {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version},
            "status": {
                "phase": phase,
                "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": now}],
                "containerStatuses": [{"name": "c", "image": "app", "imageID": "", "ready": false, "restartCount": 0,
                                       "state": {"terminated": terminated}}],
            },
        });
        let (client, key) = (self.client.clone(), pod.metadata.key());
        Some(Box::pin(async move {
            let told = client.patch(&PODS, &key, "status", &PatchType::Merge, &patch).await;
            (key, told.map(|_| ()))
        }))
    }

    /// Conditional on what the agent has seen: its view may be older than what it told last, and an ended pod stays ended.
    fn status(&self, is_evicted: bool, seen: &ObjectMeta) -> Value {
        let now = (self.clock)();
        let ready = if is_evicted { "False" } else { "True" };
        let condition = |name: &str, value: &str| json!({"type": name, "status": value, "lastTransitionTime": now});
        let conditions = [
            condition("PodScheduled", "True"),
            condition("Initialized", "True"),
            condition("ContainersReady", ready),
            condition("Ready", ready),
        ];
        let phase = if is_evicted { "Failed" } else { "Running" };
        json!({
            "metadata": {"uid": seen.uid, "resourceVersion": seen.resource_version},
            "status": {"phase": phase, "conditions": conditions, "startTime": now},
        })
    }
}

impl Agent {
    fn poll(&mut self, context: &mut std::task::Context<'_>) -> Poll<()> {
        let mut poll = Poll::Pending;
        while let Poll::Ready(event) = self.informer.poll_event(context) {
            poll = Poll::Ready(());
            match event {
                InformerEvent::Applied(pod, Identity { key, .. }) => {
                    self.alarms.insert((Instant::now() + self.node.dice.millis(50, 4000), key.clone()));
                    self.pods.insert(key, pod);
                }
                InformerEvent::Deleted(meta) => {
                    self.pods.remove(&meta.key());
                }
                InformerEvent::Synced(_) => {}
            }
        }
        while let Poll::Ready(Some((key, result))) = self.acting.poll_next_unpin(context) {
            poll = Poll::Ready(());
            self.busy.remove(&key);
            if result.is_err() {
                self.alarms.insert((Instant::now() + RETRY, key));
            }
        }
        let now = Instant::now();
        while self.alarms.first().is_some_and(|it| it.0 <= now) {
            poll = Poll::Ready(());
            let Some((_, key)) = self.alarms.pop_first() else { break };
            self.look(key, now);
        }
        let next = self.alarms.first().map_or(now + Duration::from_secs(600), |it| it.0);
        self.sleep.as_mut().reset(next);
        if self.sleep.as_mut().poll(context).is_ready() {
            poll = Poll::Ready(());
        }
        poll
    }

    fn look(&mut self, key: Key, now: Instant) {
        if self.busy.contains(&key) {
            self.alarms.insert((now + RETRY, key));
            return;
        }
        let Some(action) = self.pods.get(&key).and_then(|it| self.node.act(it)) else { return };
        self.busy.insert(key);
        self.acting.push(action);
    }
}
