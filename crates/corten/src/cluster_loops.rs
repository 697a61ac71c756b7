//! Controllers, signing and scheduler: in the one process there is, or in that of several which leads.

use std::sync::Arc;

use corten_apiserver::Fence;
use corten_meta::Key;
use corten_pki::Authority;
use corten_runner::{
    Candidate, ControllerLoop, JournalBook, LeaseTimes, Loops, SharedInformers, VolumeMoveSettings, whole,
};
use corten_volumes::LOCAL_DRIVER;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::{
    cluster_access::Stopping,
    in_process::{self, OwnServer},
    leadership::lead,
    process::{self, Clock},
    remote_volumes::{self, RemoteVolumeClients},
    signer::AuthoritySigner,
    switches::Switches,
    volume_moves::NodeMoves,
};

/// Upstream's `--leader-elect-resource-namespace`, and the names of `--leader-elect-resource-name`.
const NAMESPACE: &str = "kube-system";
const CONTROLLERS: &str = "kube-controller-manager";
const SCHEDULER: &str = "kube-scheduler";

/// What loops are made of. Each has a client and an identity of its own.
#[derive(Clone)]
pub(crate) struct ClusterLoops {
    pub(crate) server: OwnServer,
    pub(crate) authority: Arc<Authority>,
    pub(crate) journal: Arc<JournalBook>,
    pub(crate) clock: Clock,
    pub(crate) loops: Arc<Loops>,
    pub(crate) switches: Switches,
    pub(crate) scheduler: corten_scheduler::Config,
    /// Those that controllers read from now.
    pub(crate) informers: Arc<Mutex<SharedInformers>>,
    pub(crate) settings: corten_controllers::Settings,
}

impl ClusterLoops {
    /// Runs all of them until `stopping`.
    pub(crate) async fn run(self, stopping: Stopping) {
        let mut tasks = self.controllers(&stopping, None);
        self.schedule(&mut tasks, stopping, None);
        while tasks.join_next().await.is_some() {}
    }

    /// Runs controllers whenever this process leads, and the scheduler likewise.
    pub(crate) async fn run_elected(self, times: LeaseTimes, stopping: Stopping) {
        let identity = process::candidate_name();
        let candidate = |lease, component: &str, who| Candidate {
            client: in_process::client(&self.server, who),
            clock: self.clock.clone(),
            lease: Key::new(NAMESPACE, lease),
            identity: identity.clone(),
            component: component.into(),
            times,
        };
        let manager = candidate(CONTROLLERS, CONTROLLERS, in_process::controller_manager());
        let begin = |told: &Stopping, revision| {
            // What has been written by who led before is in a list that is asked for now.
            *self.informers.lock() = informers(&self.server);
            self.controllers(told, Some(Fence::new(CONTROLLERS, revision)))
        };
        let controllers = lead(manager, &stopping, begin, || self.forget_waits_of_controllers());
        let scheduler = async {
            if self.switches.scheduler {
                let begin = |told: &Stopping, revision| {
                    let mut tasks = JoinSet::new();
                    self.schedule(&mut tasks, told.clone(), Some(Fence::new(SCHEDULER, revision)));
                    tasks
                };
                let is_over = || self.journal.begin("scheduler");
                lead(
                    candidate(SCHEDULER, self.scheduler.component(), in_process::scheduler()),
                    &stopping,
                    begin,
                    is_over,
                )
                .await;
            }
        };
        tokio::join!(controllers, scheduler);
    }

    /// What loops waited for in a term that is over is not what they wait for: another process knows that.
    fn forget_waits_of_controllers(&self) {
        let names = corten_controllers::CONTROLLERS.iter().map(|make| make(&self.settings).name());
        names.for_each(|it| self.journal.begin(it));
    }

