//! Gives a kubelet its hands: feeds it the API's and the machine's news, carries out what it decides.
//!
//! The mind keeps order: it never has two effects under way that need one. So effects run side by side, each with its
//! deadline, and one that hangs holds up nobody else.

mod lane;
mod withheld;

use std::{
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use corten_api::{
    core::v1::{Node, Pod},
    resources::{LEASES, NODES, PODS},
};
use corten_client::{
    BoxFuture, Client, DeleteParams, Error, Identity, Informer, InformerEvent, InformerParams, Keeping, PatchType,
    decode, decode_projection,
};
use corten_kubelet::{ApiEffect, ApiFailure, Effect, Event, HostEffect, Kubelet, NodeEffect, PodRef, TrustBundle};
use corten_meta::{Key, ObjectMeta, Resource, Time};
use futures_util::{FutureExt, StreamExt};
use lane::Lane;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::{Instant, Sleep};
use tracing::Instrument;
use withheld::Withheld;

use crate::{
    Clock, EventRecorder, JournalBook, OwnObjects, OwnPods, QueueCounts, keeping, node_devices, node_lease,
    node_tokens, node_volumes,
    own_pods::Asker,
    pod_certificates,
    rewind::Rewind,
    sources::{self, Followed, Linked},
};

/// Acts on one machine (or pretends to, in the simulator). See [`HostEffect`] for what each effect is answered by.
pub trait Hands: Send + Sync + 'static {
    /// Carries out one effect and tells how it ended, with anything else worth telling before or after. Many run at
    /// once; dropping the future gives the effect up.
    fn perform(&self, effect: HostEffect) -> BoxFuture<'_, Vec<Event>>;

    /// Carries out one effect about the node as a whole. Dropping the future gives it up.
    fn perform_node(&self, effect: NodeEffect) -> BoxFuture<'_, Vec<Event>>;

    /// Waits for news of the node as a whole ([`Event::OfNode`]), as [`Hands::events`] does.
    fn node_news(&self) -> BoxFuture<'_, Vec<Event>>;

    /// Waits for the next news of the machine: [`Event::Snapshot`]s and [`Event::Facts`]. The first call answers at
    /// once with both; later ones when something changed (a container ended, a fact differs). Called in a loop by one
    /// task; nothing may be lost where the future is dropped.
    fn events(&self) -> BoxFuture<'_, Vec<Event>>;

    /// Whoever asks for events begins anew: what was told is told again, as to a first call.
    fn renew(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Waits until the folder of static pods is read or has changed: [`Event::Manifests`]. Where there is none, for ever.
    fn manifests(&self) -> BoxFuture<'_, Vec<Event>> {
        Box::pin(std::future::pending())
    }
}

const API_WRITES: usize = 32;
const CERTIFICATE_REQUESTS: usize = 2;
const BATCH: usize = 256;
const IDLE: Duration = Duration::from_secs(3600);
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);
/// So long a container that is being started may take until the kubelet begins anew without it.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// Runs until `shutdown` is ready. The pods' containers go on; the next run adopts them.
pub async fn run_node(
    kubelet: Kubelet,
    client: Client,
    hands: Arc<dyn Hands>,
    clock: Clock,
    (journal, own): (Arc<JournalBook>, Arc<OwnPods>),
    shutdown: impl Future<Output = ()> + Send,
) {
    let mut shutdown = pin!(shutdown);
    let mut running = KubeletLoop::new(kubelet, client, hands, clock, (journal, own));
    loop {
        let is_shutdown = std::future::poll_fn(|context| {
            if shutdown.as_mut().poll(context).is_ready() {
                return Poll::Ready(true);
            }
            running.poll(context).map(|()| false)
        });
        if is_shutdown.await {
            break;
        }
        if let Some(why) = running.begins_anew {
            tracing::warn!("{why}: the node's pods are looked at afresh");
            tokio::select! {
                () = shutdown.as_mut() => break,
                () = running.end_starts(START_PATIENCE) => {}
            }
            running = running.afresh().await;
        }
        // Other tasks get their turn however much there is to do.
        tokio::task::yield_now().await;
    }
    running.finish().await;
}

