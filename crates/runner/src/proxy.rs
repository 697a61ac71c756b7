//! Gives the proxy its hands: what is new of Services goes into the kernel, all that came meanwhile at once.
//!
//! A transaction that is refused leaves the kernel as it was, so the next one says everything: nothing is patched onto a
//! state that is not known.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    sync::Arc,
    task::Poll,
    time::Duration,
};

use corten_api::resources::{ENDPOINT_SLICES, NODES, SERVICE_CIDRS, SERVICES};
use corten_client::{
    Backoff, BoxFuture, Client, Identity, Informer, InformerEvent, InformerParams, decode, decode_projection,
};
use corten_meta::{Key, ObjectMeta, ObjectReference, Resource};
use corten_proxy::{
    Event, Existing, Frontend, Health, Proxy, Stale, Step,
    projections::{EndpointSlice, Service, ServiceCidr},
    rules::{Backend, Change, Protocol},
};
use corten_reconcile::{Actor, Decision, EventType, Wait};
use serde::{Deserialize, de::DeserializeOwned};
use tokio::time::Instant;

use crate::{Clock, EventRecorder, JournalBook, queue::QueueCounts};

/// Acts on the kernel of one machine. Errors are told to people.
pub trait PacketHands: Send + Sync + 'static {
    /// What the node's table holds.
    fn existing(&self) -> BoxFuture<'_, Result<Existing, String>>;
    /// Is the table there still?
    fn is_there(&self) -> BoxFuture<'_, Result<bool, String>>;
    /// Becomes ready where somebody has just taken the table away. Without it that is seen at the next look.
    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
    /// All of it at once, or nothing.
    fn apply(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<(), String>>;
    fn forget(&self, stale: BTreeSet<Stale>) -> BoxFuture<'_, Result<usize, String>>;
    /// Forgets every flow of these fronts that goes elsewhere.
    fn forget_unbound(&self, bound: BTreeMap<Frontend, BTreeSet<Backend>>) -> BoxFuture<'_, Result<usize, String>>;
    /// The ports of the node's addresses that processes of the machine listen at.
    fn listening(&self) -> BoxFuture<'_, BTreeSet<(Protocol, u16)>>;
    /// What is answered to load balancers from now on.
    fn answer_health(&self, health: Vec<Health>);
}

/// What the loop is given.
pub struct ProxySettings {
    pub proxy: Proxy,
    pub node_name: String,
    pub client: Client,
    pub hands: Arc<dyn PacketHands>,
    pub clock: Clock,
    pub journal: Arc<JournalBook>,
}

/// How much is taken in before the kernel hears of it.
const BATCH: usize = 20_000;
const BACKOFF_FIRST: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(30);
/// How often to look whether somebody has emptied the ruleset.
const LOOK: Duration = Duration::from_secs(10);
/// Others' Services, and those without an address.
const SELECTOR: &str = "!service.kubernetes.io/headless,!service.kubernetes.io/service-proxy-name";
const ZONE: &str = "topology.kubernetes.io/zone";

/// Runs until `shutdown` is ready. The rules stay, and the next run goes on with them.
pub async fn run_proxy(settings: ProxySettings, shutdown: impl Future<Output = ()> + Send) {
    let mut shutdown = pin!(shutdown);
    let mut running = ProxyLoop::new(settings);
    tokio::select! {
        biased;
        () = &mut shutdown => {}
        () = running.run() => {}
    }
}

struct ProxyLoop {
    proxy: Proxy,
    node_name: String,
    hands: Arc<dyn PacketHands>,
    clock: Clock,
    journal: Arc<JournalBook>,
    counts: Arc<QueueCounts>,
    recorder: EventRecorder,
    services: Informer<Box<Service>>,
    slices: Informer<Box<EndpointSlice>>,
    ranges: Informer<Box<ServiceCidr>>,
    node: Informer<OnlyMeta>,
    backoff: Backoff,
    /// The kernel is not known to hold what the mind thinks.
    is_unsure: bool,
    look_at: Instant,
    retry_at: Option<Instant>,
    /// Why the last transaction was refused.
    refused: Option<String>,
}

#[derive(Deserialize)]
struct OnlyMeta {
    metadata: ObjectMeta,
}

