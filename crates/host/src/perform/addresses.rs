//! Pods that begin anew on a machine that has joined have the addresses that they had before, where nobody else has them.

use std::{pin::pin, time::Duration};

use corten_kubelet::SandboxSpec;
use corten_network::cni;
use tokio::sync::Mutex;

use super::{Inner, NodeHands};
use crate::{Containerd, CriError, cri};

/// So long one sandbox may hold up others that want an address, too: a runtime that has just started, as its machine has, is slow.
const TURN: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(10);

/// Of the sandboxes that want an address one at a time is offered it.
pub(super) struct Offers {
    networks: Vec<String>,
    turn: Mutex<()>,
}

impl Offers {
    fn new(networks: &[String]) -> Self {
        Self { networks: networks.to_vec(), turn: Mutex::new(()) }
    }
}

impl NodeHands {
    /// From now on Pods that begin anew are offered the addresses that they had before. For a node that starts its Pods while nobody
    /// could tell others of new ones; elsewhere they need not wait for each other.
    pub fn offer_addresses(&self, containerd: &Containerd) {
        let options = containerd.options();
        // A plug-in of another's gives the addresses that it chooses.
        if !options.pod_link.is_plugin() {
            let _ = self.inner.offers.set(Offers::new(&options.pod_cidrs));
        }
    }
}

impl Inner {
    /// The id of the sandbox that is made, at the addresses it had before where those are offered.
    pub(super) async fn run_at(&self, spec: &SandboxSpec, config: cri::PodSandboxConfig) -> Result<String, CriError> {
        let Some(offers) = self.offers.get().filter(|_| !spec.addresses.is_empty()) else {
            return self.cri.run_pod_sandbox(config, &spec.runtime_handler).await;
        };
        let turn = offers.turn.lock().await;
        let offered = cni::offer(&self.layout, &offers.networks, &spec.addresses);
        let mut run = pin!(self.cri.run_pod_sandbox(config, &spec.runtime_handler));
        let taken = async {
            while !cni::are_taken(&self.layout, &offered) {
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