struct KubeletLoop {
    kubelet: Kubelet,
    client: Client,
    hands: Arc<dyn Hands>,
    clock: Clock,
    journal: Arc<JournalBook>,
    counts: Arc<QueueCounts>,
    pods: Informer<Box<Pod>>,
    node: Informer<Box<Node>>,
    has_node: bool,
    followed: Followed,
    services: Informer<Linked>,
    runtime_classes: Informer<(String, String)>,
    trust_bundles: Informer<(String, TrustBundle)>,
    certificates: pod_certificates::Requests,
    news: BoxFuture<'static, Vec<Event>>,
    node_news: BoxFuture<'static, Vec<Event>>,
    manifests: BoxFuture<'static, Vec<Event>>,
    /// Who asks what the kubelet has.
    asker: BoxFuture<'static, Option<Asker>>,
    own: Arc<OwnPods>,
    lanes: [Lane<HostEffect>; 4],
    of_node: Lane<NodeEffect>,
    writes: Lane<ApiEffect>,
    /// Keys take time to make: neither a status nor the node's lease waits behind them.
    certificate_requests: Lane<ApiEffect>,
    recorder: EventRecorder,
    rewind: Rewind,
    /// Why this kubelet is over, and another one is to begin.
    begins_anew: Option<&'static str>,
    withheld: Withheld,
    tick_at: Option<Instant>,
    alarm: Pin<Box<Sleep>>,
}

/// Pulls may take an hour and starts contend for the disk; neither may hold up a probe or a stop. What is half started goes
/// before what is not begun: of many Pods at once the first run while the last wait for their network.
fn lane(effect: &HostEffect) -> usize {
    match effect {
        HostEffect::PullImage { .. } => 0,
        HostEffect::StartContainer(_) => 1,
        HostEffect::RunSandbox(_) => 2,
        _ => 3,
    }
}

impl KubeletLoop {
    fn new(
        kubelet: Kubelet,
        client: Client,
        hands: Arc<dyn Hands>,
        clock: Clock,
        (journal, own): (Arc<JournalBook>, Arc<OwnPods>),
    ) -> Self {
        let name = kubelet.config().node_name.clone();
        let pods = informer(&client, PODS, format!("spec.nodeName={name}"), (keeping::OWN_PODS, &name));
        let withheld = Withheld::of(pods.left_out());
        Self {
            pods,
            node: informer(&client, NODES, format!("metadata.name={name}"), (keeping::OWN_NODE, &name)),
            has_node: false,
            followed: Followed::default(),
            services: sources::services(&client, &name),
            runtime_classes: sources::runtime_classes(&client, &name),
            trust_bundles: sources::trust_bundles(&client, &name),
            certificates: pod_certificates::Requests::default(),
            news: news(&hands),
            node_news: node_news(&hands),
            manifests: manifests(&hands),
            asker: asker_of(&own),
            own,
            lanes: [Lane::new(4), Lane::new(16), Lane::new(8), Lane::new(512)],
            of_node: Lane::new(4),
            writes: Lane::new(API_WRITES),
            certificate_requests: Lane::new(CERTIFICATE_REQUESTS),
            recorder: EventRecorder::on_node(client.clone(), "kubelet", &name),
            rewind: Rewind::default(),
            begins_anew: None,
            withheld,
            tick_at: None,
            alarm: Box::pin(tokio::time::sleep(IDLE)),
            counts: journal.queue("kubelet"),
            kubelet,
            client,
            hands,
            clock,
            journal,
        }
    }

    /// Lets containers and sandboxes that are being started come to their end, for a moment. A container that is left between
    /// its making and its start would be removed, and started once more. The node does not fall silent over it.
    async fn end_starts(&mut self, patience: Duration) {
        let alive = node_lease::stay_alive(&self.client, &self.kubelet.config().node_name, &self.clock);
        let ended = tokio::time::timeout(patience, starts_end(&mut self.lanes));
        if tokio::select!(ended = ended => ended.is_err(), () = alive => true) {
            tracing::warn!("containers that are still being started are given up");
        }
    }

