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
mod writes;

use std::{
    collections::{BTreeSet, VecDeque},
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use corten_api::resources::{NODES, PODS};
use corten_client::{BoxFuture, Client, Identity, Informer, InformerEvent, InformerParams, decode_projection};
use corten_meta::{Key, Named, Resource, Time};
use corten_reconcile::Projection;
use corten_scheduler::{Effect, Event, Moment, Node, Pod, Scheduler};
use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::time::{Instant, Sleep};

use self::{
    cluster::ClusterInformers,
    extenders::Extenders,
    storage::StorageInformers,
    writes::{Job, WriteResult, write},
};
use crate::{
    Clock, EventRecorder, JournalBook, QueueCounts, rewind::Rewind, scheduler_measures::SchedulerMeasures,
    shared_informers::REST,
};

use self::extenders::extenders_over_network;
pub use self::extenders::{ReachExtender, check_extenders};

const CONCURRENT_WRITES: usize = 64;
/// While more than this waits to be written, no further pods are placed.
const WAITING_MAX: usize = 256;
const BATCH: usize = 256;
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
    run_scheduler_beside(extenders_over_network(), scheduler, client, (clock, journal), shutdown).await;
}

/// As [`run_scheduler`], beside extenders that are reached another way.
pub async fn run_scheduler_beside(
    reach: ReachExtender,
    scheduler: Scheduler,
    client: Client,
    (clock, journal): (Clock, Arc<JournalBook>),
    shutdown: impl Future<Output = ()> + Send,
) {
    let mut shutdown = pin!(shutdown);
    journal.begin("scheduler");
    let mut running = SchedulerLoop::new(scheduler, (client, reach), clock, journal);
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
    measures: Arc<SchedulerMeasures>,
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
    reach: ReachExtender,
    /// What extenders are asked. The scheduler asks about a few pods at a time.
    consultations: FuturesUnordered<BoxFuture<'static, Event>>,
    events: EventRecorder,
    rewind: Rewind,
    tick_at: Option<Instant>,
    rests_until: Option<Instant>,
    alarm: Pin<Box<Sleep>>,
}

impl SchedulerLoop {
    fn new(
        scheduler: Scheduler,
        (client, reach): (Client, ReachExtender),
        clock: Clock,
        journal: Arc<JournalBook>,
    ) -> Self {
        let extenders = Arc::new(Extenders::new(&scheduler.config().extenders, &reach));
        let measures = journal.scheduler(&scheduler.config().profiles);
        Self {
            scheduler: scheduler.observed_by(measures.clone()),
            measures,
            extenders,
            reach,
            consultations: FuturesUnordered::new(),
            nodes: informer(&client, NODES, false),
            pods: informer(&client, PODS, false),
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
        let place = (self.client.clone(), self.reach.clone());
        let (clock, journal) = (self.clock.clone(), self.journal.clone());
        self.finish().await;
        Self::new(scheduler, place, clock, journal)
    }

    /// Takes in everything there is, places pods where it is time, begins writes; pending once nothing more happens.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        // One time for the whole look: a rest that ended in the midst of it would be waited for by nobody.
        let now = Instant::now();
        let mut poll = self.poll_caches_unless_resting(now, context);
        while let Poll::Ready(Some(WriteResult { pod, begun, event })) = self.writes.poll_next_unpin(context) {
            self.writing.remove(&pod);
            if let Some(event) = event {
                self.tell_bound(&event, begun);
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
        self.measures.set_pending(self.scheduler.pending());
        poll
    }

    /// The answer to a binding, if this is one.
    fn tell_bound(&self, event: &Event, begun: Moment) {
        let (pod, is_bound) = match event {
            Event::Bound { pod, .. } => (pod, true),
            Event::BindFailed { pod, .. } | Event::BoundByAnother { pod, .. } => (pod, false),
            _ => return,
        };
        if let Some(profile) = self.scheduler.profile_of(pod) {
            self.measures.bound(profile, is_bound, begun);
        }
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
            let (client, extenders, measures) = (self.client.clone(), self.extenders.clone(), self.measures.clone());
            self.writes.push(Box::pin(write(client, extenders, measures, job)));
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

/// Where it does not run, no pods wait for it.
impl Drop for SchedulerLoop {
    fn drop(&mut self) {
        self.measures.ended();
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

/// A server of another version, or upstream's, need not serve all that places Pods: of what is optional and not served there is none.
fn informer<T: Projection>(client: &Client, resource: Resource, is_optional: bool) -> Informer<T> {
    let params = InformerParams { is_optional, ..InformerParams::all(resource).seeded_by("scheduler") };
    Informer::decoding(client.clone(), params, |bytes| {
        let object: T = decode_projection(&bytes)?;
        Ok((Identity::of(object.meta()), object))
    })
}