impl ProxyLoop {
    fn new(settings: ProxySettings) -> Self {
        let ProxySettings { proxy, node_name, client, hands, clock, journal } = settings;
        let of_node = InformerParams { field_selector: format!("metadata.name={node_name}"), ..all(NODES) };
        let proxied = |resource| InformerParams { label_selector: SELECTOR.to_owned(), ..all(resource) };
        Self {
            services: informer(&client, proxied(SERVICES)),
            slices: informer(&client, proxied(ENDPOINT_SLICES)),
            ranges: informer(&client, all(SERVICE_CIDRS)),
            node: informer(&client, of_node),
            counts: journal.queue(corten_proxy::NAME),
            recorder: EventRecorder::on_node(client, corten_proxy::NAME, &node_name),
            backoff: Backoff::new(BACKOFF_FIRST, BACKOFF_MAX, 0),
            is_unsure: true,
            look_at: Instant::now() + LOOK,
            retry_at: None,
            refused: None,
            proxy,
            node_name,
            hands,
            clock,
            journal,
        }
    }

    async fn run(&mut self) {
        self.journal.begin(corten_proxy::NAME);
        self.tell(EventType::Normal, "Starting", "");
        loop {
            let events = self.news().await;
            self.counts.count_adds(events.len());
            let begun = self.counts.thinking.begin(None);
            let node = Key::cluster(&*self.node_name);
            begun.about(Some(node.clone()), Some((NODES, node)));
            let step = self.proxy.step(events);
            drop(begun);
            for key in &step.forgotten {
                self.journal.retract(&SERVICES, key, corten_proxy::NAME);
            }
            // Half a view would take away what an earlier run of this loop has made.
            if !self.is_synced() {
                continue;
            }
            if self.is_unsure {
                self.whole().await;
            } else {
                self.change(step).await;
            }
        }
    }

    /// All there is, once there is something to do.
    async fn news(&mut self) -> Vec<Event> {
        let due = self.retry_at.unwrap_or(self.look_at).min(self.look_at);
        let alarm = tokio::time::sleep_until(due);
        let mut alarm = pin!(alarm);
        let (hands, mut is_lost) = (self.hands.clone(), false);
        let mut lost = hands.lost();
        let gather = std::future::poll_fn(|context| {
            let _: Poll<()> = self.recorder.poll(context);
            let was_synced = self.is_synced();
            let mut events = Vec::new();
            while events.len() < BATCH
                && let Poll::Ready(event) = self.services.poll_event(context)
            {
                match event {
                    InformerEvent::Applied(service, _) => events.push(Event::Service(service)),
                    InformerEvent::Deleted(meta) => events.push(Event::ServiceGone(meta.key())),
                    InformerEvent::Synced(_) => {}
                }
            }
            while events.len() < BATCH
                && let Poll::Ready(event) = self.slices.poll_event(context)
            {
                match event {
                    InformerEvent::Applied(slice, _) => events.push(Event::Slice(slice)),
                    InformerEvent::Deleted(meta) => events.push(Event::SliceGone(meta.key())),
                    InformerEvent::Synced(_) => {}
                }
            }
            while let Poll::Ready(event) = self.ranges.poll_event(context) {
                match event {
                    InformerEvent::Applied(range, _) => events.push(Event::Range(range)),
                    InformerEvent::Deleted(meta) => events.push(Event::RangeGone(meta.key().name)),
                    InformerEvent::Synced(_) => {}
                }
            }
            while let Poll::Ready(event) = self.node.poll_event(context) {
                match event {
                    InformerEvent::Applied(node, _) => {
                        events.push(Event::Zone(node.metadata.labels.get(ZONE).cloned().unwrap_or_default()));
                    }
                    InformerEvent::Deleted(_) => {}
                    InformerEvent::Synced(_) => {}
                }
            }
            is_lost |= !is_lost && lost.as_mut().poll(context).is_ready();
            let is_ready = is_lost
                || !events.is_empty()
                || self.is_synced() != was_synced
                || alarm.as_mut().poll(context).is_ready();
            if is_ready { Poll::Ready(events) } else { Poll::Pending }
        });
        let mut events = gather.await;
        if is_lost {
            self.look_at = Instant::now();
        }
        if self.look_at <= Instant::now() {
            events.push(Event::Listening(self.hands.listening().await));
        }
        events
    }

    fn is_synced(&self) -> bool {
        let n_lists = [self.services.n_lists(), self.slices.n_lists(), self.ranges.n_lists(), self.node.n_lists()];
        n_lists.iter().all(|it| *it > 0)
    }