    /// As after a start of the process: what is under way is given up, containers go on and are adopted.
    async fn afresh(self) -> Self {
        let recorder = self.recorder;
        let kubelet = Kubelet::new(self.kubelet.config().clone());
        let mut running = Self::new(kubelet, self.client, self.hands, self.clock, (self.journal, self.own));
        // What listened for the old one must be gone before its place is taken.
        drop((self.news, self.manifests, self.asker, self.lanes));
        running.hands.renew().await;
        running.recorder = recorder;
        running
    }

    /// Takes in everything there is and begins what it leads to; pending once nothing more happens.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut events = self.poll_caches(context);
        if let Poll::Ready(news_events) = self.news.as_mut().poll(context) {
            self.news = news(&self.hands);
            events.extend(news_events);
        }
        if let Poll::Ready(read) = self.manifests.as_mut().poll(context) {
            self.manifests = manifests(&self.hands);
            events.extend(read);
        }
        if let Poll::Ready(news_events) = self.node_news.as_mut().poll(context) {
            self.node_news = node_news(&self.hands);
            events.extend(news_events);
        }
        let hands = self.hands.clone();
        for lane in &mut self.lanes {
            events.extend(lane.poll(context, |effect| perform(hands.clone(), effect)));
        }
        events.extend(self.of_node.poll(context, |effect| perform_node(hands.clone(), effect)));
        let (client, name) = (self.client.clone(), self.kubelet.config().node_name.clone());
        for lane in [&mut self.writes, &mut self.certificate_requests] {
            events.extend(lane.poll(context, |effect| write(client.clone(), name.clone(), effect)));
        }
        let now = Instant::now();
        if self.tick_at.is_some_and(|it| it <= now) {
            self.tick_at = None;
            events.push(Event::Tick);
        }
        let is_busy = !events.is_empty();
        // What was learnt before the clock was set back is no news to whoever compares times with those of after it.
        if self.rewind.happened((self.clock)()) {
            self.begins_anew = Some("the clock was set back");
        } else if self.withheld.is_over(self.pods.left_out()) {
            self.begins_anew = Some("pods that were too large to be kept are known");
        }
        if self.begins_anew.is_some() {
            return Poll::Ready(());
        }
        for mut event in events {
            self.withheld.hide(&mut event);
            self.step(event);
        }
        while let Poll::Ready(Some(asker)) = self.asker.as_mut().poll(context) {
            self.asker = asker_of(&self.own);
            let pods = self.kubelet.pods((self.clock)());
            // Who asked may be gone.
            let _ = asker.send(OwnObjects { node: self.kubelet.node().cloned(), pods });
        }
        self.alarm.as_mut().reset(self.tick_at.unwrap_or(now + IDLE));
        let _: Poll<()> = self.recorder.poll(context);
        if is_busy || self.alarm.as_mut().poll(context).is_ready() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn poll_caches(&mut self, context: &mut Context<'_>) -> Vec<Event> {
        let mut events = Vec::new();
        // The node before its pods: one that was placed for a new label of the node is not measured by the old ones.
        while let Poll::Ready(event) = self.node.poll_event(context) {
            match event {
                InformerEvent::Applied(node, _) => {
                    self.has_node = true;
                    events.push(Event::Node(Some(node)));
                }
                InformerEvent::Deleted(_) => {
                    self.has_node = false;
                    events.push(Event::Node(None));
                }
                InformerEvent::Synced(_) if !self.has_node => events.push(Event::Node(None)),
                InformerEvent::Synced(_) => {}
            }
        }
        for _ in 0..BATCH {
            let Poll::Ready(event) = self.pods.poll_event(context) else { break };
            events.push(match event {
                InformerEvent::Applied(pod, identity) => {
                    self.client.begin_owner(&identity.uid);
                    Event::Pod(pod)
                }
                InformerEvent::Deleted(meta) => {
                    self.client.forget_owner(&meta.uid);
                    Event::PodGone(PodRef { key: meta.key(), uid: meta.uid })
                }
                InformerEvent::Synced(_) => Event::PodsSynced,
            });
        }
        events.extend(self.followed.poll(context));
        events.extend(sources::poll_services(&mut self.services, context, BATCH));
        events.extend(sources::poll_runtime_classes(&mut self.runtime_classes, context, BATCH));
        events.extend(sources::poll_trust_bundles(&mut self.trust_bundles, context, BATCH));
        events.extend(self.certificates.poll(context, BATCH));
        events
    }

