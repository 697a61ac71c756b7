//! Gives a scheduler its hands: tells it of nodes and pods, carries out its bindings, many at once.
//!
//! A binding whose answer was lost is asked for again until it is known what became of it. To call it failed would free
//! room on a node that may be taken.
//!
//! What comes right after news waits a moment for more, as with [`crate::SharedInformers`]: who creates one Pod after the other would
//! wake the scheduler for each.

mod cluster;
mod devices;
mod extenders;
mod labelled_groups;
mod storage;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeSet, VecDeque},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use corten_api::resources::{NODES, POD_GROUPS, PODS};
use corten_client::{
    Backoff, BoxFuture, Client, DeleteParams, Error, Identity, Informer, InformerEvent, InformerParams, PatchType,
    decode_projection,
};
use corten_meta::{Key, Named, Resource, Retry, Time};
use corten_reconcile::Projection;
use corten_scheduler::{
    ClaimRelease, ClaimReservation, Effect, Event, Eviction, ExtendedClaimWrite, Node, Pod, Scheduler,
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{Instant, Sleep};
use tracing::Instrument;

use self::{cluster::ClusterInformers, extenders::Extenders, storage::StorageInformers};
use crate::{Clock, EventRecorder, JournalBook, QueueCounts, rewind::Rewind, shared_informers::REST};

pub use self::extenders::check_extenders;

const CONCURRENT_WRITES: usize = 64;
/// While more than this waits to be written, no further pods are placed.
const WAITING_MAX: usize = 256;
const BATCH: usize = 256;
/// How long a binding may stay without a definite answer.
const BIND_PATIENCE: Duration = Duration::from_secs(300);
const TELL_TRIES: usize = 3;
const BIND_BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BIND_BACKOFF_MAX: Duration = Duration::from_secs(5);
const IDLE: Duration = Duration::from_secs(3600);
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);

/// Runs until `shutdown` is ready; bindings that are under way then get a moment to end.
pub async fn run_scheduler(
    scheduler: Scheduler,
    client: Client,
    clock: Clock,
    journal: Arc<JournalBook>,
    shutdown: impl Future<Output = ()> + Send,
) {
    let mut shutdown = pin!(shutdown);
    journal.begin("scheduler");
    let mut running = SchedulerLoop::new(scheduler, client, clock, journal);
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
        if running.was_set_back() {
            tracing::warn!("the clock was set back: the scheduler looks at everything afresh");
            running = running.afresh().await;
        }
        // Other tasks get their turn however much there is to do.
        tokio::task::yield_now().await;
    }
    running.finish().await;
}

struct SchedulerLoop {
    scheduler: Scheduler,
    client: Client,
    clock: Clock,
    journal: Arc<JournalBook>,
    counts: Arc<QueueCounts>,
    nodes: Informer<Node>,
    pods: Informer<Pod>,
    storage: StorageInformers,
    cluster: ClusterInformers,
    /// What waits for its turn to be written, in order.
    waiting: VecDeque<Job>,
    /// Pods that are being written: writes of one pod never overtake each other.
    writing: BTreeSet<Key>,
    writes: FuturesUnordered<BoxFuture<'static, WriteResult>>,
    extenders: Arc<Extenders>,
    /// What extenders are asked. The scheduler asks about a few pods at a time.
    consultations: FuturesUnordered<BoxFuture<'static, Event>>,
    events: EventRecorder,
    rewind: Rewind,
    tick_at: Option<Instant>,
    rests_until: Option<Instant>,
    alarm: Pin<Box<Sleep>>,
}

enum Job {
    Bind {
        pod: Key,
        uid: String,
        node: String,
        claims: Vec<ClaimReservation>,
        extended: Option<ExtendedClaimWrite>,
        extender: Option<usize>,
    },
    /// As far as the binding itself.
    Reserve {
        pod: Key,
        uid: String,
        claims: Vec<ClaimReservation>,
        extended: Option<ExtendedClaimWrite>,
    },
    ReleaseClaims {
        pod: Key,
        claims: Vec<ClaimRelease>,
    },
    /// One for extended resources, of which its pod made no use.
    DeleteClaim {
        pod: Key,
        claim: Key,
        uid: String,
        finalizers: Vec<String>,
    },
    Evict(Box<Eviction>),
    Patch {
        pod: Key,
        patch: Value,
    },
    PatchGroup {
        group: Key,
        patch: Value,
    },
    /// What gives a pod its volumes, in this order.
    Volumes {
        pod: Key,
        uid: String,
        patches: Vec<(Resource, Key, Value)>,
    },
}

