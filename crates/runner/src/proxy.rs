//! Gives the proxy its hands: what is new of Services goes into the kernel.

mod measures;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use corten_api::resources::{ENDPOINT_SLICES, NODES, SERVICE_CIDRS, SERVICES};
use corten_client::{BoxFuture, Client, Informer, InformerParams, Keeping};
use corten_meta::{Key, Resource};
use corten_proxy::{
    Event, Existing, Frontend, Health, Proxy, Stale, Step,
    projections::{EndpointSlice, Meta, Service, ServiceCidr},
    rules::{Backend, Change, Protocol},
};
use corten_reconcile::{Decision, EventType};
use measures::{ProxyMeasures, families};
use tokio::time::Instant;

use crate::{
    Clock, JournalBook, NodeWatches, keeping,
    kernel_table::{OnlyMeta, Table, TableHands, TableLoop, Words, informer, poll_informer, run_table},
    shared_watch::EventSource,
};

/// Acts on the kernel of one machine. Errors are told to people.
pub trait PacketHands: TableHands {
    /// What the node's table holds.
    fn existing(&self) -> BoxFuture<'_, Result<Existing, String>>;
    /// All of it at once, or nothing.
    fn apply(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<(), String>>;
    fn forget(&self, stale: BTreeSet<Stale>) -> BoxFuture<'_, Result<usize, String>>;
    /// Forgets every flow of these fronts that goes elsewhere.
    fn forget_unbound(&self, bound: BTreeMap<Frontend, BTreeSet<Backend>>) -> BoxFuture<'_, Result<usize, String>>;
    /// The ports of the node's addresses that processes of the machine listen at.
    fn listening(&self) -> BoxFuture<'_, BTreeSet<(Protocol, u16)>>;
    /// Where names are answered on this node, once that is another place than the `known` one.
    fn name_server(&self, _known: Option<Backend>) -> BoxFuture<'static, Option<Backend>> {
        Box::pin(std::future::pending())
    }
    /// What is answered to load balancers from now on.
    fn answer_health(&self, health: Vec<Health>);
}

/// What the loop is given.
pub struct ProxySettings {
    pub proxy: Proxy,
    pub node_name: String,
    pub client: Client,
    /// What it watches together with other loops of the node.
    pub watches: Option<NodeWatches>,
    pub hands: Arc<dyn PacketHands>,
    pub clock: Clock,
    pub journal: Arc<JournalBook>,
}

/// Others' Services, and those without an address.
const HEADLESS: &str = "service.kubernetes.io/headless";
const OTHER_PROXY: &str = "service.kubernetes.io/service-proxy-name";
const ZONE: &str = "topology.kubernetes.io/zone";

const WORDS: Words = Words {
    by: corten_proxy::NAME,
    resource: SERVICES,
    rules: "the packet rules of services",
    gone: "ServiceRulesGone",
    refused: "ServiceRulesRefused",
    backoff_max: Duration::from_secs(30),
};

/// Runs until `shutdown` is ready. The rules stay, and the next run goes on with them.
pub async fn run_proxy(settings: ProxySettings, shutdown: impl Future<Output = ()> + Send) {
    let mut running = ProxyLoop::new(settings);
    running.table.tell(EventType::Normal, "Starting", "");
    run_table(running, shutdown).await;
}

struct ProxyLoop {
    proxy: Proxy,
    hands: Arc<dyn PacketHands>,
    table: Table,
    measures: ProxyMeasures,
    services: EventSource<Box<Service>>,
    slices: EventSource<Box<EndpointSlice>>,
    ranges: Informer<Box<ServiceCidr>>,
    node: Informer<OnlyMeta>,
    /// Ready where names are answered elsewhere than before.
    name_server: BoxFuture<'static, Option<Backend>>,
}

