//! Gives the provisioner its hands: feeds it claims, volumes and classes, has drivers do what it decides, and writes what
//! came of that to the API.

use std::{
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use corten_api::{
    core::v1::{PersistentVolume, PersistentVolumeClaim},
    resources::{
        CSI_DRIVERS, CSI_NODES, CSI_STORAGE_CAPACITIES, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES,
        STORAGE_CLASSES,
    },
    storage::v1::StorageClass,
};
use corten_client::{
    BoxFuture, Client, DeleteParams, Error, Identity, Informer, InformerEvent, InformerParams, PatchType, decode,
};
use corten_meta::{Key, ObjectMeta, Resource};
use corten_provisioner::{
    CAPACITY_NAMESPACE, Config, Created, DriverFacts, Effect, Event, FINALIZER, Failure, Growth, Job, MESSAGE, Outcome,
    Provisioner, Published, Request, capacity_name, capacity_object, csi_driver, csi_node, default_class,
    volume_object,
};
use futures_util::{FutureExt, StreamExt, stream::FuturesUnordered};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep};

use crate::{Clock, EventRecorder};

/// Why a driver refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub message: String,
    /// There is no room for it.
    pub is_exhausted: bool,
    /// The same will be refused again.
    pub is_infeasible: bool,
}

/// A driver of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDriver {
    pub facts: DriverFacts,
    /// The node's name for the driver.
    pub node_id: String,
    /// How many of its volumes the node takes.
    pub limit: Option<i32>,
}

/// Asks the drivers of one node.
pub trait VolumeHands: Send + Sync + 'static {
    /// All drivers there are; the first call answers at once, later ones when one came or went.
    fn drivers(&self) -> BoxFuture<'_, Vec<NodeDriver>>;
    fn create(&self, request: Request) -> BoxFuture<'_, Result<Created, Refusal>>;
    fn delete(&self, driver: String, handle: String) -> BoxFuture<'_, Result<(), Refusal>>;
    /// True: the node's part is to be done yet.
    fn expand(&self, driver: String, handle: String, bytes: u64) -> BoxFuture<'_, Result<bool, Refusal>>;
    fn expand_on_node(&self, driver: String, handle: String, bytes: u64) -> BoxFuture<'_, Result<(), Refusal>>;
    /// What is left, and the largest volume; `None`: the driver does not say.
    fn capacity(&self, of: Published) -> BoxFuture<'_, Option<(u64, Option<u64>)>>;
    /// The name of the driver that is built in, where the cluster was not given its class yet.
    fn built_in(&self) -> BoxFuture<'_, BuiltIn>;
    /// The cluster has the class: from now on it is its users'.
    fn class_is_made(&self) -> BoxFuture<'_, ()>;
}

/// The driver that is built in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltIn {
    pub driver: String,
    pub has_class: bool,
}

/// What the loop is given.
pub struct ProvisionerSettings {
    pub node_name: String,
    pub client: Client,
    pub hands: Arc<dyn VolumeHands>,
    pub clock: Clock,
}

const JOBS: usize = 8;
const BATCH: usize = 256;
const IDLE: Duration = Duration::from_secs(3600);
/// A driver may take minutes; one that hangs holds up its own volume alone.
const JOB_PATIENCE: Duration = Duration::from_secs(300);
const RETRY: Duration = Duration::from_secs(2);
const CONFLICTS_MAX: u32 = 5;

/// Runs until `shutdown` is ready. What is under way is given up, and begun again by the next run.
pub async fn run_provisioner(settings: ProvisionerSettings, shutdown: impl Future<Output = ()> + Send) {
    let mut shutdown = pin!(shutdown);
    let mut running = ProvisionerLoop::new(settings);
    std::future::poll_fn(|context| {
        if shutdown.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        running.poll(context)
    })
    .await;
}

type Work = BoxFuture<'static, Option<Event>>;

