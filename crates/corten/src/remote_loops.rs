//! Controllers over the API server of another process, of whatever version: which of them run, and by which kinds, is found out by asking,
//! and again from time to time, since the server may be replaced by another one.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result};
use corten_client::Client;
use corten_runner::{Stopping, TokenSecretSettings, whole};
use tokio::{sync::watch, task::JoinSet, time::sleep};

use crate::{
    controller_loops::ControllerLoops,
    served_kinds::{OF_SERVER, ServedKinds},
};

/// How often it is looked whether something else is served.
const LOOKS_AGAIN: Duration = Duration::from_secs(120);
/// How long loops have to end that are to begin again.
const END_DEADLINE: Duration = Duration::from_secs(30);
/// Until a server that does not answer is asked again.
const UNANSWERED_PAUSE: Duration = Duration::from_secs(2);
/// Loops that ask the volume drivers of nodes which have joined a server of Corten's: that server runs them, whatever else is off there.
const OF_NODES: [&str; 2] = ["joined-nodes-volumes", "volume-moves"];
/// The loop that removes the Secrets of tokens, by its name: where it is off, others make and remove them.
const TOKENS: &str = "serviceaccount-token";

pub(crate) struct RemoteLoops {
    /// With what is known of the cluster without asking.
    pub(crate) controllers: ControllerLoops,
    pub(crate) client: Client,
    /// By which certificates the API server is known, as the kubeconfig has them, where no file was named that says it.
    pub(crate) kubeconfig_ca: Option<String>,
}

impl RemoteLoops {
    /// Runs them until `told`.
    ///
    /// # Errors
    /// Loops that are to begin again do not end.
    pub(crate) async fn run(self, told: Stopping) -> Result<()> {
        let loops = OF_SERVER.into_iter().chain(OF_NODES).collect::<Vec<_>>().join(", ");
        tracing::info!(loops, "not run here: they are a part of the API server");
        tokio::select! {
            biased;
            () = told.now() => Ok(()),
            served = self.asked() => self.run_by(served, told.clone()).await,
        }
    }

    async fn run_by(&self, mut served: ServedKinds, told: Stopping) -> Result<()> {
        loop {
            say_what_is_left_out(&served, &self.controllers);
            let controllers = self.suited(&served);
            let (stop, stopping) = watch::channel(false);
            let runs = |name: &str| served.controllers.contains(name);
            let informers = controllers.access.informers(&served.kinds);
            let stopping = Stopping::new(stopping);
            let mut tasks = controllers.begin(&informers, runs, &stopping, None);
            // Corten's server puts tokens into Secrets when they are made.
            if !served.is_own && controllers.switches.runs(TOKENS) {
                self.give_tokens(&mut tasks, &controllers, served.wants_token_secrets, stopping);
            }
            let next = tokio::select! {
                biased;
                () = told.now() => None,
                other = self.changed(&served) => Some(other),
            };
            stop.send_replace(true);
            let all_ended = async { while tasks.join_next().await.is_some() {} };
            match next {
                None => {
                    all_ended.await;
                    return Ok(());
                }
                // One that stands still would keep all others from beginning again, and other processes from the lease.
                Some(other) => {
                    let ended = tokio::time::timeout(END_DEADLINE, all_ended).await;
                    ended.context("the controllers do not end to begin again")?;
                    served = other;
                }
            }
            tracing::info!("the server serves something else now: the controllers begin again");
        }
    }

    /// The same loops, with what this server is.
    fn suited(&self, served: &ServedKinds) -> ControllerLoops {
        let mut controllers = self.controllers.clone();
        controllers.settings.served = Some(served.kinds.clone());
        // Corten's server puts its authorities into kube-system, and replaces them there.
        if controllers.settings.root_ca.is_none() && !served.is_own {
            controllers.settings.root_ca.clone_from(&self.kubeconfig_ca);
        }
        controllers
    }

    fn give_tokens(
        &self,
        tasks: &mut JoinSet<()>,
        controllers: &ControllerLoops,
        is_one_wanted: bool,
        stopping: Stopping,
    ) {
        let (client, clock) = (self.client.clone(), controllers.clock.clone());
        let ca = controllers.settings.root_ca.clone().unwrap_or_default();
        tasks.spawn(controllers.loops.spawn("serviceaccount-token-secrets", move || {
            let (client, ca, clock) = (client.clone(), ca.clone(), clock.clone());
            let settings = TokenSecretSettings { client, ca, is_one_wanted, clock };
            whole(corten_runner::run_token_secrets(settings, stopping.now()))
        }));
    }

    async fn asked(&self) -> ServedKinds {
        loop {
            match ServedKinds::of(&self.client).await {
                Ok(served) => return served,
                Err(error) => tracing::warn!(%error, "what the server serves is not known yet"),
            }
            sleep(UNANSWERED_PAUSE).await;
        }
    }

    /// Ready once something else is served than before.
    async fn changed(&self, before: &ServedKinds) -> ServedKinds {
        loop {
            sleep(LOOKS_AGAIN).await;
            match ServedKinds::of(&self.client).await {
                Ok(served) if served != *before => return served,
                Ok(_) => {}
                Err(error) => tracing::debug!(%error, "what the server serves is not told now"),
            }
        }
    }
}

fn say_what_is_left_out(served: &ServedKinds, controllers: &ControllerLoops) {
    let left_out: BTreeSet<&str> = served.left_out.iter().copied().filter(|it| controllers.switches.runs(it)).collect();
    if !left_out.is_empty() {
        let loops = left_out.into_iter().collect::<Vec<_>>().join(", ");
        tracing::info!(loops, "not run: the server does not serve what they are about");
    }
}
