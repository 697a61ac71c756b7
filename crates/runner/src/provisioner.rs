//! Gives the provisioner its hands: feeds it claims, volumes and classes, has drivers do what it decides, and writes what
//! came of that to the API.

mod answered;
mod capacities;
mod driver_pods;
mod election;
mod hands;
mod introduction;
mod jobs;
mod nodes;
mod queues;
mod shared;
mod snapshots;
mod storage_source;

use std::{
    collections::BTreeMap,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use corten_client::{BoxFuture, Client};
use corten_provisioner::{Config, Effect, Event, Job, Provisioner, Published};
use futures_util::FutureExt;
use tokio::time::{Instant, Sleep};

use self::{
    answered::Answered,
    election::Elections,
    hands::LOOK_PATIENCE,
    jobs::carry_out,
    queues::{Line, Queues},
    storage_source::{Informers, StorageSource},
};
use crate::{Clock, EventRecorder};
pub(crate) use capacities::{withdraw_but_of, withdraw_of};
pub use hands::{BuiltIn, NodeDriver, Refusal, SnapshotRefusal, Unchanged, VolumeHands};
pub(crate) use introduction::MADE_BY_CONTROL_PLANE;
pub use introduction::run_node_drivers;
pub(crate) use jobs::{grow_on_node, told};
pub use shared::SharedStorage;

/// What the loop is given.
pub struct ProvisionerSettings {
    pub node_name: String,
    pub client: Client,
    /// As the node itself: for its Node and CSINode. `None`: the node is another machine, which tells of itself.
    pub node: Option<Client>,
    /// As who sees all Pods, for the sidecars among them, and all nodes.
    pub viewer: Client,
    /// What is seen together with the loops of other nodes; `None`: it is seen through `client`, for this node alone.
    pub shared: Option<SharedStorage>,
    pub hands: Arc<dyn VolumeHands>,
    pub clock: Clock,
}

const BATCH: usize = 256;
const IDLE: Duration = Duration::from_secs(3600);

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

struct ProvisionerLoop {
    mind: Provisioner,
    client: Client,
    node: Option<Client>,
    viewer: Client,
    hands: Arc<dyn VolumeHands>,
    answered: Arc<Answered>,
    clock: Clock,
    source: StorageSource,
    elections: Elections,
    drivers: BoxFuture<'static, Vec<NodeDriver>>,
    /// Writes what the cluster has from the start, and what the node has.
    introduction: Option<BoxFuture<'static, ()>>,
    /// Learns what an earlier run has told of how much is left.
    before: Option<BoxFuture<'static, BTreeMap<String, String>>>,
    queues: Queues,
    recorders: BTreeMap<String, EventRecorder>,
    tick_at: Option<Instant>,
    alarm: Pin<Box<Sleep>>,
}

/// As external-provisioner's, which begins with when it was started, and a number.
fn identity(clock: &Clock) -> String {
    format!("{}-{}", clock().unix_millis(), std::process::id() % 10_000)
}

fn drivers(hands: &Arc<dyn VolumeHands>) -> BoxFuture<'static, Vec<NodeDriver>> {
    let hands = hands.clone();
    Box::pin(async move { hands.drivers().await })
}

impl ProvisionerLoop {
    fn new(settings: ProvisionerSettings) -> Self {
        let ProvisionerSettings { node_name, client, node, viewer, shared, hands, clock } = settings;
        Self {
            source: match shared {
                Some(shared) => StorageSource::Together(shared.reader(&node_name)),
                None => StorageSource::Alone(Box::new(Informers::new(&client, &node_name))),
            },
            elections: Elections::new(client.clone(), node_name.clone(), clock.clone()),
            drivers: drivers(&hands),
            introduction: None,
            before: Some(Box::pin(capacities::of_before(client.clone(), node_name.clone()))),
            queues: Queues::default(),
            recorders: BTreeMap::new(),
            tick_at: None,
            alarm: Box::pin(tokio::time::sleep(IDLE)),
            mind: Provisioner::new(Config { node_name, identity: identity(&clock) }),
            client,
            node,
            viewer,
            hands,
            answered: Arc::default(),
            clock,
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            let mut events = self.news(context);
            events.extend(self.queues.poll(context));
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
            let mut others = found.iter().filter(|it| !it.facts.is_built_in()).peekable();
            if others.peek().is_some() {
                let are_placed = others.any(|it| !it.facts.topology.is_empty());
                self.source.show_drivers(&self.viewer, &self.mind.config().node_name, are_placed);
            }
            let names = found.iter().flat_map(|it| corten_provisioner::leases::names(&it.facts)).collect();
            self.elections.stand_for(&names);
            events.push(Event::Drivers(found.iter().map(|it| it.facts.clone()).collect()));
            self.introduction = Some(self.introduce(found));
        }
        if self.introduction.as_mut().is_some_and(|it| it.as_mut().poll(context).is_ready()) {
            self.introduction = None;
        }
        if let Some(Poll::Ready(found)) = self.before.as_mut().map(|it| it.as_mut().poll(context)) {
            self.before = None;
            events.push(Event::Capacities(found));
        }
        events.extend(self.elections.poll(context).map(Event::Leads));
        events.extend(self.source.poll(context));
        events
    }