    fn controllers(&self, told: &Stopping, fence: Option<Fence>) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let off = self.switches.off();
        if !off.is_empty() {
            tracing::info!(off = off.join(", "), "left to other programs");
        }
        let informers = self.informers.lock().clone();
        let (seen, end) = (informers.clone(), told.clone());
        tasks.spawn(self.loops.spawn("informers", move || whole(seen.clone().run(end.now()))));
        for make in corten_controllers::CONTROLLERS {
            let controller = make(&self.settings);
            if !self.switches.runs(controller.name()) {
                continue;
            }
            let client = in_process::fenced(&self.server, in_process::controller(&controller.account()), fence.clone());
            let (clock, journal) = (self.clock.clone(), self.journal.clone());
            let (informers, told, settings) = (informers.clone(), told.clone(), self.settings.clone());
            tasks.spawn(self.loops.spawn(controller.name(), move || {
                let (client, clock, journal) = (client.clone(), clock.clone(), journal.clone());
                Arc::new(ControllerLoop::new(make(&settings), client, &informers, clock, journal, told.now()))
            }));
        }
        if self.switches.runs_signing() {
            self.sign(&mut tasks, told.clone(), fence.clone());
        }
        self.look_after_volumes(&mut tasks, told.clone(), fence);
        tasks
    }

    /// Has nodes on machines that have joined make volumes, and carries volumes from node to node.
    fn look_after_volumes(&self, tasks: &mut JoinSet<()>, told: Stopping, fence: Option<Fence>) {
        let (server, clock, stopping, term) = (self.server.clone(), self.clock.clone(), told.clone(), fence.clone());
        tasks.spawn(self.loops.spawn("volume-moves", move || {
            let settings = VolumeMoveSettings {
                driver: LOCAL_DRIVER,
                client: in_process::fenced(&server, in_process::volume_provisioner(), term.clone()),
                viewer: in_process::client(&server, in_process::controller_manager()),
                hands: Arc::new(NodeMoves(in_process::client(&server, in_process::node_volumes()))),
                clock: clock.clone(),
            };
            whole(corten_runner::run_volume_moves(settings, stopping.now()))
        }));
        let (server, clock) = (self.server.clone(), self.clock.clone());
        tasks.spawn(self.loops.spawn("joined-nodes-volumes", move || {
            let clients = RemoteVolumeClients {
                provisioner: in_process::fenced(&server, in_process::volume_provisioner(), fence.clone()),
                nodes: in_process::client(&server, in_process::node_volumes()),
                viewer: in_process::client(&server, in_process::controller_manager()),
            };
            whole(remote_volumes::run(clients, clock.clone(), told.now()))
        }));
    }

    fn sign(&self, tasks: &mut JoinSet<()>, told: Stopping, fence: Option<Fence>) {
        let client = in_process::fenced(&self.server, in_process::controller("certificate-controller"), fence);
        let signer = AuthoritySigner { authority: self.authority.clone(), clock: self.clock.clone() };
        let (signer, clock) = (Arc::new(signer), self.clock.clone());
        tasks.spawn(self.loops.spawn("certificate-signing", move || {
            whole(corten_runner::run_signing(client.clone(), signer.clone(), clock.clone(), told.now()))
        }));
    }

    fn schedule(&self, tasks: &mut JoinSet<()>, told: Stopping, fence: Option<Fence>) {
        if !self.switches.scheduler {
            return;
        }
        let client = in_process::fenced(&self.server, in_process::scheduler(), fence);
        let (clock, journal, config) = (self.clock.clone(), self.journal.clone(), self.scheduler.clone());
        tasks.spawn(self.loops.spawn("scheduler", move || {
            let scheduler = corten_scheduler::Scheduler::new(config.clone());
            let (client, clock, journal) = (client.clone(), clock.clone(), journal.clone());
            whole(corten_runner::run_scheduler(scheduler, client, clock, journal, told.now()))
        }));
    }
}
/// Loops read together, and each writes under an identity of its own, as with kube-controller-manager's
/// `--use-service-account-credentials`.
pub(crate) fn informers(server: &OwnServer) -> SharedInformers {
    SharedInformers::new(in_process::client(server, in_process::controller_manager()))
}
