//! A simulated node: pods that are bound to it start after a while, now and then one is evicted, deleted ones go.

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
use corten_meta::{Key, ObjectMeta};
use corten_runner::Clock;
use futures_util::{StreamExt, stream::FuturesUnordered};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep};

use crate::{dice::Dice, line::Weather};

pub(crate) const CPU_MILLIS: i64 = 2400;
pub(crate) const MEMORY: &str = "8Gi";
pub(crate) const PODS_MAX: i64 = 40;

const RETRY: Duration = Duration::from_secs(1);

/// One node and its agent. It keeps nothing: crashed and begun anew it finds all it needs in the API.
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) dice: Dice,
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
        loop {
            std::future::poll_fn(|context| agent.poll(context)).await;
            tokio::task::yield_now().await;
        }
    }

    async fn register(&self) -> Result<(), Error> {
        let node = json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": self.name}});
        match self.client.create(&NODES, "", &node).await {
            Err(error) if !error.is_already_exists() => return Err(error),
            _ => {}
        }
        let now = (self.clock)();
        let resources = json!({"cpu": format!("{CPU_MILLIS}m"), "memory": MEMORY, "pods": PODS_MAX.to_string()});
        let ready = json!({"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready",
                           "lastHeartbeatTime": now, "lastTransitionTime": now});
        let status = json!({"capacity": resources, "allocatable": resources, "conditions": [ready]});
        let key = Key::cluster(&*self.name);
        self.client.patch(&NODES, &key, "status", &PatchType::Merge, &json!({"status": status})).await?;
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
        if matches!(&*pod.status.phase, "Running" | "Failed" | "Succeeded") {
            return None;
        }
        let is_evicted = self.weather.is_bad.load(Ordering::Relaxed) && self.dice.percent(3);
        let patch = self.status(is_evicted, &pod.metadata);
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