    fn step(&mut self, event: Event) {
        let now = (self.clock)();
        for effect in self.mind.step(event, now) {
            match effect {
                Effect::Do(job) => self.begin(*job),
                Effect::PublishCapacity(published) => self.publish(published),
                Effect::WithdrawCapacity { name } => {
                    let client = self.client.clone();
                    let withdrawn = async move { capacities::withdraw(&client, name).await };
                    self.queues.push(Line::Api, withdrawn.map(|()| None));
                }
                Effect::Event { driver, about, event_type, reason, message } => {
                    let (client, node) = (&self.client, &self.mind.config().node_name);
                    let recorder = self.recorders.entry(driver);
                    let recorder = recorder
                        .or_insert_with_key(|driver| EventRecorder::on_node(client.clone(), driver.clone(), node));
                    recorder.record(&about, event_type, reason, &message, now);
                }
                Effect::AskAttached { driver, places } => {
                    let (hands, line) = (self.hands.clone(), Line::Looks(driver.clone()));
                    let told = async move {
                        let told = told_in_time(&driver, hands.attached(driver.clone(), places)).await;
                        Some(Event::Attached(driver, told))
                    };
                    self.queues.push(line, told);
                }
                Effect::AskConditions { driver, handles } => {
                    let (hands, line) = (self.hands.clone(), Line::Looks(driver.clone()));
                    let told = async move {
                        let told = told_in_time(&driver, hands.conditions(driver.clone(), handles)).await;
                        Some(Event::Conditions(driver, told))
                    };
                    self.queues.push(line, told);
                }
                Effect::WakeAt(at) => {
                    self.tick_at = Some(Instant::now() + at.since(now) + Duration::from_millis(1));
                }
            }
        }
    }

    fn begin(&mut self, job: Job) {
        let line = Line::of(&job);
        let work = carry_out(self.client.clone(), self.hands.clone(), self.answered.clone(), job);
        self.queues.push(line, work.map(|it| Some(Event::Done(it))));
    }

    fn publish(&mut self, of: Published) {
        let (client, hands, config) = (self.client.clone(), self.hands.clone(), self.mind.config().clone());
        let line = Line::Looks(of.driver.clone());
        let told = async move { capacities::publish(&client, &*hands, of, &config).await };
        self.queues.push(line, told.map(|it| Some(Event::CapacityTold(it))));
    }

    /// Tells the cluster of the drivers, until it has heard, and of the node's own again where that was changed.
    fn introduce(&self, found: Vec<NodeDriver>) -> BoxFuture<'static, ()> {
        let (client, own, hands) = (self.client.clone(), self.node.clone(), self.hands.clone());
        let node = self.mind.config().node_name.clone();
        Box::pin(async move {
            let attempt = || async {
                match &own {
                    Some(own) => introduction::of_node_here((&client, own), &*hands, &node, &found).await,
                    None => introduction::of_cluster(&client, &*hands).await.map(|()| Vec::new()),
                }
            };
            introduction::until_heard(attempt).await;
            if let Some(own) = &own {
                introduction::keep_told(own, &node, &found).await;
            }
        })
    }
}

/// What is only asked so that it can be told.
async fn told_in_time<T>(driver: &str, asked: impl Future<Output = Result<T, Refusal>>) -> Option<T> {
    match tokio::time::timeout(LOOK_PATIENCE, asked).await {
        Ok(Ok(told)) => Some(told),
        Ok(Err(refusal)) => {
            tracing::debug!(why = refusal.message, driver, "a driver does not say how its volumes are");
            None
        }
        Err(_) => {
            tracing::debug!(driver, "a driver takes too long to say how its volumes are");
            None
        }
    }
}

#[cfg(test)]
mod tests;
