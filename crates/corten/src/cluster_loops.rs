//! Controllers, signing and scheduler beside their API server: in the one process there is, or in that of several which leads.

use std::sync::Arc;

use corten_api::lease_times::LeaseTimes;
use corten_apiserver::Fence;
use corten_meta::Key;
use corten_runner::{Candidate, SharedInformers, Stopping, VolumeMoveSettings, lead, whole};
use corten_volumes::LOCAL_DRIVER;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::{
    controller_loops::ControllerLoops,
    in_process::{self, OwnServer},
    loop_access::LoopAccess,
    process,
    remote_volumes::{self, RemoteVolumeClients},
    volume_moves::NodeMoves,
};

/// Upstream's `--leader-elect-resource-namespace`, and the names of `--leader-elect-resource-name`.
pub(crate) const NAMESPACE: &str = "kube-system";
pub(crate) const CONTROLLERS: &str = "kube-controller-manager";
const SCHEDULER: &str = "kube-scheduler";

/// What loops are made of. Each has a client and an identity of its own.
#[derive(Clone)]
pub(crate) struct ClusterLoops {
    pub(crate) server: OwnServer,
    pub(crate) controllers: ControllerLoops,
    pub(crate) scheduler: corten_scheduler::Config,
    /// Those that controllers read from now.
    pub(crate) informers: Arc<Mutex<SharedInformers>>,
}

impl ClusterLoops {
    /// Runs all of them until `stopping`.
    pub(crate) async fn run(self, stopping: Stopping) {
        let mut tasks = self.control(&stopping, None);
        self.schedule(&mut tasks, stopping, None);
        while tasks.join_next().await.is_some() {}
    }

    /// Runs controllers whenever this process leads, and the scheduler likewise.
    pub(crate) async fn run_elected(self, times: LeaseTimes, stopping: Stopping) {
        let identity = process::candidate_name();
        let candidate = |lease, component: &str, who| Candidate {
            client: in_process::client(&self.server, who),
            clock: self.controllers.clock.clone(),
            lease: Key::new(NAMESPACE, lease),
            identity: identity.clone(),
            component: component.into(),
            times,
        };
        let manager = candidate(CONTROLLERS, CONTROLLERS, in_process::controller_manager());
        let begin = |told: &Stopping, revision| {
            // What has been written by who led before is in a list that is asked for now.
            *self.informers.lock() = informers(&self.server);
            self.control(told, Some(Fence::new(CONTROLLERS, revision)))
        };
        let controllers = lead(manager, &stopping, begin, || self.forget_waits_of_controllers());
        let scheduler = async {
            if self.controllers.switches.scheduler {
                let begin = |told: &Stopping, revision| {
                    let mut tasks = JoinSet::new();
                    self.schedule(&mut tasks, told.clone(), Some(Fence::new(SCHEDULER, revision)));
                    tasks
                };
                let is_over = || self.controllers.journal.begin("scheduler");
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
        let names = corten_controllers::CONTROLLERS.iter().map(|make| make(&self.controllers.settings).name());
        names.for_each(|it| self.controllers.journal.begin(it));
    }

    fn control(&self, told: &Stopping, fence: Option<Fence>) -> JoinSet<()> {
        let informers = self.informers.lock().clone();
        let mut tasks = self.controllers.begin(&informers, |_| true, told, fence.as_ref());
        self.look_after_volumes(&mut tasks, told.clone(), fence);
        tasks
    }

    /// Has nodes on machines that have joined make volumes, and carries volumes from node to node.
    fn look_after_volumes(&self, tasks: &mut JoinSet<()>, told: Stopping, fence: Option<Fence>) {
        let (server, clock) = (self.server.clone(), self.controllers.clock.clone());
        let (stopping, term) = (told.clone(), fence.clone());
        tasks.spawn(self.controllers.loops.spawn("volume-moves", move || {
            let settings = VolumeMoveSettings {
                driver: LOCAL_DRIVER,
                client: in_process::fenced(&server, in_process::volume_provisioner(), term.clone()),
                viewer: in_process::client(&server, in_process::controller_manager()),
                hands: Arc::new(NodeMoves(in_process::client(&server, in_process::node_volumes()))),
                clock: clock.clone(),
            };
            whole(corten_runner::run_volume_moves(settings, stopping.now()))
        }));
        let (server, clock) = (self.server.clone(), self.controllers.clock.clone());
        tasks.spawn(self.controllers.loops.spawn("joined-nodes-volumes", move || {
            let clients = RemoteVolumeClients {
                provisioner: in_process::fenced(&server, in_process::volume_provisioner(), fence.clone()),
                nodes: in_process::client(&server, in_process::node_volumes()),
                viewer: in_process::client(&server, in_process::controller_manager()),
            };
            whole(remote_volumes::run(clients, clock.clone(), told.now()))
        }));
    }

    fn schedule(&self, tasks: &mut JoinSet<()>, told: Stopping, fence: Option<Fence>) {
        if !self.controllers.switches.scheduler {
            return;
        }
        let client = in_process::fenced(&self.server, in_process::scheduler(), fence);
        let ControllerLoops { clock, journal, loops, .. } = self.controllers.clone();
        let config = self.scheduler.clone();
        tasks.spawn(loops.spawn("scheduler", move || {
            let scheduler = corten_scheduler::Scheduler::new(config.clone());
            let (client, clock, journal) = (client.clone(), clock.clone(), journal.clone());
            whole(corten_runner::run_scheduler(scheduler, client, clock, journal, told.now()))
        }));
    }
}

/// What all loops beside this server see.
pub(crate) fn informers(server: &OwnServer) -> SharedInformers {
    LoopAccess::InProcess(server.clone()).informers(&[])
}
