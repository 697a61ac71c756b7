//! One of several control planes: an API server behind a link to the store they share, and controllers and scheduler that run while it
//! leads. The election, the terms and the fence are the program's own.

use std::{sync::Arc, time::Duration};

use corten_access::Identity;
use corten_api::lease_times::LeaseTimes;
use corten_apiserver::Server;
use corten_client::Client;
use corten_controllers::{CONTROLLERS as MINDS, Settings};
use corten_meta::Key;
use corten_runner::{Candidate, JournalBook, SharedInformers, Stopping, lead, run_controller, run_scheduler_beside};
use corten_scheduler::Scheduler;
use corten_store::Store;
use tokio::{
    sync::watch,
    task::{JoinHandle, JoinSet},
    time::{sleep, timeout},
};

use crate::{
    author::Author,
    ground::{Ground, server_config},
    line::{Line, Switch},
    link::{Levers, LinkedStore, Trouble},
    one_revision::ObservedController,
    seeded_rng::SeededRng,
    signal::Fan,
    terms::{CONTROLLERS, SCHEDULER},
};

/// Whoever starts a process again that could not start waits so long.
const START_PAUSE: Duration = Duration::from_secs(1);
/// A process that does not end in order is killed.
const LEAVE_DEADLINE: Duration = Duration::from_secs(30);

pub(crate) struct ControlPlane {
    pub(crate) at: usize,
    pub(crate) server: Switch,
    pub(crate) levers: Levers,
    pub(crate) journal: Arc<JournalBook>,
    stop: watch::Sender<bool>,
    process: Option<JoinHandle<()>>,
    n_begun: u64,
}

impl ControlPlane {
    /// With a store that forgets, or does not, what a stream was to go on with.
    pub(crate) fn new(at: usize, forgets: bool) -> Self {
        let (server, levers, journal) = (Switch::default(), Levers::new(forgets), Arc::default());
        Self { at, server, levers, journal, stop: watch::Sender::new(false), process: None, n_begun: 0 }
    }

    pub(crate) fn name(&self) -> String {
        format!("control plane {}", self.at)
    }

    /// Begins its process, which knows nothing but what is stored.
    pub(crate) fn begin(&mut self, ground: &Ground) {
        self.n_begun += 1;
        self.journal = Arc::default();
        self.stop = watch::Sender::new(false);
        let dice = SeededRng::of(ground.seed, &format!("process {} of {}", self.n_begun, self.name()));
        let process = Process {
            holder: format!("control-plane-{}_{}", self.at, dice.uuid()).into(),
            ground: ground.clone(),
            server: self.server.clone(),
            levers: self.levers.clone(),
            journal: self.journal.clone(),
            dice,
        };
        self.process = Some(tokio::spawn(process.run(Stopping::new(self.stop.subscribe()))));
    }

    /// Ends the process amid whatever it does.
    pub(crate) async fn kill(&mut self) {
        if let Some(process) = self.process.take() {
            process.abort();
            let _cancelled = process.await;
        }
        self.levers.freezer.thaw();
        let server = self.server.lock().take();
        if let Some(server) = server {
            // What it was about may be done yet, as what had been sent to the store.
            tokio::spawn(async move { server.stop().await });
        }
    }

    /// Ends the process in order: its loops end, and the leases are given back.
    pub(crate) async fn leave(&mut self) {
        self.stop.send_replace(true);
        if let Some(process) = &mut self.process
            && timeout(LEAVE_DEADLINE, process).await.is_ok()
        {
            self.process = None;
        }
        self.kill().await;
    }

    /// Did the process end though nobody ended it?
    pub(crate) fn has_broken(&self) -> bool {
        self.process.as_ref().is_some_and(JoinHandle::is_finished) && !*self.stop.borrow()
    }

    pub(crate) fn mend(&self) {
        self.levers.set(Trouble::None);
        self.levers.freezer.thaw();
    }
}

/// What a process is made of.
struct Process {
    ground: Ground,
    /// Unlike that of every other process.
    holder: Arc<str>,
    server: Switch,
    levers: Levers,
    journal: Arc<JournalBook>,
    dice: SeededRng,
}

impl Process {
    async fn run(self, stopping: Stopping) {
        let (ground, levers) = (self.ground.clone(), self.levers.clone());
        let (dice, authors) = (SeededRng::new(self.dice.throw()), ground.truth.lock().terms.authors.clone());
        let store = Arc::new(LinkedStore::new(ground.store.clone(), levers.clone(), dice, authors));
        let server = loop {
            let config = server_config(store.clone(), &ground.clock, ground.uids.clone(), &self.journal);
            match Server::start(config).await {
                Ok(server) => break server,
                Err(error) => tracing::debug!(%error, "an API server does not start yet"),
            }
            sleep(START_PAUSE).await;
        };
        *self.server.lock() = Some(server.clone());
        let switch = self.server.clone();
        levers.freezer.task(async move { self.lead(&stopping).await }).await;
        *switch.lock() = None;
        server.stop().await;
        store.close().await;
    }

