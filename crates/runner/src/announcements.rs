//! Has this node answer for the addresses of load balancers that are its own: watches Services, Nodes, EndpointSlices and the pool that
//! the cluster says it has, and has the kernel follow.
//!
//! The kernel forgets an address that is not renewed (see [`corten_proxy::ANSWER_LIFETIME`]): where this process is no more, another node answers
//! alone by the time the cluster knows. What was decided last is renewed also while the API is not reached.

use std::{
    collections::{BTreeMap, BTreeSet},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use corten_api::{
    cluster_network::{CONFIG_MAP, CONFIG_MAP_NAMESPACE, LOAD_BALANCER_POOL},
    load_balancer::AddressPool,
    resources::{CONFIG_MAPS, ENDPOINT_SLICES, NODES, SERVICES},
};
use corten_client::{Backoff, BoxFuture, Client, Informer, InformerEvent, InformerParams};
use corten_meta::{Key, Resource, Time};
use corten_proxy::{
    ANNOUNCED_TIMES, Announcement, BalancerNode, announcements,
    projections::{EndpointSlice, Service},
};
use corten_reconcile::{Actor, Decision, Wait};
use serde::Deserialize;
use tokio::time::{Instant, sleep_until};

use crate::{Clock, JournalBook, kernel_table::informer};

/// Acts on the kernel of one machine. Errors are told to people.
pub trait AnnouncementHands: Send + Sync + 'static {
    /// Has the kernel answer for these addresses, for [`corten_proxy::ANSWER_LIFETIME`] from now on, and for no others, and makes them known on the
    /// link where that was not done often enough.
    fn apply(&self, wanted: BTreeSet<Announcement>) -> BoxFuture<'_, Result<(), String>>;
}

/// So long after each other what is new is made known.
const REPEAT: Duration = Duration::from_secs(1);

/// The loop's name in journals.
const NAME: &str = "load-balancer-addresses";
/// What comes together is written together.
const PAUSE: Duration = Duration::from_millis(50);
/// How often addresses are renewed.
const LOOK: Duration = Duration::from_secs(10);
const BACKOFF_FIRST: Duration = Duration::from_millis(200);

/// What the loop is given.
pub struct AnnouncementSettings {
    pub node_name: String,
    pub client: Client,
    pub hands: Arc<dyn AnnouncementHands>,
    pub clock: Clock,
    pub journal: Arc<JournalBook>,
}

/// Runs until `shutdown` is ready. The addresses stay until their time is over, or the next run goes on with them.
pub async fn run_announcements(settings: AnnouncementSettings, shutdown: impl Future<Output = ()> + Send) {
    let shutdown = pin!(shutdown);
    tokio::select! {
        biased;
        () = shutdown => {}
        () = Announcing::new(settings).run() => {}
    }
}

struct Announcing {
    settings: AnnouncementSettings,
    services: Informer<Service>,
    /// Nobody need know them where no address is out of a pool.
    nodes: Option<Informer<BalancerNode>>,
    /// As little.
    record: Option<Informer<NetworkRecord>>,
    /// Only Services with `externalTrafficPolicy: Local` go by them.
    slices: Option<Informer<EndpointSlice>>,
    view: View,
    failure: Option<String>,
    /// What the kernel answers for; `None` where that is not known.
    last: Option<BTreeSet<Announcement>>,
    /// When the cluster last thought otherwise of this node than before.
    ready_changed_at: Option<Time>,
    /// How many times what is new is still to be made known.
    n_repeats: u32,
}

/// What the cluster says of its addresses.
#[derive(Deserialize)]
struct NetworkRecord {
    #[serde(default)]
    data: Option<BTreeMap<String, String>>,
}

#[derive(Default)]
struct View {
    services: BTreeMap<Key, Service>,
    nodes: BTreeMap<String, BalancerNode>,
    slices: BTreeMap<Key, EndpointSlice>,
    pool: Pool,
}

/// Which addresses may be answered for.
#[derive(Default)]
enum Pool {
    /// The cluster has not said anything: none.
    #[default]
    Unsaid,
    /// It says other things and not this one, as older servers do: those that Services show.
    Unknown,
    These(AddressPool),
}

