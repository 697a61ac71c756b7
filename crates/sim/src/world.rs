//! The control plane and its nodes as tasks of one thread, and the levers to crash and restart each of them.

use std::{
    sync::{Arc, OnceLock, atomic::Ordering},
    time::Duration,
};

use corten_access::Identity;
use corten_api::{
    cluster_network::{ClusterNetwork, NodePorts},
    host_ports::HostPortRange,
};
use corten_apiserver::{Config, JournalSource, Limits, Server};
use corten_client::Client;
use corten_controllers::{CONTROLLERS, Settings};
use corten_meta::{Key, Resource, Time};
use corten_pki::Authority;
use corten_reconcile::Decision;
use corten_runner::{Clock, JournalBook, SharedInformers, run_controller, run_scheduler_beside};
use corten_scheduler::Scheduler;
use corten_store::{Store, memory::Memory};
use parking_lot::Mutex;
use tokio::{task::JoinHandle, time::Instant};

use crate::{
    extender::{self, FlakyExtender},
    line::{Line, Switch, Weather},
    node::Node,
    one_revision::{ObservedController, Views},
    oracle::Oracle,
    seeded_rng::SeededRng,
};

const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];
/// 2026-01-01, when every simulation begins.
pub(crate) const EPOCH_SECONDS: i64 = 1_767_225_600;

pub(crate) struct World {
    pub(crate) seed: u64,
    pub(crate) dice: SeededRng,
    pub(crate) weather: Arc<Weather>,
    pub(crate) truth: Arc<Mutex<Oracle>>,
    pub(crate) start: Instant,
    pub(crate) journal: Arc<JournalBook>,
    store: Arc<Memory>,
    server: Switch,
    clock: Clock,
    uids: SeededRng,
    views: Views,
    /// The scheduler, the nodes' agents and the controllers, by name.
    components: Vec<(String, JoinHandle<()>)>,
    n_begun: u64,
}

/// The loops' journals, as the API server wants them.
struct Journals(Arc<JournalBook>);

impl JournalSource for Journals {
    fn decisions(&self, resource: &Resource, key: &Key) -> Vec<Decision> {
        self.0.decisions(resource, key)
    }

    fn waiting(&self, wanted: &dyn Fn(&Resource, &Key, &[Decision]) -> bool) -> Vec<(Resource, Key)> {
        self.0.waiting(wanted)
    }
}

/// An API server beyond whose cluster there is nobody.
pub(crate) fn server_config(store: &Arc<Memory>, clock: &Clock, uids: SeededRng, journal: &Arc<JournalBook>) -> Config {
    static PKI: OnceLock<Arc<Authority>> = OnceLock::new();
    let pki = PKI.get_or_init(|| Arc::new(Authority::in_memory().expect("keys can be made")));
    Config {
        store: store.clone(),
        clock: clock.clone(),
        uids: Arc::new(move || uids.uuid()),
        journals: Arc::new(Journals(journal.clone())),
        pki: pki.clone(),
        audit: None,
        limits: Limits::default(),
        kubelet_dial: None,
        advertise: None,
        network: ClusterNetwork::default(),
        node_ports: NodePorts::default(),
        host_ports: HostPortRange::default(),
        name_servers: Default::default(),
        load_balancer_pool: Default::default(),
        is_network_settled: false,
        has_ipv6: false,
        encryption: None,
        webhook_dial: Some(Arc::new(|_| Box::pin(async { Err(std::io::ErrorKind::ConnectionRefused.into()) }))),
        machine: corten_admission::Machine::default(),
        guard: corten_apiserver::Guard::default(),
    }
}

impl World {
    pub(crate) async fn begin(seed: u64) -> Result<Self, String> {
        let start = Instant::now();
        let store = Arc::new(Memory::new());
        let truth = Arc::new(Mutex::new(Oracle::default()));
        let everything = corten_store::Range::prefix("/registry/");
        let mut changes = store
            .watch(everything, store.revision())
            .await
            .map_err(|error| format!("cannot watch the store: {error}"))?;
        let reader = truth.clone();
        let witness = tokio::spawn(async move {
            while let Ok(batch) = changes.next().await {
                reader.lock().take(batch, start.elapsed());
            }
        });
        let mut world = Self {
            seed,
            dice: SeededRng::of(seed, "world"),
            weather: Arc::default(),
            truth,
            start,
            journal: Arc::default(),
            store,
            server: Arc::default(),
            clock: Arc::new(move || Time::from_unix_seconds(EPOCH_SECONDS).after(start.elapsed())),
            uids: SeededRng::of(seed, "uids"),
            views: Views::default(),
            components: vec![("witness".into(), witness)],
            n_begun: 0,
        };
        world.start_server().await?;
        for name in Self::component_names() {
            world.begin_component(&name);
        }
        Ok(world)
    }

    /// Everything that can crash.
    pub(crate) fn component_names() -> Vec<String> {
        let controllers = CONTROLLERS.iter().map(|make| make(&Settings::default()).name().to_owned());
        controllers.chain(["scheduler".to_owned()]).chain(NODES.map(str::to_owned)).collect()
    }

    pub(crate) async fn start_server(&self) -> Result<(), String> {
        let uids = self.uids.clone();
        let config = server_config(&self.store, &self.clock, uids, &self.journal);
        let server = Server::start(config).await.map_err(|error| format!("the API server does not start: {error}"))?;
        *self.server.lock() = Some(server);
        Ok(())
    }

