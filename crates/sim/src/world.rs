//! The control planes and their nodes as tasks of one thread, and the levers to crash and restart each of them.

use std::{
    collections::BTreeMap,
    ops::Deref,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use corten_access::Identity;
use corten_apiserver::Server;
use corten_client::{BoxFuture, Client};
use corten_controllers::{CONTROLLERS, Settings};
use corten_meta::Time;
use corten_runner::{JournalBook, SharedInformers, run_controller, run_scheduler_beside};
use corten_scheduler::Scheduler;
use corten_store::{Store, memory::Memory};
use parking_lot::Mutex;
use tokio::{
    task::{JoinHandle, JoinSet},
    time::Instant,
};

use crate::{
    control_plane::{self, ControlPlane},
    ground::{EPOCH_SECONDS, Ground, server_config},
    interruptions::Interruptions,
    line::{Line, Switch},
    node::Node,
    one_revision::{ObservedController, Views},
    oracle::Oracle,
    seeded_rng::SeededRng,
    wire::{self, Partition, Wire},
};

/// How long servers may take until they are ready, once nothing is cut.
const SERVE_DEADLINE: Duration = Duration::from_secs(120);
pub(crate) const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];

pub(crate) struct World {
    ground: Ground,
    pub(crate) dice: SeededRng,
    /// Where there are several: each with a server, controllers and a scheduler of its own.
    pub(crate) planes: Vec<ControlPlane>,
    /// Of the one server, where there is one.
    server: Switch,
    journal: Arc<JournalBook>,
    /// Between a client, by its name, and each of several servers.
    partitions: Mutex<BTreeMap<String, Vec<Partition>>>,
    /// What ends troubles after a while.
    pub(crate) healing: JoinSet<()>,
    pub(crate) interruptions: Interruptions,
    /// Clients that look for a server that is ready.
    looking: Mutex<JoinSet<()>>,
    /// The nodes' agents, and where there is one server the scheduler and the controllers, by name.
    components: Vec<(String, JoinHandle<()>)>,
    n_begun: u64,
}

impl Deref for World {
    type Target = Ground;

    fn deref(&self) -> &Ground {
        &self.ground
    }
}

impl World {
    /// A cluster of so many control planes.
    pub(crate) async fn begin(seed: u64, n_planes: usize) -> Result<Self, String> {
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
        let ground = Ground {
            seed,
            weather: Arc::default(),
            truth,
            start,
            store,
            clock: Arc::new(move || Time::from_unix_seconds(EPOCH_SECONDS).after(start.elapsed())),
            uids: SeededRng::of(seed, "uids"),
            views: Views::default(),
        };
        let mut world = Self {
            ground,
            dice: SeededRng::of(seed, "world"),
            planes: Vec::new(),
            server: Arc::default(),
            journal: Arc::default(),
            partitions: Mutex::default(),
            healing: JoinSet::new(),
            interruptions: Interruptions::default(),
            looking: Mutex::default(),
            components: vec![("witness".into(), witness)],
            n_begun: 0,
        };
        if n_planes > 1 {
            let forgets = world.forgets();
            world.planes.extend((0..n_planes).map(|at| ControlPlane::new(at, forgets)));
            world.planes.iter_mut().for_each(|it| it.begin(&world.ground));
            world.all_serve().await?;
        } else {
            world.start_server().await?;
        }
        for name in world.component_names() {
            world.begin_component(&name);
        }
        Ok(world)
    }

    /// Everything that can crash but control planes.
    pub(crate) fn component_names(&self) -> Vec<String> {
        let nodes = NODES.map(str::to_owned);
        if self.has_several_planes() {
            return nodes.to_vec();
        }
        let controllers = CONTROLLERS.iter().map(|make| make(&Settings::default()).name().to_owned());
        controllers.chain(["scheduler".to_owned()]).chain(nodes).collect()
    }

    /// In every second history of several control planes the store forgets what streams that broke were to go on with: a server
    /// then reads all again.
    fn forgets(&self) -> bool {
        self.seed / 2 % 2 == 1
    }

    pub(crate) fn has_several_planes(&self) -> bool {
        !self.planes.is_empty()
    }