impl Announcing {
    fn new(settings: AnnouncementSettings) -> Self {
        // Of all others nobody here wants to know.
        let balancers = InformerParams {
            field_selector: "spec.type=LoadBalancer".into(),
            // Upstream's servers select Services by their names alone.
            is_field_selector_hint: true,
            ..all(SERVICES)
        };
        Self {
            services: informer(&settings.client, balancers),
            nodes: None,
            record: None,
            slices: None,
            view: View::default(),
            failure: None,
            last: None,
            ready_changed_at: None,
            n_repeats: 0,
            settings,
        }
    }

    async fn run(mut self) {
        let mut backoff = Backoff::new(BACKOFF_FIRST, LOOK, 1);
        let mut due = Instant::now() + LOOK;
        loop {
            tokio::select! {
                biased;
                event = self.services.next() => {
                    taken_in(&mut self.view.services, event, |it| it);
                    self.look_further();
                }
                event = next(&mut self.nodes) => taken_in(&mut self.view.nodes, event, |it| it.name),
                event = next(&mut self.record) => self.view.note_pool(event),
                event = next(&mut self.slices) => taken_in(&mut self.view.slices, event, |it| it),
                () = sleep_until(due) => {
                    // Half a view would take away what an earlier run has begun.
                    let is_done = !self.is_synced() || self.put().await;
                    if is_done {
                        backoff.reset();
                    }
                    let pause = if self.n_repeats > 0 { REPEAT } else { LOOK };
                    due = Instant::now() + if is_done { pause } else { backoff.delay() };
                    continue;
                }
            }
            // A look that is due sooner stays so, however much comes meanwhile.
            due = due.min(Instant::now() + PAUSE);
        }
    }

    fn look_further(&mut self) {
        let announced = || self.view.services.values().filter(|it| it.is_announced());
        let (needs_nodes, needs_slices) =
            (announced().next().is_some(), announced().any(Service::needs_local_endpoints));
        let client = &self.settings.client;
        if needs_nodes && self.nodes.is_none() {
            self.nodes = Some(informer(client, all(NODES)));
            let params = InformerParams {
                namespace: CONFIG_MAP_NAMESPACE.into(),
                field_selector: format!("metadata.name={CONFIG_MAP}"),
                ..all(CONFIG_MAPS)
            };
            self.record = Some(informer(client, params));
        }
        if needs_slices && self.slices.is_none() {
            self.slices = Some(informer(client, all(ENDPOINT_SLICES)));
        }
    }

    fn is_synced(&self) -> bool {
        let nodes = self.nodes.as_ref().is_none_or(|it| it.n_lists() > 0);
        let slices = self.slices.as_ref().is_none_or(|it| it.n_lists() > 0);
        let record = self.record.as_ref().is_none_or(|it| it.n_lists() > 0 || it.is_forbidden());
        self.services.n_lists() > 0 && nodes && slices && record
    }

    /// Has the kernel do what is wanted now. Did it?
    async fn put(&mut self) -> bool {
        let View { services, nodes, slices, pool } = &self.view;
        let none = AddressPool::default();
        let pool = match pool {
            // A server that is older lets no node read what it does not say.
            Pool::Unsaid if self.record.as_ref().is_some_and(Informer::is_forbidden) => None,
            Pool::Unsaid => Some(&none),
            Pool::Unknown => None,
            Pool::These(pool) => Some(pool),
        };
        let wanted = announcements(&self.settings.node_name, services.values(), nodes, slices, pool);
        let changed_at = nodes.get(&self.settings.node_name).and_then(BalancerNode::ready_changed_at);
        if changed_at != self.ready_changed_at {
            self.ready_changed_at = changed_at;
            // While this node was not heard another one may have answered: it is made known once more who does.
            if self.last.as_ref().is_some_and(|it| !it.is_empty()) {
                let is_done = self.settings.hands.apply(BTreeSet::new()).await.is_ok();
                self.last = is_done.then(BTreeSet::new);
            }
        }
        let is_new = self.last.as_ref() != Some(&wanted);
        // A node that answers for nothing has nothing to renew.
        if wanted.is_empty() && !is_new {
            return true;
        }
        if is_new {
            for Announcement { address, service } in wanted.difference(self.last.as_ref().unwrap_or(&BTreeSet::new())) {
                tracing::info!(%address, %service, "this node answers for the address of a load balancer");
            }
            for Announcement { address, service } in self.last.iter().flatten().filter(|it| !wanted.contains(*it)) {
                tracing::info!(%address, %service, "this node answers no longer for the address of a load balancer");
            }
            self.n_repeats = ANNOUNCED_TIMES;
        }
        self.n_repeats = if wanted.is_empty() { 0 } else { self.n_repeats.saturating_sub(1) };
        let applied = self.settings.hands.apply(wanted.clone()).await;
        self.last = applied.is_ok().then_some(wanted);
        self.tell(applied.err());
        self.failure.is_none()
    }