struct ProvisionerLoop {
    mind: Provisioner,
    client: Client,
    hands: Arc<dyn VolumeHands>,
    clock: Clock,
    claims: Informer<Box<PersistentVolumeClaim>>,
    volumes: Informer<Box<PersistentVolume>>,
    classes: Informer<Box<StorageClass>>,
    synced: [bool; 3],
    drivers: BoxFuture<'static, Vec<NodeDriver>>,
    /// Writes what the cluster has from the start, and what the node has.
    introduction: Option<BoxFuture<'static, ()>>,
    waiting: std::collections::VecDeque<Work>,
    running: FuturesUnordered<Work>,
    recorders: std::collections::BTreeMap<String, EventRecorder>,
    tick_at: Option<Instant>,
    alarm: Pin<Box<Sleep>>,
}

fn informer<T: DeserializeOwned + 'static>(client: &Client, resource: Resource, node: &str) -> Informer<Box<T>> {
    #[derive(Deserialize)]
    struct OnlyMeta {
        metadata: ObjectMeta,
    }
    let params = InformerParams::all(resource).seeded_by(node);
    Informer::decoding(client.clone(), params, |bytes| {
        let meta: OnlyMeta = decode(&bytes)?;
        Ok((Identity::of(&meta.metadata), decode(&bytes)?))
    })
}

fn drivers(hands: &Arc<dyn VolumeHands>) -> BoxFuture<'static, Vec<NodeDriver>> {
    let hands = hands.clone();
    Box::pin(async move { hands.drivers().await })
}

impl ProvisionerLoop {
    fn new(settings: ProvisionerSettings) -> Self {
        let ProvisionerSettings { node_name, client, hands, clock } = settings;
        Self {
            claims: informer(&client, PERSISTENT_VOLUME_CLAIMS, &node_name),
            volumes: informer(&client, PERSISTENT_VOLUMES, &node_name),
            classes: informer(&client, STORAGE_CLASSES, &node_name),
            synced: [false; 3],
            drivers: drivers(&hands),
            introduction: None,
            waiting: std::collections::VecDeque::new(),
            running: FuturesUnordered::new(),
            recorders: std::collections::BTreeMap::new(),
            tick_at: None,
            alarm: Box::pin(tokio::time::sleep(IDLE)),
            mind: Provisioner::new(Config { node_name }),
            client,
            hands,
            clock,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut events = self.news(context);
            events.extend(self.poll_work(context));
            let now = Instant::now();
            if self.tick_at.is_some_and(|it| it <= now) {
                self.tick_at = None;
                events.push(Event::Tick);
            }
            if events.is_empty() {
                self.alarm.as_mut().reset(self.tick_at.unwrap_or(now + IDLE));
                for recorder in self.recorders.values_mut() {
                    let _: Poll<()> = recorder.poll(context);
                }
                if self.alarm.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                continue;
            }
            events.into_iter().for_each(|it| self.step(it));
        }
    }

    fn news(&mut self, context: &mut Context<'_>) -> Vec<Event> {
        let mut events = Vec::new();
        if let Poll::Ready(found) = self.drivers.as_mut().poll(context) {
            self.drivers = drivers(&self.hands);
            events.push(Event::Drivers(found.iter().map(|it| it.facts.clone()).collect()));
            self.introduction = Some(self.introduce(found));
        }
        if self.introduction.as_mut().is_some_and(|it| it.as_mut().poll(context).is_ready()) {
            self.introduction = None;
        }
        let was_synced = self.synced == [true; 3];
        for _ in 0..BATCH {
            let Poll::Ready(event) = self.classes.poll_event(context) else { break };
            match event {
                InformerEvent::Applied(it, _) => events.push(Event::Class(it)),
                InformerEvent::Deleted(meta) => events.push(Event::ClassGone(meta.name)),
                InformerEvent::Synced(_) => self.synced[0] = true,
            }
        }
        for _ in 0..BATCH {
            let Poll::Ready(event) = self.volumes.poll_event(context) else { break };
            match event {
                InformerEvent::Applied(it, _) => events.push(Event::Volume(it)),
                InformerEvent::Deleted(meta) => events.push(Event::VolumeGone(meta.name)),
                InformerEvent::Synced(_) => self.synced[1] = true,
            }
        }
        for _ in 0..BATCH {
            let Poll::Ready(event) = self.claims.poll_event(context) else { break };
            match event {
                InformerEvent::Applied(it, _) => events.push(Event::Claim(it)),
                InformerEvent::Deleted(meta) => events.push(Event::ClaimGone(meta.key())),
                InformerEvent::Synced(_) => self.synced[2] = true,
            }
        }
        if !was_synced && self.synced == [true; 3] {
            events.push(Event::Synced);
        }
        events
    }