    /// Says to the kernel what one batch of news changes.
    async fn change(&mut self, step: Step) {
        let begin = Instant::now();
        let n_changes = step.changes.len();
        if let Err(error) = self.hands.apply(step.changes).await {
            return self.failed(&error);
        }
        if n_changes > 0 {
            tracing::debug!(n_changes, took = ?begin.elapsed(), "packet rules changed");
        }
        self.explain(step.decisions);
        forgotten(self.hands.forget(step.stale.into_iter().collect()).await);
        if let Some(health) = step.health {
            self.hands.answer_health(health);
        }
        self.look().await;
    }

    /// Says everything to the kernel, on top of whatever it holds.
    async fn whole(&mut self) {
        if self.retry_at.is_some_and(|it| it > Instant::now()) {
            return;
        }
        let begin = Instant::now();
        let applied = match self.hands.existing().await {
            Ok(existing) => self.hands.apply(self.proxy.whole(&existing)).await,
            Err(error) => Err(error),
        };
        if let Err(error) = applied {
            return self.failed(&error);
        }
        (self.is_unsure, self.retry_at, self.refused) = (false, None, None);
        self.backoff.reset();
        let (services, elements) = self.proxy.counts();
        tracing::info!(services, elements, took = ?begin.elapsed(), "the packet rules of all services are in place");
        self.explain(self.proxy.decisions());
        forgotten(self.hands.forget_unbound(self.proxy.bound()).await);
        self.hands.answer_health(self.proxy.health());
    }

    /// Somebody may have emptied the whole ruleset.
    async fn look(&mut self) {
        if self.look_at > Instant::now() {
            return;
        }
        self.look_at = Instant::now() + LOOK;
        match self.hands.is_there().await {
            Ok(true) => {}
            Ok(false) => {
                tracing::warn!("the packet rules of services are gone; they are made anew");
                self.tell(
                    EventType::Warning,
                    "ServiceRulesGone",
                    "the packet rules of services were removed, they are made anew",
                );
                self.is_unsure = true;
                self.whole().await;
            }
            Err(error) => tracing::warn!(error, "cannot look at the packet rules"),
        }
    }

    fn failed(&mut self, error: &str) {
        self.is_unsure = true;
        self.counts.count_retry();
        self.retry_at = Some(Instant::now() + self.backoff.delay());
        if self.refused.as_deref() == Some(error) {
            return tracing::debug!(error, "the packet rules of services cannot be changed");
        }
        tracing::error!(error, "the packet rules of services cannot be changed");
        self.tell(EventType::Warning, "ServiceRulesRefused", error);
        self.refused = Some(error.to_owned());
        self.explain(self.proxy.decisions());
    }

    fn explain(&self, decisions: Vec<(Key, Decision)>) {
        let now = (self.clock)();
        for (key, mut decision) in decisions {
            decision.at = Some(now);
            if let Some(error) = &self.refused {
                let message = format!("node {} cannot change its packet rules: {error}", self.node_name);
                decision.effects.clear();
                decision
                    .waits
                    .push(Wait::new("ServiceRulesRefused", message, Actor::Operator).on("Node", &self.node_name));
            }
            self.journal.record(&SERVICES, &key, decision);
        }
    }

    fn tell(&mut self, event_type: EventType, reason: &str, message: &str) {
        // As kube-proxy does: the name stands for the uid, too.
        let about = ObjectReference {
            kind: "Node".into(),
            name: self.node_name.clone(),
            uid: self.node_name.clone(),
            ..ObjectReference::default()
        };
        self.recorder.record(&about, event_type, reason, message, (self.clock)());
    }
}

fn forgotten(result: Result<usize, String>) {
    match result {
        Ok(0) => {}
        Ok(n_flows) => tracing::debug!(n_flows, "flows to endpoints that went are forgotten"),
        Err(error) => tracing::warn!(error, "flows to endpoints that went cannot be forgotten"),
    }
}

fn all(resource: Resource) -> InformerParams {
    InformerParams::all(resource).seeded_by(corten_proxy::NAME)
}

fn informer<T: DeserializeOwned + 'static>(client: &Client, params: InformerParams) -> Informer<T> {
    Informer::decoding(client.clone(), params, |bytes| {
        let meta: OnlyMeta = decode_projection(&bytes)?;
        Ok((Identity::of(&meta.metadata), decode(&bytes)?))
    })
}

#[cfg(test)]
mod tests;