    fn tell(&mut self, failure: Option<String>) {
        if failure == self.failure {
            return;
        }
        let wait = |failure: &String| {
            let message = format!("this node cannot answer for the addresses of load balancers: {failure}");
            Wait::new("LoadBalancerAddressesFailed", message, Actor::Operator)
        };
        let waits: Vec<Wait> = failure.iter().map(wait).collect();
        waits.iter().for_each(|it| tracing::warn!("{}", it.message));
        let decision = Decision {
            by: NAME.into(),
            at: Some((self.settings.clock)()),
            waits,
            error: failure.clone(),
            ..Decision::default()
        };
        self.settings.journal.record(&NODES, &Key::cluster(&*self.settings.node_name), decision);
        self.failure = failure;
    }
}

impl View {
    /// The object is made anew where somebody deletes it, or writes what cannot be read: until then it is what it was.
    fn note_pool(&mut self, event: InformerEvent<NetworkRecord>) {
        let InformerEvent::Applied(record, _) = event else { return };
        let data = record.data.unwrap_or_default();
        let Some(text) = data.get(LOAD_BALANCER_POOL) else {
            self.pool = Pool::Unknown;
            return;
        };
        match AddressPool::parse(&text.split(',').collect::<Vec<_>>()) {
            Ok(pool) => self.pool = Pool::These(pool),
            Err(error) => tracing::warn!(error, "the ConfigMap {CONFIG_MAP} says {LOAD_BALANCER_POOL} in other words"),
        }
    }
}

fn all(resource: Resource) -> InformerParams {
    InformerParams::all(resource).seeded_by(NAME)
}

async fn next<T: 'static>(informer: &mut Option<Informer<T>>) -> InformerEvent<T> {
    match informer {
        Some(informer) => informer.next().await,
        None => std::future::pending().await,
    }
}