    fn poll_work(&mut self, context: &mut Context<'_>) -> Vec<Event> {
        let mut ended = Vec::new();
        loop {
            while self.running.len() < JOBS
                && let Some(next) = self.waiting.pop_front()
            {
                self.running.push(next);
            }
            match self.running.poll_next_unpin(context) {
                Poll::Ready(Some(event)) => ended.extend(event),
                Poll::Ready(None) | Poll::Pending => return ended,
            }
        }
    }

    fn step(&mut self, event: Event) {
        let now = (self.clock)();
        for effect in self.mind.step(event, now) {
            match effect {
                Effect::Do(job) => {
                    let work = carry_out(self.client.clone(), self.hands.clone(), *job);
                    self.waiting.push_back(Box::pin(work.map(|it| Some(Event::Done(it)))));
                }
                Effect::PublishCapacity(published) => {
                    let (client, hands) = (self.client.clone(), self.hands.clone());
                    let config = self.mind.config().clone();
                    self.waiting.push_back(Box::pin(async move {
                        publish(&client, &*hands, published, &config).await;
                        None
                    }));
                }
                Effect::WithdrawCapacity { name } => {
                    let client = self.client.clone();
                    self.waiting.push_back(Box::pin(async move {
                        let key = Key::new(CAPACITY_NAMESPACE, name);
                        let _ = client.delete(&CSI_STORAGE_CAPACITIES, &key, &DeleteParams::default()).await;
                        None
                    }));
                }
                Effect::Event { driver, about, event_type, reason, message } => {
                    let (client, node) = (&self.client, &self.mind.config().node_name);
                    let recorder = self.recorders.entry(driver);
                    let recorder = recorder
                        .or_insert_with_key(|driver| EventRecorder::on_node(client.clone(), driver.clone(), node));
                    recorder.record(&about, event_type, reason, &message, now);
                }
                Effect::WakeAt(at) => {
                    self.tick_at = Some(Instant::now() + at.since(now) + Duration::from_millis(1));
                }
            }
        }
    }

    /// Tells the cluster of the node's drivers, until it has heard.
    fn introduce(&self, found: Vec<NodeDriver>) -> BoxFuture<'static, ()> {
        let (client, hands, node) = (self.client.clone(), self.hands.clone(), self.mind.config().node_name.clone());
        Box::pin(async move {
            while let Err(error) = introduce(&client, &*hands, &node, &found).await {
                tracing::debug!(%error, "the cluster is not told of the node's drivers yet");
                tokio::time::sleep(RETRY).await;
            }
        })
    }
}

async fn introduce(client: &Client, hands: &dyn VolumeHands, node: &str, found: &[NodeDriver]) -> Result<(), Error> {
    let BuiltIn { driver, has_class } = hands.built_in().await;
    there(client.create(&CSI_DRIVERS, "", &csi_driver(&driver)).await)?;
    if !has_class {
        there(client.create(&STORAGE_CLASSES, "", &default_class(&driver)).await)?;
        hands.class_is_made().await;
    }
    #[derive(Deserialize)]
    struct Node {
        metadata: ObjectMeta,
    }
    let uid = client.get_as::<Node>(&NODES, &Key::cluster(node)).await?.metadata.uid;
    let told: Vec<_> = found.iter().map(|it| (it.facts.clone(), it.node_id.clone(), it.limit)).collect();
    let object = csi_node(node, &uid, &told);
    let patch =
        json!({ "metadata": { "ownerReferences": object["metadata"]["ownerReferences"] }, "spec": object["spec"] });
    match client.patch(&CSI_NODES, &Key::cluster(node), "", &PatchType::Merge, &patch).await {
        Err(error) if error.is_not_found() => there(client.create(&CSI_NODES, "", &object).await),
        other => other.map(drop),
    }
}