struct WriteResult {
    pod: Key,
    /// What the scheduler is to be told.
    event: Option<Event>,
}

impl Job {
    fn pod(&self) -> Key {
        match self {
            Self::Bind { pod, .. }
            | Self::DeleteClaim { pod, .. }
            | Self::Patch { pod, .. }
            | Self::ReleaseClaims { pod, .. }
            | Self::Reserve { pod, .. }
            | Self::Volumes { pod, .. } => pod.clone(),
            Self::Evict(eviction) => eviction.victim_key(),
            // No pod has such a name: its writes are in order among themselves.
            Self::PatchGroup { group, .. } => Key::new(&*group.namespace, format!("podgroups/{}", group.name)),
        }
    }
}

impl SchedulerLoop {
    fn new(scheduler: Scheduler, client: Client, clock: Clock, journal: Arc<JournalBook>) -> Self {
        let extenders = Arc::new(Extenders::new(&scheduler.config().extenders));
        Self {
            scheduler,
            extenders,
            consultations: FuturesUnordered::new(),
            nodes: informer(&client, NODES),
            pods: informer(&client, PODS),
            storage: StorageInformers::new(&client),
            cluster: ClusterInformers::new(&client),
            waiting: VecDeque::new(),
            writing: BTreeSet::new(),
            writes: FuturesUnordered::new(),
            events: EventRecorder::new(client.clone(), "default-scheduler"),
            rewind: Rewind::default(),
            tick_at: None,
            rests_until: None,
            alarm: Box::pin(tokio::time::sleep(IDLE)),
            counts: journal.queue("scheduler"),
            client,
            clock,
            journal,
        }
    }

    fn was_set_back(&mut self) -> bool {
        self.rewind.happened((self.clock)())
    }

    /// As after a start of the process, with what is being written brought to its end.
    async fn afresh(self) -> Self {
        let scheduler = Scheduler::new(self.scheduler.config().clone());
        let (client, clock, journal) = (self.client.clone(), self.clock.clone(), self.journal.clone());
        self.finish().await;
        Self::new(scheduler, client, clock, journal)
    }