    fn step(&mut self, event: Event) {
        let now = (self.clock)();
        let begun = self.counts.thinking.begin(None);
        match &event {
            Event::Pod(pod) => {
                let name = |it: &Option<String>| it.clone().unwrap_or_default();
                let key = Key::new(name(&pod.metadata.namespace), name(&pod.metadata.name));
                begun.about(Some(key.clone()), Some((PODS, key)));
            }
            _ => {
                let key = Key::cluster(&*self.kubelet.config().node_name);
                begun.about(Some(key.clone()), Some((NODES, key)));
            }
        }
        let effects = self.kubelet.step(event, now);
        drop(begun);
        for effect in effects {
            match effect {
                Effect::Host(effect) => self.lanes[lane(&effect)].waiting.push_back(effect),
                Effect::Node(effect) => self.of_node.waiting.push_back(effect),
                Effect::Api(ApiEffect::Event { about, event_type, reason, message }) => {
                    self.recorder.record(&about, event_type, reason, &message, now);
                }
                Effect::Api(ApiEffect::Follow(source)) => self.followed.follow(&self.client, source),
                Effect::Api(ApiEffect::Unfollow(source)) => self.followed.unfollow(&source),
                Effect::Api(effect @ ApiEffect::RequestCertificate { .. }) => {
                    self.certificates.follow(&self.client, &self.kubelet.config().node_name);
                    self.certificate_requests.waiting.push_back(effect);
                }
                Effect::Api(effect) => self.writes.waiting.push_back(effect),
                Effect::Record { pod, decision } => self.journal.record(&PODS, &pod, *decision),
                Effect::Forget { pod } => self.journal.forget(&PODS, &pod),
                Effect::WakeAt(at) => self.tick_at = Some(Instant::now() + wait(at, now)),
            }
        }
    }

    /// Lets what was begun come to its end, for a moment.
    async fn finish(mut self) {
        let rest = async {
            while self.writes.running.next().await.is_some() {}
            starts_end(&mut self.lanes).await;
        };
        if tokio::time::timeout(SHUTDOWN_PATIENCE, rest).await.is_err() {
            tracing::warn!("work on this node's pods is given up at shutdown");
        }
    }
}

/// Until no container and no sandbox is being started; what waits for its turn is not begun.
async fn starts_end(lanes: &mut [Lane<HostEffect>]) {
    for lane in lanes.iter_mut().skip(1).take(2) {
        while lane.running.next().await.is_some() {}
    }
}

/// A timer rings in whole milliseconds; one more and it never rings too early.
fn wait(at: Time, now: Time) -> Duration {
    at.since(now) + Duration::from_millis(1)
}

fn news(hands: &Arc<dyn Hands>) -> BoxFuture<'static, Vec<Event>> {
    let hands = hands.clone();
    Box::pin(async move { hands.events().await })
}

fn asker_of(own: &Arc<OwnPods>) -> BoxFuture<'static, Option<Asker>> {
    let own = own.clone();
    Box::pin(async move { own.next().await })
}

fn manifests(hands: &Arc<dyn Hands>) -> BoxFuture<'static, Vec<Event>> {
    let hands = hands.clone();
    Box::pin(async move { hands.manifests().await })
}

fn node_news(hands: &Arc<dyn Hands>) -> BoxFuture<'static, Vec<Event>> {
    let hands = hands.clone();
    Box::pin(async move { hands.node_news().await })
}

#[derive(Deserialize)]
struct OnlyMeta {
    metadata: ObjectMeta,
}