    pub(crate) async fn start_server(&self) -> Result<(), String> {
        let uids = self.uids.clone();
        let config = server_config(self.store.clone(), &self.clock, uids, &self.journal);
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

    /// Nothing is cut, nobody stands still, and the store is sound again.
    pub(crate) async fn heal(&mut self) -> Result<(), String> {
        self.store.faults().refuse(0);
        self.store.faults().lose_answers(0);
        self.healing.shutdown().await;
        self.partitions.lock().values().flatten().for_each(|it| it.set(false));
        self.planes.iter().for_each(ControlPlane::mend);
        self.all_serve().await
    }

    /// Waits for all servers.
    async fn all_serve(&self) -> Result<(), String> {
        let deadline = self.elapsed() + SERVE_DEADLINE;
        for at in 0..self.planes.len() {
            while let Err(error) = self.observer_at(at).get_path("/readyz").await {
                if self.elapsed() > deadline {
                    return Err(format!("{} does not serve: {error}", self.planes[at].name()));
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
        Ok(())
    }

    /// Stops the API server; the store, and nothing else, lives on.
    pub(crate) async fn stop_server(&self) {
        let server = self.server.lock().take();
        if let Some(server) = server {
            server.stop().await;
        }
    }

    pub(crate) fn admin(&self) -> Client {
        let (client, looking) = self.client("admin", administrator("kubernetes-admin"));
        self.looking.lock().spawn(looking);
        client
    }

    /// A client to which nothing ever happens.
    pub(crate) fn observer(&self) -> Client {
        self.observer_at(0)
    }

    /// Of several servers, the client of this one.
    pub(crate) fn observer_at(&self, at: usize) -> Client {
        let line = match self.planes.get(at) {
            Some(plane) => self.line_to(plane, "observer", administrator("observer"), true),
            None => self.line("observer", administrator("observer"), true),
        };
        line.client().with_deadline(Ground::DEADLINE)
    }

    pub(crate) fn n_servers(&self) -> usize {
        self.planes.len().max(1)
    }

    /// A client of the server, or of whichever of several it comes to; and what is to be polled for that.
    fn client(&self, name: &str, who: Identity) -> (Client, BoxFuture<'static, ()>) {
        if !self.has_several_planes() {
            let client = self.line(name, who, false).client().with_deadline(Ground::DEADLINE);
            return (client, Box::pin(std::future::pending()));
        }
        let mut all = self.partitions.lock();
        let partitions = all.entry(name.to_owned()).or_default();
        partitions.resize_with(self.planes.len(), Partition::default);
        let line = |plane: &ControlPlane| self.line_to(plane, name, who.clone(), false);
        let wires = self.planes.iter().zip(partitions).map(|(plane, it)| Wire::new(line(plane), it.clone())).collect();
        let first = corten_meta::stable_hash(name.as_bytes()) % self.planes.len() as u64;
        let first = usize::try_from(first).expect("less than the number of servers");
        wire::client_of(wires, first, self.weather.clone())
    }

    /// Between a client, by its name, and each of the servers.
    pub(crate) fn partitions_of(&self, name: &str) -> Vec<Partition> {
        self.partitions.lock().get(name).cloned().unwrap_or_default()
    }

    fn line(&self, name: &str, who: Identity, is_calm: bool) -> Line {
        let dice = SeededRng::of(self.seed, &format!("{name}#{}", self.n_begun));
        let (server, weather) = (self.server.clone(), self.weather.clone());
        Line { server, who, weather, dice, is_calm, process: None, term: None }
    }

    fn line_to(&self, plane: &ControlPlane, name: &str, who: Identity, is_calm: bool) -> Line {
        let process = Some((plane.levers.freezer.clone(), self.store.clone()));
        let line = self.line(&format!("{name} to {}", plane.name()), who, is_calm);
        Line { server: plane.server.clone(), process, ..line }
    }

    fn begin_component(&mut self, name: &str) {
        self.n_begun += 1;
        let (clock, journal) = (self.clock.clone(), self.journal.clone());
        let never = std::future::pending();
        let own = |name: &str, who| self.line(name, who, false).client().with_deadline(Ground::DEADLINE);
        let task = if let Some(make) = CONTROLLERS.iter().find(|make| make(&Settings::default()).name() == name) {
            let client = own(name, control_plane::controller(&make(&Settings::default()).account()));
            // Informers of its own: each loop is as far behind as its own line makes it.
            let sees_as = control_plane::controller_manager();
            let informers = SharedInformers::new(own(&format!("the informers of {name}"), sees_as));
            let controller = Arc::new(ObservedController::new(make(&Settings::default()), self.views.clone()));
            tokio::spawn(async move {
                let seeing = informers.clone().run(std::future::pending());
                tokio::join!(seeing, run_controller(controller, client, &informers, clock, journal, never));
            })
        } else if name == "scheduler" {
            let dice = SeededRng::of(self.seed, &format!("the extender {}", self.n_begun));
            let reach = self.extender(dice, own("the extender", administrator("the extender"))).reached();
            let (config, client) = (self.scheduler_config(), own(name, control_plane::scheduler()));
            tokio::spawn(run_scheduler_beside(reach, Scheduler::new(config), client, (clock, journal), never))
        } else {
            let who = Identity::new(format!("system:node:{name}"), &["system:nodes", "system:authenticated"]);
            let dice = SeededRng::of(self.seed, &format!("node {name} {}", self.n_begun));
            let (client, looking) = self.client(name, who);
            let node = Node { name: name.to_owned(), client, clock, dice, weather: self.weather.clone() };
            tokio::spawn(async move {
                tokio::join!(node.run(), looking);
            })
        };
        self.components.push((name.to_owned(), task));
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

    /// Begins the process of a control plane that was ended.
    pub(crate) fn begin_plane(&mut self, at: usize) {
        self.planes[at].begin(&self.ground);
    }

    pub(crate) fn set_weather(&self, is_bad: bool) {
        self.weather.is_bad.store(is_bad, Ordering::Relaxed);
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    /// Of everybody who runs loops.
    pub(crate) fn journals(&self) -> Vec<&JournalBook> {
        if self.has_several_planes() {
            return self.planes.iter().map(|it| &*it.journal).collect();
        }
        vec![&self.journal]
    }

    /// What has gone wrong so far, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        let truth = self.truth.lock();
        let violations = [truth.violation.clone(), self.weather.violation.lock().clone()];
        if let Some(violation) = violations.into_iter().flatten().next() {
            return Err(violation);
        }
        self.views.judge(&truth.states)?;
        drop(truth);
        let ended = self.components.iter().find(|it| it.1.is_finished()).map(|it| it.0.clone());
        let broken = self.planes.iter().find(|it| it.has_broken()).map(ControlPlane::name);
        match ended.or(broken) {
            Some(name) => Err(format!("{name} ended by itself")),
            None => Ok(()),
        }
    }

    pub(crate) async fn end(mut self) {
        self.looking.lock().abort_all();
        for (_, task) in self.components.drain(..) {
            task.abort();
            let _cancelled = task.await;
        }
        for plane in &mut self.planes {
            plane.kill().await;
        }
        self.stop_server().await;
    }
}

fn administrator(name: &str) -> Identity {
    Identity::new(name, &["system:masters", "system:authenticated"])
}
