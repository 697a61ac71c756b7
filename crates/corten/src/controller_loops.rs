//! The controllers and the signing of certificates, over whatever way there is to the API server.

use std::sync::Arc;

use corten_apiserver::Fence;
use corten_runner::{ControllerLoop, JournalBook, Loops, SharedInformers, Signer, Stopping, whole};
use tokio::task::JoinSet;

use crate::{loop_access::LoopAccess, process::Clock, switches::Switches};

/// What loops are made of. Each has a client and an identity of its own.
#[derive(Clone)]
pub(crate) struct ControllerLoops {
    pub(crate) access: LoopAccess,
    /// None where nobody has the authority's key.
    pub(crate) signer: Option<Arc<dyn Signer>>,
    pub(crate) journal: Arc<JournalBook>,
    pub(crate) clock: Clock,
    pub(crate) loops: Arc<Loops>,
    pub(crate) switches: Switches,
    pub(crate) settings: corten_controllers::Settings,
}

impl ControllerLoops {
    /// Begins all of them that are on and that `runs` says of, by their names.
    pub(crate) fn begin(
        &self,
        informers: &SharedInformers,
        runs: impl Fn(&str) -> bool,
        told: &Stopping,
        fence: Option<&Fence>,
    ) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        let off = self.switches.off();
        if !off.is_empty() {
            tracing::info!(off = off.join(", "), "left to other programs");
        }
        let (seen, end) = (informers.clone(), told.clone());
        tasks.spawn(self.loops.spawn("informers", move || whole(seen.clone().run(end.now()))));
        for make in corten_controllers::CONTROLLERS {
            let controller = make(&self.settings);
            if !self.switches.runs(controller.name()) || !runs(controller.name()) {
                continue;
            }
            let client = self.access.writer(&controller.account(), fence.cloned());
            let (clock, journal) = (self.clock.clone(), self.journal.clone());
            let (informers, told, settings) = (informers.clone(), told.clone(), self.settings.clone());
            tasks.spawn(self.loops.spawn(controller.name(), move || {
                let (client, clock, journal) = (client.clone(), clock.clone(), journal.clone());
                Arc::new(ControllerLoop::new(make(&settings), client, &informers, clock, journal, told.now()))
            }));
        }
        if let Some(signer) = self.signer.clone().filter(|_| self.switches.runs_signing()) {
            self.sign(&mut tasks, signer, told.clone(), fence.cloned());
        }
        tasks
    }

    fn sign(&self, tasks: &mut JoinSet<()>, signer: Arc<dyn Signer>, told: Stopping, fence: Option<Fence>) {
        let client = self.access.writer("certificate-controller", fence);
        let clock = self.clock.clone();
        tasks.spawn(self.loops.spawn("certificate-signing", move || {
            whole(corten_runner::run_signing(client.clone(), signer.clone(), clock.clone(), told.now()))
        }));
    }
}