fn informer<T: DeserializeOwned + 'static>(
    client: &Client,
    resource: Resource,
    field_selector: String,
    (keeping, node): (Keeping, &str),
) -> Informer<Box<T>> {
    let params = InformerParams { field_selector, keeping: Some(keeping), ..InformerParams::all(resource) };
    let params = params.seeded_by(node);
    Informer::decoding(client.clone(), params, |bytes| {
        let meta: OnlyMeta = decode_projection(&bytes)?;
        Ok((Identity::of(&meta.metadata), decode(&bytes)?))
    })
}

/// Carries out one host effect; whatever happens, the mind gets its answer.
fn perform(hands: Arc<dyn Hands>, effect: HostEffect) -> BoxFuture<'static, Vec<Event>> {
    let span = span(effect.pod());
    let performed = async move {
        let deadline = effect.deadline();
        // Named before it is given away: it may carry what whole Secrets hold.
        let broken = effect.failed("internal error of the node");
        let late = effect.failed("context deadline exceeded");
        let work = AssertUnwindSafe(hands.perform(effect)).catch_unwind();
        match tokio::time::timeout(deadline, work).await {
            Ok(Ok(events)) => events,
            Ok(Err(_)) => {
                tracing::error!("a hand broke");
                vec![broken]
            }
            Err(_) => {
                tracing::warn!("an effect was given up after {deadline:?}");
                vec![late]
            }
        }
    };
    Box::pin(performed.instrument(span))
}

/// What is logged while something is done for a pod names it.
fn span(pod: &PodRef) -> tracing::Span {
    tracing::info_span!("pod", key = %pod.key, uid = pod.uid)
}

/// As [`perform`], for the node as a whole.
fn perform_node(hands: Arc<dyn Hands>, effect: NodeEffect) -> BoxFuture<'static, Vec<Event>> {
    Box::pin(async move {
        let work = AssertUnwindSafe(hands.perform_node(effect.clone())).catch_unwind();
        match tokio::time::timeout(effect.deadline(), work).await {
            Ok(Ok(events)) => events,
            Ok(Err(_)) => {
                tracing::error!(?effect, "a hand broke");
                effect.failed("internal error of the node").into_iter().collect()
            }
            Err(_) => {
                tracing::warn!(?effect, "an effect was given up after {:?}", effect.deadline());
                effect.failed("context deadline exceeded").into_iter().collect()
            }
        }
    })
}

/// Carries out one write to the API.
fn write(client: Client, node: String, effect: ApiEffect) -> BoxFuture<'static, Vec<Event>> {
    let span = effect.pod().map_or_else(tracing::Span::none, span);
    let written = async move {
        match effect {
            ApiEffect::PatchPodStatus { pod, patch } => {
                let result = patch_status(&client, &pod, &patch).await;
                vec![Event::StatusPatched { pod, result }]
            }
            ApiEffect::DeletePod { pod } => {
                let result = delete_pod(&client, &pod).await;
                vec![Event::PodDeleted { pod, result }]
            }
            ApiEffect::CreateMirror { key, pod } => {
                let result = create_mirror(&client, &key, &pod).await;
                vec![Event::MirrorCreated { key, result }]
            }
            ApiEffect::RequestToken { pod, account, wish } => {
                let result = node_tokens::request(&client, &pod, &account, &wish).await;
                // Told to the pod's users as it came.
                let result = result.map_err(|it| ApiFailure::Other(it.to_string()));
                vec![Event::Token { pod, wish, result }]
            }
            ApiEffect::RequestCertificate { pod, account, place, wish } => {
                let asked = pod_certificates::request(&client, &node, &pod, &account, &place, wish).await;
                // Told to the pod's users as it came.
                let result = asked.map_err(ApiFailure::Other);
                vec![Event::CertificateAsked { pod, place, result }]
            }
            ApiEffect::ReadDeviceClaims { pod, claims } => {
                let result = node_devices::read(&client.for_owner(&pod.uid), &pod, claims).await;
                vec![Event::DeviceClaimsRead { pod, result }]
            }
            ApiEffect::ReadVolume { pod, volume, name } => {
                let result = node_volumes::read(&client.for_owner(&pod.uid), &node, &pod.key.namespace, &name).await;
                vec![Event::VolumeRead { pod, volume, result }]
            }
            ApiEffect::CreateNode { node } => {
                // Of two that register one waits for the other's Node to come by its watch.
                let created = client.create(&NODES, "", &node).await;
                vec![node_written(created)]
            }
            ApiEffect::PatchNode { name, status, patch } => {
                let subresource = if status { "status" } else { "" };
                let patched = client.patch(&NODES, &Key::cluster(name), subresource, &PatchType::Merge, &patch).await;
                vec![node_written(patched)]
            }
            ApiEffect::ReadNode { name, pod } => {
                let read = client.get(&NODES, &Key::cluster(name)).await;
                vec![Event::NodeRead { pod, result: read.and_then(|it| decode(&it)).map_err(node_failure) }]
            }
            ApiEffect::RenewLease { patch, create } => {
                let result = renew(&client, &patch, &create).await.map_err(node_failure);
                vec![Event::LeaseRenewed(result)]
            }
            ApiEffect::Event { .. } | ApiEffect::Follow(_) | ApiEffect::Unfollow(_) => Vec::new(),
        }
    };
    Box::pin(written.instrument(span))
}