    /// The next commits fail: some are not done, some are done and nobody is told.
    pub(crate) fn trouble_the_store(&self) -> String {
        let (refused, lost) = (self.dice.below(4), self.dice.below(4));
        let in_bounds = |it: u64| usize::try_from(it).expect("a throw below four fits");
        self.store.faults().refuse(in_bounds(refused));
        self.store.faults().lose_answers(in_bounds(lost));
        format!("the store refuses {refused} commits and loses the answers of {lost}")
    }

    /// The store is sound again.
    pub(crate) fn heal_the_store(&self) {
        self.store.faults().refuse(0);
        self.store.faults().lose_answers(0);
    }

    /// Stops the API server; the store, and nothing else, lives on.
    pub(crate) async fn stop_server(&self) {
        let server = self.server.lock().take();
        if let Some(server) = server {
            server.stop().await;
        }
    }

    pub(crate) fn admin(&self) -> Client {
        let who = Identity::new("kubernetes-admin", &["system:masters", "system:authenticated"]);
        self.line("admin", who, false)
    }

    /// A client to which nothing ever happens.
    pub(crate) fn observer(&self) -> Client {
        let who = Identity::new("observer", &["system:masters", "system:authenticated"]);
        self.line("observer", who, true)
    }

    fn line(&self, name: &str, who: Identity, is_calm: bool) -> Client {
        let dice = SeededRng::of(self.seed, &format!("{name}#{}", self.n_begun));
        let line = Line { server: self.server.clone(), who, weather: self.weather.clone(), dice, is_calm };
        // Below the longest a line takes, so that deadlines are met with too.
        line.client().with_deadline(Duration::from_secs(8))
    }

    fn begin_component(&mut self, name: &str) {
        self.n_begun += 1;
        let (clock, journal) = (self.clock.clone(), self.journal.clone());
        let never = std::future::pending();
        let task = if let Some(make) = CONTROLLERS.iter().find(|make| make(&Settings::default()).name() == name) {
            let user = format!("system:serviceaccount:kube-system:{}", make(&Settings::default()).account());
            let groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"];
            let client = self.line(name, Identity::new(user, &groups), false);
            // A informers of its own: each loop is as far behind as its own line makes it.
            let sees_as = Identity::new("system:kube-controller-manager", &["system:authenticated"]);
            let informers = SharedInformers::new(self.line(&format!("the informers of {name}"), sees_as, false));
            let controller = Arc::new(ObservedController::new(make(&Settings::default()), self.views.clone()));
            tokio::spawn(async move {
                let seeing = informers.clone().run(std::future::pending());
                tokio::join!(seeing, run_controller(controller, client, &informers, clock, journal, never));
            })
        } else if name == "scheduler" {
            let (config, reach) = (self.scheduler_config(), self.extender().reached());
            let client = self.line(name, Identity::new("system:kube-scheduler", &["system:authenticated"]), false);
            tokio::spawn(run_scheduler_beside(reach, Scheduler::new(config), client, (clock, journal), never))
        } else {
            let who = Identity::new(format!("system:node:{name}"), &["system:nodes", "system:authenticated"]);
            let dice = SeededRng::of(self.seed, &format!("node {name} {}", self.n_begun));
            let client = self.line(name, who, false);
            let node = Node { name: name.to_owned(), client, clock, dice, weather: self.weather.clone() };
            tokio::spawn(node.run())
        };
        self.components.push((name.to_owned(), task));
    }

    /// In every third history an extender is asked about all Pods.
    pub(crate) fn has_extender(&self) -> bool {
        self.seed.is_multiple_of(3)
    }

    fn scheduler_config(&self) -> corten_scheduler::Config {
        let extenders = self
            .has_extender()
            .then(|| extender::configured(&SeededRng::of(self.seed, "the extender's configuration")));
        corten_scheduler::Config { seed: self.seed, extenders: extenders.into_iter().collect(), ..Default::default() }
    }

    fn extender(&self) -> FlakyExtender {
        let who = Identity::new("the extender", &["system:masters", "system:authenticated"]);
        let dice = SeededRng::of(self.seed, &format!("the extender {}", self.n_begun));
        FlakyExtender { weather: self.weather.clone(), dice, api: self.line("the extender", who, false) }
    }

    /// Ends a component at whatever it is doing, and begins it anew with nothing but what the API knows.
    pub(crate) async fn crash(&mut self, name: &str) {
        if let Some(at) = self.components.iter().position(|it| it.0 == name) {
            let (_, task) = self.components.remove(at);
            task.abort();
            let _cancelled = task.await;
        }
        self.begin_component(name);
    }

    pub(crate) fn set_weather(&self, is_bad: bool) {
        self.weather.is_bad.store(is_bad, Ordering::Relaxed);
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// What has gone wrong so far, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        let truth = self.truth.lock();
        if let Some(violation) = &truth.violation {
            return Err(violation.clone());
        }
        self.views.judge(&truth.states)?;
        drop(truth);
        match self.components.iter().find(|it| it.1.is_finished()) {
            Some((name, _)) => Err(format!("{name} ended by itself")),
            None => Ok(()),
        }
    }

    pub(crate) async fn end(mut self) {
        for (_, task) in self.components.drain(..) {
            task.abort();
            let _cancelled = task.await;
        }
        self.stop_server().await;
    }
}