fn taken_in<K: Ord, T>(known: &mut BTreeMap<K, T>, event: InformerEvent<T>, name: impl Fn(Key) -> K) {
    match event {
        InformerEvent::Applied(object, identity) => drop(known.insert(name(identity.key), object)),
        InformerEvent::Deleted(meta) => drop(known.remove(&name(meta.key()))),
        InformerEvent::Synced(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use serde_json::{Value, json};

    use super::*;
    use crate::fake::{FakeApi, clock};

    #[derive(Default)]
    struct FakeKernel {
        applied: Mutex<Vec<(Instant, Vec<String>)>>,
        fails: Mutex<u32>,
    }

    impl AnnouncementHands for FakeKernel {
        fn apply(&self, wanted: BTreeSet<Announcement>) -> BoxFuture<'_, Result<(), String>> {
            let mut fails = self.fails.lock();
            let is_failing = *fails > 0;
            *fails = fails.saturating_sub(1);
            self.applied.lock().push((Instant::now(), wanted.iter().map(|it| it.address.to_string()).collect()));
            Box::pin(async move { if is_failing { Err("no such device".to_owned()) } else { Ok(()) } })
        }
    }

    fn service(ip: &str, policy: &str) -> Value {
        json!({
            "metadata": { "name": "web", "namespace": "default" },
            "spec": { "type": "LoadBalancer", "externalTrafficPolicy": policy },
            "status": {
                "loadBalancer": { "ingress": [{ "ip": ip, "ipMode": "VIP" }] },
                "conditions": [{ "type": "corten.dev/PoolAddresses", "status": "True" }],
            },
        })
    }

    fn node(name: &str, ready: &str) -> Value {
        json!({
            "metadata": { "name": name },
            "status": { "conditions": [{ "type": "Ready", "status": ready }] },
        })
    }

    const RECORD: &str = "/api/v1/namespaces/kube-system/configmaps/corten-cluster-network";

    fn record(data: &Value) -> Value {
        json!({ "metadata": { "name": CONFIG_MAP, "namespace": CONFIG_MAP_NAMESPACE }, "data": data })
    }

    async fn until(what: impl Fn() -> bool) {
        while !what() {
            tokio::time::advance(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_answers_for_what_is_its_own_and_renews_it() {
        let api = FakeApi::new();
        let (web, two) = ("/api/v1/namespaces/default/services/web", "/api/v1/nodes/n2");
        api.put(web, service("10.0.0.10", "Cluster"));
        api.put("/api/v1/nodes/n1", node("n1", "True"));
        api.put(RECORD, record(&json!({ "load-balancer-pool": "10.0.0.10-10.0.0.20" })));
        // It has the address as long as it is there.
        api.put(two, node("n2", "True"));
        let (kernel, journal) = (Arc::new(FakeKernel::default()), Arc::new(JournalBook::default()));
        let settings = AnnouncementSettings {
            node_name: "n1".into(),
            client: api.client(),
            hands: kernel.clone(),
            clock: clock(),
            journal: journal.clone(),
        };
        let last = || kernel.applied.lock().last().map(|it| it.1.clone());
        let waits = || journal.decisions(&NODES, &Key::cluster("n1")).iter().flat_map(|it| it.waits.clone()).count();
        let work = async {
            until(|| last() == Some(Vec::new())).await;
            *kernel.fails.lock() = 1;
            api.put(two, node("n2", "Unknown"));
            until(|| last() == Some(vec!["10.0.0.10".to_owned()])).await;
            until(|| waits() == 1).await;
            until(|| waits() == 0).await;
            // Made known a few times, then renewed for good.
            kernel.applied.lock().clear();
            let begun = Instant::now();
            until(|| begun.elapsed() > Duration::from_secs(60)).await;
            let n = kernel.applied.lock().len();
            assert!((8..=12).contains(&n), "{n}");
            // It was silent for a moment that nobody told of: it makes itself known once more.
            kernel.applied.lock().clear();
            let mut back = node("n1", "True");
            back["status"]["conditions"][0]["lastTransitionTime"] = json!("2026-11-26T10:00:00Z");
            api.put("/api/v1/nodes/n1", back);
            until(|| kernel.applied.lock().len() > 5).await;
            assert!(kernel.applied.lock()[0].1.is_empty() && kernel.applied.lock()[1].1.len() == 1);
            api.put(two, node("n2", "True"));
            until(|| last() == Some(Vec::new())).await;
            // By where its endpoints are it is this node's: that is asked for only now.
            let slice = json!({
                "metadata": { "name": "web-1", "namespace": "default", "labels": { "kubernetes.io/service-name": "web" } },
                "addressType": "IPv4",
                "endpoints": [{ "addresses": ["10.244.0.2"], "nodeName": "n1" }],
            });
            api.put("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/web-1", slice);
            api.put(web, service("10.0.0.10", "Local"));
            until(|| last() == Some(vec!["10.0.0.10".to_owned()])).await;
            // Whoever may write its status makes it another: no node answers for what is not in the pool.
            api.put(web, service("192.0.2.1", "Local"));
            until(|| last() == Some(Vec::new())).await;
            api.put(RECORD, record(&json!({ "load-balancer-pool": "192.0.2.0/24" })));
            until(|| last() == Some(vec!["192.0.2.1".to_owned()])).await;
            // What cannot be read, or is gone for a moment, is what it was.
            kernel.applied.lock().clear();
            api.put(RECORD, record(&json!({ "load-balancer-pool": "all of them" })));
            api.remove(RECORD);
            until(|| kernel.applied.lock().len() > 3).await;
            assert!(kernel.applied.lock().iter().all(|it| it.1 == ["192.0.2.1"]));
            api.put(RECORD, record(&json!({ "load-balancer-pool": "" })));
            until(|| last() == Some(Vec::new())).await;
            // An older server says nothing of a pool.
            api.put(RECORD, record(&json!({ "cluster-domain": "cluster.local" })));
            until(|| last() == Some(vec!["192.0.2.1".to_owned()])).await;
        };
        run_announcements(settings, work).await;
    }
}