impl ProxyLoop {
    fn new(settings: ProxySettings) -> Self {
        let ProxySettings { proxy, node_name, client, watches, hands, clock, journal } = settings;
        let own = format!("metadata.name={node_name}");
        let of_node = InformerParams { field_selector: own, ..all(NODES, keeping::PROXIED_NODE) };
        // Kubernetes serves them since v1.33.
        let ranges = InformerParams { is_optional: true, ..all(SERVICE_CIDRS, keeping::PROXIED) };
        let selector = format!("!{HEADLESS},!{OTHER_PROXY}");
        let proxied = |resource| InformerParams { label_selector: selector.clone(), ..all(resource, keeping::PROXIED) };
        let (services, slices) = watches.as_ref().map(|it| (&it.services, &it.slices)).unzip();
        Self {
            services: EventSource::new(&client, proxied(SERVICES), services, |it| is_proxied(&it.metadata)),
            slices: EventSource::new(&client, proxied(ENDPOINT_SLICES), slices, |it| is_proxied(&it.metadata)),
            ranges: informer(&client, ranges),
            node: informer(&client, of_node),
            measures: ProxyMeasures::new(journal.clone(), clock.clone()),
            table: Table::new(WORDS, (&node_name, &client), hands.clone(), clock, journal),
            name_server: hands.name_server(None),
            proxy,
            hands,
        }
    }
}

impl TableLoop for ProxyLoop {
    type Event = Event;
    type Step = Step;

    fn table(&mut self) -> &mut Table {
        &mut self.table
    }

    fn is_synced(&self) -> bool {
        let n_lists = [self.services.n_lists(), self.slices.n_lists(), self.ranges.n_lists(), self.node.n_lists()];
        n_lists.iter().all(|it| *it > 0)
    }

    fn poll_news(&mut self, context: &mut Context<'_>, events: &mut Vec<Event>) -> bool {
        self.services.poll_events(context, events, Event::Service, |it| Some(Event::ServiceGone(it)));
        self.slices.poll_events(context, events, Event::Slice, |it| Some(Event::SliceGone(it)));
        poll_informer(&mut self.ranges, context, events, Event::Range, |it| Some(Event::RangeGone(it.name)));
        let zone = |it: OnlyMeta| Event::Zone(it.metadata.labels.get(ZONE).cloned().unwrap_or_default());
        poll_informer(&mut self.node, context, events, zone, |_| None);
        while let Poll::Ready(place) = self.name_server.as_mut().poll(context) {
            self.name_server = self.hands.name_server(place);
            events.push(Event::NameServer(place));
        }
        false
    }

    async fn look(&mut self) -> Vec<Event> {
        vec![Event::Listening(self.hands.listening().await)]
    }

    fn step(&mut self, events: Vec<Event>) -> Step {
        let step = self.proxy.step(events);
        self.measures.await_kernel(&step.triggers);
        step
    }

    fn forgotten(step: &Step) -> &[Key] {
        &step.forgotten
    }

    async fn change(&mut self, step: Step) -> Result<Vec<(Key, Decision)>, String> {
        let (begin, n_changes, changed) = (Instant::now(), step.changes.len(), families(&step.changes));
        let applied = self.hands.apply(step.changes).await;
        if n_changes > 0 {
            self.measures.synced(&changed, begin);
        }
        applied?;
        self.measures.programmed();
        if n_changes > 0 {
            tracing::debug!(n_changes, took = ?begin.elapsed(), "packet rules changed");
        }
        forgotten(self.hands.forget(step.stale.into_iter().collect()).await);
        if let Some(health) = step.health {
            self.hands.answer_health(health);
        }
        Ok(step.decisions)
    }

    /// On top of what the kernel holds.
    async fn whole(&mut self) -> Result<(), String> {
        let begin = Instant::now();
        let existing = self.hands.existing().await?;
        let changes = self.proxy.whole(&existing);
        let changed = families(&changes);
        let applied = self.hands.apply(changes).await;
        self.measures.synced(&changed, begin);
        applied?;
        self.measures.programmed();
        forgotten(self.hands.forget_unbound(self.proxy.bound()).await);
        self.hands.answer_health(self.proxy.health());
        Ok(())
    }

    fn counts(&self) -> (usize, usize) {
        self.proxy.counts()
    }

    fn decisions(&self) -> Vec<(Key, Decision)> {
        self.proxy.decisions()
    }
}

fn is_proxied(meta: &Meta) -> bool {
    !meta.labels.contains_key(HEADLESS) && !meta.labels.contains_key(OTHER_PROXY)
}

fn forgotten(result: Result<usize, String>) {
    match result {
        Ok(0) => {}
        Ok(n_flows) => tracing::debug!(n_flows, "flows to endpoints that went are forgotten"),
        Err(error) => tracing::warn!(error, "flows to endpoints that went cannot be forgotten"),
    }
}

fn all(resource: Resource, keeping: Keeping) -> InformerParams {
    keeping::params(resource, keeping).seeded_by(corten_proxy::NAME)
}

#[cfg(test)]
mod tests;