async fn patch_status(client: &Client, pod: &PodRef, patch: &Value) -> Result<Box<Pod>, ApiFailure> {
    let patched = client.patch(&PODS, &pod.key, "status", &PatchType::Merge, patch).await;
    let result = patched.and_then(|it| decode::<Box<Pod>>(&it)).map_err(failure);
    if let Err(ApiFailure::Other(error)) = &result {
        tracing::warn!(pod = %pod.key, error, "cannot write a pod's status");
    }
    result
}

async fn delete_pod(client: &Client, pod: &PodRef) -> Result<(), ApiFailure> {
    let params = DeleteParams { grace_seconds: Some(0), uid: Some(pod.uid.clone()), ..DeleteParams::default() };
    match client.delete(&PODS, &pod.key, &params).await {
        Err(error) if !error.is_not_found() => Err(failure(error)),
        _ => Ok(()),
    }
}

async fn create_mirror(client: &Client, key: &Key, pod: &Pod) -> Result<Box<Pod>, ApiFailure> {
    let created = client.create(&PODS, &key.namespace, pod).await;
    let result = created.and_then(|it| decode::<Box<Pod>>(&it)).map_err(failure);
    if let Err(ApiFailure::Other(error)) = &result {
        tracing::warn!(pod = %key, error, "cannot create a mirror pod");
    }
    result
}

async fn renew(client: &Client, patch: &Value, create: &Value) -> Result<(), Error> {
    let text = |field: &str| create["metadata"][field].as_str().unwrap_or_default();
    let key = Key::new(text("namespace"), text("name"));
    match client.patch(&LEASES, &key, "", &PatchType::Merge, patch).await {
        Err(error) if error.is_not_found() => {
            client.create(&LEASES, &key.namespace, create).await?;
        }
        other => {
            other?;
        }
    }
    Ok(())
}

fn failure(error: Error) -> ApiFailure {
    if error.is_not_found() {
        ApiFailure::Gone
    } else if error.is_conflict() {
        ApiFailure::Conflict
    } else {
        ApiFailure::Other(error.to_string())
    }
}

fn node_failure(error: Error) -> ApiFailure {
    tracing::debug!(%error, "cannot read or write the node or its lease");
    failure(error)
}

/// Where it is refused nobody else learns why the node is not Ready: what it would tell of itself does not arrive. It is told again more and
/// more seldom, at last every half minute.
fn node_written(written: Result<Bytes, Error>) -> Event {
    if let Some(error) = written.as_ref().err().filter(|it| it.status().is_some_and(|it| matches!(it.code, 403 | 422)))
    {
        tracing::warn!(%error, "the API server refuses what this node says of itself");
    }
    Event::NodeWritten(written.and_then(|it| decode(&it)).map_err(node_failure))
}

#[cfg(test)]
mod tests;