    /// Takes in everything there is, places pods where it is time, begins writes; pending once nothing more happens.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // One time for the whole look: a rest that ended in the midst of it would be waited for by nobody.
        let now = Instant::now();
        let mut poll = self.poll_caches_unless_resting(now, context);
        while let Poll::Ready(Some(WriteResult { pod, event })) = self.writes.poll_next_unpin(context) {
            self.writing.remove(&pod);
            if let Some(event) = event {
                self.step(event);
            }
            poll = Poll::Ready(());
        }
        while let Poll::Ready(Some(event)) = self.consultations.poll_next_unpin(context) {
            self.step(event);
            poll = Poll::Ready(());
        }
        if self.is_synced() && self.tick_at.is_some_and(|it| it <= now) && self.waiting.len() < WAITING_MAX {
            self.tick_at = None;
            self.step(Event::Tick);
            poll = Poll::Ready(());
        }
        if self.begin_writes() {
            poll = Poll::Ready(());
        }
        // A tick that is due but held up is not waited for by time: the list or the write it waits for wakes.
        let next = [self.tick_at, self.rests_until].into_iter().flatten().filter(|it| *it > now).min();
        let next = next.unwrap_or(now + IDLE);
        self.alarm.as_mut().reset(next);
        if self.alarm.as_mut().poll(context).is_ready() {
            poll = Poll::Ready(());
        }
        let _pending = self.events.poll(context);
        poll
    }

    fn is_synced(&self) -> bool {
        let are_listed = self.nodes.n_lists() > 0 && self.pods.n_lists() > 0;
        are_listed && self.storage.is_synced() && self.cluster.is_synced()
    }

    fn poll_caches_unless_resting(&mut self, now: Instant, context: &mut Context<'_>) -> Poll<()> {
        // What was last said to have no news still wakes.
        if self.rests_until.is_some_and(|it| it > now) {
            return Poll::Pending;
        }
        let (has_news, is_drained) = self.poll_caches(context);
        self.rests_until = (has_news && is_drained).then_some(now + REST);
        if has_news { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Was there anything, and is there nothing more?
    fn poll_caches(&mut self, context: &mut Context<'_>) -> (bool, bool) {
        let (mut n_nodes, mut n_pods) = (0, 0);
        while n_nodes < BATCH {
            let Poll::Ready(event) = self.nodes.poll_event(context) else { break };
            n_nodes += 1;
            match event {
                InformerEvent::Applied(node, _) => self.step(Event::Node(Box::new(node))),
                InformerEvent::Deleted(meta) => self.step(Event::NodeGone(meta.name)),
                InformerEvent::Synced(_) => {}
            }
        }
        while n_pods < BATCH {
            let Poll::Ready(event) = self.pods.poll_event(context) else { break };
            n_pods += 1;
            match event {
                InformerEvent::Applied(pod, _) => self.step(Event::Pod(Box::new(pod))),
                InformerEvent::Deleted(meta) => {
                    self.journal.forget(&PODS, &meta.key());
                    self.step(Event::PodGone(meta.key()));
                }
                InformerEvent::Synced(_) => {}
            }
        }
        let (mut events, is_storage_drained) = self.storage.poll(context);
        let (of_cluster, is_cluster_drained) = self.cluster.poll(context);
        events.extend(of_cluster);
        let n_seen = n_nodes + n_pods + events.len();
        events.into_iter().for_each(|it| self.step(it));
        (n_seen > 0, is_storage_drained && is_cluster_drained && n_nodes < BATCH && n_pods < BATCH)
    }

    fn step(&mut self, event: Event) {
        let now = (self.clock)();
        let begun = self.counts.thinking.begin(None);
        let mut about = |pod: &Key| begun.about(Some(pod.clone()), Some((PODS, pod.clone())));
        if let Event::Pod(pod) = &event {
            about(&pod.meta().key());
        }
        let effects = self.scheduler.step_telling(event, now, &mut about);
        drop(begun);
        for effect in effects {
            match effect {
                Effect::Bind { pod, uid, node, claims, extended, extender } => {
                    self.waiting.push_back(Job::Bind { pod, uid, node, claims, extended, extender });
                }
                Effect::Consult(consultation) => {
                    let asked = self.extenders.clone().consult(self.client.clone(), *consultation);
                    self.consultations.push(Box::pin(asked));
                }
                Effect::Reserve { pod, uid, claims, extended } => {
                    self.waiting.push_back(Job::Reserve { pod, uid, claims, extended });
                }
                Effect::ReleaseClaims { pod, claims } => self.waiting.push_back(Job::ReleaseClaims { pod, claims }),
                Effect::DeleteClaim { pod, claim, uid, finalizers } => {
                    self.waiting.push_back(Job::DeleteClaim { pod, claim, uid, finalizers });
                }
                Effect::BindVolumes { pod, uid, patches } => {
                    self.waiting.push_back(Job::Volumes { pod, uid, patches });
                }
                Effect::Evict(eviction) => self.waiting.push_back(Job::Evict(eviction)),
                Effect::PatchCondition { pod, patch } => self.waiting.push_back(Job::Patch { pod, patch }),
                Effect::PatchGroup { group, patch } => self.waiting.push_back(Job::PatchGroup { group, patch }),
                Effect::Event { about, event_type, reason, message } => {
                    self.events.record(&about, event_type, reason, &message, now);
                }
                Effect::Record { pod, decision } => self.journal.record(&PODS, &pod, decision),
                Effect::WakeAt(at) => self.tick(at, now),
            }
        }
    }

    fn tick(&mut self, at: Time, now: Time) {
        let at = Instant::now() + at.since(now);
        self.tick_at = Some(self.tick_at.map_or(at, |it| it.min(at)));
    }

    /// Begins as many writes as may be under way; tells whether there was any.
    fn begin_writes(&mut self) -> bool {
        let mut held_up = VecDeque::new();
        let n_before = self.writes.len();
        while self.writes.len() < CONCURRENT_WRITES {
            let Some(job) = self.waiting.pop_front() else { break };
            let is_behind_another = held_up.iter().any(|it: &Job| it.pod() == job.pod());
            if is_behind_another || self.writing.contains(&job.pod()) {
                held_up.push_back(job);
                continue;
            }
            self.writing.insert(job.pod());
            self.writes.push(Box::pin(write(self.client.clone(), self.extenders.clone(), job)));
        }
        held_up.append(&mut self.waiting);
        self.waiting = held_up;
        self.writes.len() > n_before
    }

    async fn finish(mut self) {
        let rest = async { while self.writes.next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_PATIENCE, rest).await.is_err() {
            tracing::warn!("bindings are given up at shutdown");
        }
    }
}

/// Takes in what there is, up to a batch; is there nothing more?
fn taken_in<T: Projection>(
    informer: &mut Informer<T>,
    context: &mut Context<'_>,
    events: &mut Vec<Event>,
    seen: impl Fn(T) -> Event,
    gone: impl Fn(Resource, Key) -> Event,
) -> bool {
    for _ in 0..BATCH {
        let Poll::Ready(event) = informer.poll_event(context) else { return true };
        match event {
            InformerEvent::Applied(object, _) => events.push(seen(object)),
            InformerEvent::Deleted(meta) => events.push(gone(T::RESOURCE, meta.key())),
            InformerEvent::Synced(_) => {}
        }
    }
    false
}

fn informer<T: Projection>(client: &Client, resource: Resource) -> Informer<T> {
    let params = InformerParams::all(resource).seeded_by("scheduler");
    Informer::decoding(client.clone(), params, |bytes| {
        let object: T = decode_projection(&bytes)?;
        Ok((Identity::of(object.meta()), object))
    })
}

async fn write(client: Client, extenders: Arc<Extenders>, job: Job) -> WriteResult {
    let span = tracing::info_span!("pod", key = %job.pod());
    written(client, &extenders, job).instrument(span).await
}

async fn written(client: Client, extenders: &Extenders, job: Job) -> WriteResult {
    let turn = job.pod();
    match job {
        Job::Patch { pod, patch } => {
            if let Err(error) = tell(&client, &pod, patch).await {
                tracing::debug!(%error, "cannot tell that a pod is unschedulable");
            }
            WriteResult { pod, event: None }
        }
        Job::PatchGroup { group, patch } => {
            if let Err(error) = client.patch(&POD_GROUPS, &group, "status", &PatchType::Strategic, &patch).await {
                tracing::debug!(%group, %error, "cannot tell what became of a pod group");
            }
            WriteResult { pod: turn, event: None }
        }
        Job::Evict(eviction) => {
            let pod = eviction.victim_key();
            let event = match evict(&client, &eviction).await {
                Ok(()) => Event::Evicted { eviction },
                Err(error) => {
                    tracing::debug!(preemptor = %eviction.preemptor, %error, "cannot evict a pod of lower priority");
                    Event::EvictionFailed { eviction, message: error.to_string() }
                }
            };
            WriteResult { pod, event: Some(event) }
        }
        Job::Volumes { pod, uid, patches } => {
            let failed = give_volumes(&client, patches).await.err();
            let event = failed.map(|error| {
                tracing::debug!(%error, "cannot give a pod its volumes");
                Event::VolumesFailed { pod: pod.clone(), uid, message: error.to_string() }
            });
            WriteResult { pod, event }
        }
        Job::Reserve { pod, uid, claims, extended } => {
            let failed = devices::reserve_all(&client, (&pod, &uid), claims, extended).await.err();
            let event = failed.map(|error| {
                tracing::debug!(%error, "cannot reserve a pod's devices");
                Event::ReserveFailed { pod: pod.clone(), uid, message: error.to_string() }
            });
            WriteResult { pod, event }
        }
        Job::ReleaseClaims { pod, claims } => {
            devices::release(&client, claims).await;
            WriteResult { pod, event: None }
        }
        Job::DeleteClaim { pod, claim, uid, finalizers } => {
            if let Err(error) = devices::delete(&client, &claim, &uid, &finalizers).await {
                tracing::warn!(%claim, %error, "cannot delete the claim for extended resources that a try before has left");
            }
            WriteResult { pod, event: None }
        }
        Job::Bind { pod, uid, node, claims, extended, extender } => {
            let binder = extender.map(|it| (extenders, it));
            let bound = bind_with_devices(&client, binder, (&pod, &uid), &node, (claims, extended)).await;
            let event = match bound {
                Ok(node) => Event::Bound { pod: pod.clone(), uid, node },
                Err(error) => {
                    tracing::debug!(node, %error, "cannot bind");
                    Event::BindFailed { pod: pod.clone(), uid, retry: error.retry(), message: error.to_string() }
                }
            };
            WriteResult { pod, event: Some(event) }
        }
    }
}

/// Writes the condition into the revision it was meant for, or into a newer one of the pod if it still has no node.
async fn tell(client: &Client, pod: &Key, mut patch: Value) -> Result<(), Error> {
    for _ in 0..TELL_TRIES {
        match client.patch(&PODS, pod, "status", &PatchType::Merge, &patch).await {
            Err(error) if error.is_conflict() => {}
            result => return result.map(drop),
        }
        let found: WaitingPod = client.get_as(&PODS, pod).await?;
        if patch["metadata"]["uid"] != found.metadata.uid || !found.spec.node_name.is_empty() {
            return Ok(());
        }
        patch["metadata"]["resourceVersion"] = json!(found.metadata.resource_version);
        let is_ours = |it: &Value| it["type"] == "PodScheduled";
        let ours = patch["status"]["conditions"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let others = found.status.conditions.into_iter().filter(|it| !is_ours(it));
        patch["status"]["conditions"] = others.chain(ours.into_iter().filter(is_ours)).collect();
    }
    // Whoever changes a pod that often is heard of; the next attempt tells it.
    Ok(())
}

/// Says in the Pod's status why it goes, then deletes it (`PreemptPod`).
async fn evict(client: &Client, eviction: &Eviction) -> Result<(), Error> {
    let pod = eviction.victim_key();
    client.patch(&PODS, &pod, "status", &PatchType::Strategic, &eviction.patch).await?;
    let params = DeleteParams { uid: Some(eviction.victim.uid.clone()), ..DeleteParams::default() };
    client.delete(&PODS, &pod, &params).await.map(drop)
}

/// Up to the first that is not taken.
async fn give_volumes(client: &Client, patches: Vec<(Resource, Key, Value)>) -> Result<(), Error> {
    for (resource, key, patch) in patches {
        client.patch(&resource, &key, "", &PatchType::Merge, &patch).await?;
    }
    Ok(())
}

/// Binds once all claims have their devices.
async fn bind_with_devices(
    client: &Client,
    binder: Option<(&Extenders, usize)>,
    (pod, uid): (&Key, &str),
    node: &str,
    (claims, extended): (Vec<ClaimReservation>, Option<ExtendedClaimWrite>),
) -> Result<String, Error> {
    let made = devices::reserve_all(client, (pod, uid), claims, extended).await?;
    let bound = match binder {
        Some((extenders, idx)) => extenders.bind(client, idx, (pod, uid), node).await,
        None => bind(client, pod, uid, node).await,
    };
    // Where it is not known whether it is bound, its claim stays: it is stale at the next try if there is one.
    let is_elsewhere = match &bound {
        Ok(found) => found != node,
        Err(error) => !error.may_have_been_done(),
    };
    if let Some(made) = made.filter(|_| is_elsewhere) {
        devices::take_back(client, made).await;
    }
    bound
}

/// Binds, and does not come back before it is certain where the pod is. Gives its node, which is another than the one
/// wanted where somebody else was faster.
async fn bind(client: &Client, pod: &Key, uid: &str, node: &str) -> Result<String, Error> {
    let binding = json!({
        "kind": "Binding",
        "apiVersion": "v1",
        "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": uid},
        "target": {"kind": "Node", "apiVersion": "v1", "name": node},
    });
    let give_up_at = Instant::now() + BIND_PATIENCE;
    let mut backoff = Backoff::new(BIND_BACKOFF_FIRST, BIND_BACKOFF_MAX, 0);
    let mut is_in_doubt = false;
    loop {
        let error = match client.create_subresource(&PODS, pod, "binding", &binding).await {
            Ok(_) => return Ok(node.to_owned()),
            Err(error) => error,
        };
        is_in_doubt |= error.may_have_been_done();
        let is_definite = !error.may_have_been_done() && error.retry() != Retry::After;
        if is_definite && (is_in_doubt || error.is_conflict()) {
            // The refusal may come of an earlier try whose answer was lost, or of another scheduler's binding.
            match client.get_as::<BoundPod>(&PODS, pod).await {
                Ok(found) if found.metadata.uid == uid && !found.spec.node_name.is_empty() => {
                    return Ok(found.spec.node_name);
                }
                Ok(_) => return Err(error),
                Err(missing) if missing.is_not_found() => return Err(missing),
                Err(_) => {}
            }
        } else if !is_in_doubt {
            return Err(error);
        }
        if Instant::now() >= give_up_at {
            return Err(error);
        }
        tokio::time::sleep(backoff.delay()).await;
    }
}

#[derive(Deserialize)]
struct WaitingPod {
    metadata: corten_meta::ObjectMeta,
    #[serde(default)]
    spec: BoundSpec,
    #[serde(default)]
    status: WaitingStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct WaitingStatus {
    conditions: Vec<Value>,
}

#[derive(Deserialize)]
struct BoundPod {
    metadata: corten_meta::ObjectMeta,
    #[serde(default)]
    spec: BoundSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BoundSpec {
    node_name: String,
}