/// It is there, whoever made it.
fn there<T>(result: Result<T, Error>) -> Result<(), Error> {
    match result {
        Err(error) if error.is_already_exists() => Ok(()),
        other => other.map(drop),
    }
}

fn gone<T>(result: Result<T, Error>) -> Result<(), Error> {
    match result {
        Err(error) if error.is_not_found() => Ok(()),
        other => other.map(drop),
    }
}

fn refused(refusal: Refusal) -> Failure {
    Failure { message: refusal.message, is_exhausted: refusal.is_exhausted }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn not_written(error: Error) -> Failure {
    Failure { message: error.to_string(), is_exhausted: false }
}

/// Carries out one job; whatever happens, the mind gets its answer.
async fn carry_out(client: Client, hands: Arc<dyn VolumeHands>, job: Job) -> Outcome {
    let work = AssertUnwindSafe(attempt(&client, &*hands, &job)).catch_unwind();
    let result = match tokio::time::timeout(JOB_PATIENCE, work).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(Failure { message: "internal error of the node".into(), is_exhausted: false }),
        Err(_) => {
            let message = "rpc error: code = DeadlineExceeded desc = context deadline exceeded".into();
            Err(Failure { message, is_exhausted: false })
        }
    };
    let done = result.clone().map(drop);
    match job {
        Job::Provision { claim, request, .. } => {
            let of = |it: &Option<String>| it.clone().unwrap_or_default();
            let claim = Key::new(of(&claim.metadata.namespace), of(&claim.metadata.name));
            Outcome::Provisioned { claim, volume: request.name, driver: request.driver, result: done }
        }
        Job::Reschedule { claim, .. } => Outcome::Rescheduled { claim, result: done },
        Job::Remove { volume, driver, .. } => Outcome::Removed { volume, driver, result: done },
        Job::LetGo { volume } => Outcome::LetGo { volume, result: done },
        Job::Expand(it) => {
            let Growth { claim, volume, driver, .. } = it;
            Outcome::Expanded { claim, volume, driver, result }
        }
        Job::ExpandOnNode(it) => {
            let Growth { claim, volume, driver, .. } = it;
            Outcome::ExpandedOnNode { claim, volume, driver, result: done }
        }
        Job::WriteStatus { claim, .. } => Outcome::StatusWritten { claim, result: done },
    }
}

/// True: of a growth the node's part is to be done yet.
async fn attempt(client: &Client, hands: &dyn VolumeHands, job: &Job) -> Result<bool, Failure> {
    match job {
        Job::Provision { claim, class, request } => {
            let created = hands.create(request.clone()).await.map_err(refused)?;
            let volume = volume_object(claim, class, request, &created);
            there(client.create(&PERSISTENT_VOLUMES, "", &volume).await).map_err(not_written)?;
        }
        Job::Reschedule { claim, version } => {
            let patch = json!({ "metadata": {
                "resourceVersion": version,
                "annotations": { "volume.kubernetes.io/selected-node": null },
            } });
            let patched = client.patch(&PERSISTENT_VOLUME_CLAIMS, claim, "", &PatchType::Merge, &patch).await;
            gone(patched).map_err(not_written)?;
        }
        Job::Remove { volume, driver, handle } => {
            hands.delete(driver.clone(), handle.clone()).await.map_err(refused)?;
            remove(client, volume).await.map_err(not_written)?;
        }
        Job::LetGo { volume } => let_go(client, &Key::cluster(volume.as_str())).await.map_err(not_written)?,
        Job::Expand(growth) => return expand(client, hands, growth).await,
        Job::ExpandOnNode(it) => {
            hands.expand_on_node(it.driver.clone(), it.handle.clone(), it.bytes).await.map_err(refused)?;
            write_status(client, &it.claim, &it.done).await?;
        }
        Job::WriteStatus { claim, status } => write_status(client, claim, status).await?,
    }
    Ok(false)
}

