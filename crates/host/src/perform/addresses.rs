//! Pods that begin anew have the addresses that they had before, where nobody else has them.

use std::{pin::pin, time::Duration};

use corten_kubelet::SandboxSpec;
use corten_network::cni;
use tokio::sync::Mutex;

use super::Inner;
use crate::{CriError, cri};

/// So long one sandbox may hold up others that want an address, too.
const TURN: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

/// Of the sandboxes that want an address one at a time is offered it.
pub(super) struct Offers {
    networks: Vec<String>,
    turn: Mutex<()>,
}

impl Offers {
    pub(super) fn new(networks: &[String]) -> Self {
        Self { networks: networks.to_vec(), turn: Mutex::new(()) }
    }
}

impl Inner {
    /// The id of the sandbox that is made, at the addresses it had before.
    pub(super) async fn run_at(&self, spec: &SandboxSpec, config: cri::PodSandboxConfig) -> Result<String, CriError> {
        if spec.addresses.is_empty() {
            return self.cri.run_pod_sandbox(config, &spec.runtime_handler).await;
        }
        let turn = self.offers.turn.lock().await;
        cni::offer(&self.layout, &self.offers.networks, &spec.addresses);
        let mut run = pin!(self.cri.run_pod_sandbox(config, &spec.runtime_handler));
        let taken = async {
            while !cni::is_taken(&self.layout, &spec.addresses) {
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::select! {
            biased;
            done = &mut run => return done,
            _ = tokio::time::timeout(TURN, taken) => {}
        }
        drop(turn);
        run.await
    }
}