    /// As the program's `ClusterLoops::run_elected`.
    async fn lead(&self, stopping: &Stopping) {
        let manager = self.candidate(CONTROLLERS, CONTROLLERS, controller_manager());
        let controllers = lead(
            manager,
            stopping,
            |told, revision| self.control(told, revision),
            || {
                MINDS.iter().for_each(|make| self.journal.begin(make(&Settings::default()).name()));
            },
        );
        let scheduler = self.candidate(SCHEDULER, "default-scheduler", scheduler());
        let begin = |told: &Stopping, revision| self.schedule(told, revision);
        let scheduler = lead(scheduler, stopping, begin, || self.journal.begin("scheduler"));
        tokio::join!(controllers, scheduler);
    }

    fn candidate(&self, lease: &'static str, component: &str, who: Identity) -> Candidate {
        Candidate {
            client: self.line(&format!("candidate for {lease}"), who, None),
            clock: self.ground.clock.clone(),
            lease: Key::new("kube-system", lease),
            identity: self.holder.to_string(),
            component: component.to_owned(),
            times: LeaseTimes::default(),
        }
    }

    /// The controllers of one term.
    fn control(&self, told: &Stopping, revision: watch::Receiver<u64>) -> JoinSet<()> {
        let (mut tasks, term) = (JoinSet::new(), self.term(CONTROLLERS, revision));
        let freezer = &self.levers.freezer;
        let informers = SharedInformers::new(self.line("informers", controller_manager(), None));
        let stop = stopping_fan(told);
        tasks.spawn(freezer.task(informers.clone().run(Stopping::new(stop.listen()).now())));
        for make in MINDS {
            let mind = make(&Settings::default());
            let client = self.line(mind.name(), controller(&mind.account()), Some(term.clone()));
            let mind = Arc::new(ObservedController::new(mind, self.ground.views.clone()));
            let (informers, clock, journal) = (informers.clone(), self.ground.clock.clone(), self.journal.clone());
            let told = Stopping::new(stop.listen()).now();
            tasks.spawn(
                freezer.task(async move { run_controller(mind, client, &informers, clock, journal, told).await }),
            );
        }
        tasks
    }

    /// The scheduler of one term.
    fn schedule(&self, told: &Stopping, revision: watch::Receiver<u64>) -> JoinSet<()> {
        let (mut tasks, term) = (JoinSet::new(), self.term(SCHEDULER, revision));
        let (config, dice) =
            (self.ground.scheduler_config(), SeededRng::of(self.dice.throw(), "the extender's answers"));
        let who = Identity::new("the extender", &["system:masters", "system:authenticated"]);
        let reach = self.ground.extender(dice, self.line("the extender", who, None)).reached();
        let client = self.line("scheduler", scheduler(), Some(term));
        let journalled = (self.ground.clock.clone(), self.journal.clone());
        let running = run_scheduler_beside(reach, Scheduler::new(config), client, journalled, told.now());
        tasks.spawn(self.levers.freezer.task(running));
        tasks
    }

    /// What is written in a term, and that this process thinks it is its own.
    fn term(&self, lease: &'static str, mut revision: watch::Receiver<u64>) -> (Author, Fan<u64>) {
        let author = Author { lease, holder: self.holder.clone(), begun: *revision.borrow() };
        let beliefs = self.ground.truth.lock().terms.beliefs.clone();
        beliefs.add(author.clone(), revision.clone(), self.levers.freezer.clone());
        let fan = Fan::new(author.begun);
        let passed_on = fan.clone();
        tokio::spawn(async move {
            while revision.changed().await.is_ok() {
                passed_on.set(*revision.borrow_and_update());
            }
        });
        (author, fan)
    }

    fn line(&self, name: &str, who: Identity, term: Option<(Author, Fan<u64>)>) -> Client {
        let dice = SeededRng::of(self.dice.throw(), name);
        let (server, weather) = (self.server.clone(), self.ground.weather.clone());
        let process = Some((self.levers.freezer.clone(), self.ground.store.clone()));
        Line { server, who, weather, dice, is_calm: false, process, term }.client().with_deadline(Ground::DEADLINE)
    }
}

/// Tells each loop by itself.
fn stopping_fan(told: &Stopping) -> Fan<bool> {
    let (fan, told) = (Fan::new(false), told.now());
    let passed_on = fan.clone();
    tokio::spawn(async move {
        told.await;
        passed_on.set(true);
    });
    fan
}

pub(crate) fn controller(account: &str) -> Identity {
    let groups = ["system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"];
    Identity::new(format!("system:serviceaccount:kube-system:{account}"), &groups)
}

pub(crate) fn controller_manager() -> Identity {
    Identity::new("system:kube-controller-manager", &["system:authenticated"])
}

pub(crate) fn scheduler() -> Identity {
    Identity::new("system:kube-scheduler", &["system:authenticated"])
}