async fn write_status(client: &Client, claim: &Key, status: &Value) -> Result<(), Failure> {
    let patch = json!({ "status": status });
    let patched = client.patch(&PERSISTENT_VOLUME_CLAIMS, claim, "status", &PatchType::Merge, &patch).await;
    gone(patched).map_err(not_written)
}

async fn expand(client: &Client, hands: &dyn VolumeHands, growth: &Growth) -> Result<bool, Failure> {
    write_status(client, &growth.claim, &growth.begun).await?;
    match hands.expand(growth.driver.clone(), growth.handle.clone(), growth.bytes).await {
        Ok(waits_for_node) => {
            let status = if waits_for_node { &growth.waits_for_node } else { &growth.done };
            let size = &growth.begun["allocatedResources"]["storage"];
            let patch = json!({ "spec": { "capacity": { "storage": size } } });
            let key = Key::cluster(growth.volume.as_str());
            let patched = client.patch(&PERSISTENT_VOLUMES, &key, "", &PatchType::Merge, &patch).await;
            patched.map_err(not_written)?;
            write_status(client, &growth.claim, status).await?;
            Ok(waits_for_node)
        }
        Err(refusal) => {
            let status = if refusal.is_infeasible { &growth.infeasible } else { &growth.failed };
            let mut status = status.clone();
            for condition in status["conditions"].as_array_mut().into_iter().flatten() {
                if condition["message"] == MESSAGE {
                    condition["message"] = refusal.message.as_str().into();
                }
            }
            write_status(client, &growth.claim, &status).await?;
            Err(refused(refusal))
        }
    }
}

/// Deletes a PersistentVolume whose volume is gone, and lets it go.
async fn remove(client: &Client, volume: &str) -> Result<(), Error> {
    let key = Key::cluster(volume);
    gone(client.delete(&PERSISTENT_VOLUMES, &key, &DeleteParams::default()).await)?;
    let_go(client, &key).await
}

/// Takes the provisioner's finalizer away.
async fn let_go(client: &Client, key: &Key) -> Result<(), Error> {
    for _ in 0..CONFLICTS_MAX {
        let mut found = match client.get_as::<Value>(&PERSISTENT_VOLUMES, key).await {
            Err(error) if error.is_not_found() => return Ok(()),
            other => other?,
        };
        let Some(finalizers) = found["metadata"]["finalizers"].as_array_mut() else { return Ok(()) };
        finalizers.retain(|it| it != FINALIZER);
        match client.replace(&PERSISTENT_VOLUMES, key, "", &found).await {
            Err(error) if error.is_conflict() => {}
            other => return gone(other),
        }
    }
    // Others change it all the time: at the next try.
    Ok(())
}

async fn publish(client: &Client, hands: &dyn VolumeHands, published: Published, config: &Config) {
    let Some((available, maximum)) = hands.capacity(published.clone()).await else { return };
    let object = capacity_object(&published, config, available, maximum);
    let name = capacity_name(&published.driver, &published.class, config);
    let patch = json!({ "capacity": object["capacity"], "maximumVolumeSize": object.get("maximumVolumeSize") });
    let key = Key::new(CAPACITY_NAMESPACE, name);
    let result = match client.patch(&CSI_STORAGE_CAPACITIES, &key, "", &PatchType::Merge, &patch).await {
        Err(error) if error.is_not_found() => {
            there(client.create(&CSI_STORAGE_CAPACITIES, CAPACITY_NAMESPACE, &object).await)
        }
        other => other.map(drop),
    };
    if let Err(error) = result {
        tracing::debug!(%error, driver = published.driver, "what is left of a class is not told");
    }
}

#[cfg(test)]
mod tests;
