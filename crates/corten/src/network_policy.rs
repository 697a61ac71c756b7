//! The policies of this node's Pods: their mind, the kernel as its hands, and the sandboxes that wait for them.

use std::{collections::BTreeSet, sync::Arc};

use anyhow::Result;
use corten_client::BoxFuture;
use corten_host::Containerd;
use corten_machine::Layout;
use corten_netpolicy::{PodMatch, PodSandbox, rules::Change};
use corten_network::{PlugEvent, PodNetwork, PodPolicies, PolicyRules};
use corten_runner::{Loops, NetworkPolicySettings, PolicyHands, TableHands, whole};
use tokio::task::JoinSet;

use crate::{cluster_access::ClusterAccess, in_process};

struct KernelHands {
    rules: PolicyRules,
    sandboxes: PodPolicies,
    network: PodNetwork,
    runtime: Arc<Containerd>,
}

impl TableHands for KernelHands {
    fn is_there(&self) -> BoxFuture<'_, Result<bool, String>> {
        Box::pin(async { self.rules.is_there().await.map_err(|it| it.to_string()) })
    }

    fn lost(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.network.policies_lost())
    }
}

impl PolicyHands for KernelHands {
    fn apply(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async { self.rules.apply(changes).await.map_err(|it| it.to_string()) })
    }

    fn plugged(&self) -> BoxFuture<'_, Result<Vec<PodSandbox>, String>> {
        Box::pin(self.runtime.plugged())
    }

    fn sandboxes(&self) -> BoxFuture<'_, Result<BTreeSet<String>, String>> {
        Box::pin(self.runtime.sandboxes())
    }

    fn next_plugs(&self) -> BoxFuture<'_, Vec<Result<PodSandbox, String>>> {
        let told = |event| match event {
            PlugEvent::In(plugged) => Ok(plugged),
            PlugEvent::Out(sandbox) => Err(sandbox),
        };
        Box::pin(async move { self.sandboxes.next().await.into_iter().map(told).collect() })
    }

    fn laid(&self, sandboxes: &BTreeSet<String>) {
        self.sandboxes.laid(sandboxes);
    }

    fn refused(&self, why: Option<String>) {
        self.sandboxes.refused(why);
    }

    fn gap(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async {
            let is_filtered = self.network.is_bridge_filtered().await;
            (!is_filtered)
                .then(|| "pods reach each other whatever policies say: its kernel has no br_netfilter".to_owned())
        })
    }
}

/// Lays policies, from now until the node ends. The rules stay. Sandboxes that are made from now on wait for theirs.
pub(crate) fn start(
    tasks: &mut JoinSet<()>,
    loops: &Loops,
    cluster: &ClusterAccess,
    layout: &Layout,
    (node_name, runtime, network): (&str, Arc<Containerd>, PodNetwork),
) {
    let sandboxes = runtime.policies();
    sandboxes.enforce();
    let pod_match = if sandboxes.link().is_plugin() { PodMatch::Addresses } else { PodMatch::Bridge };
    let client = cluster.client(in_process::network_policy());
    let hands: Arc<dyn PolicyHands> =
        Arc::new(KernelHands { rules: PolicyRules::new(layout), sandboxes, network, runtime });
    let (clock, journal) = (cluster.clock.clone(), cluster.journal.clone());
    let (told, node_name) = (cluster.when_stopping(), node_name.to_owned());
    tasks.spawn(loops.spawn(corten_netpolicy::NAME, move || {
        let settings = NetworkPolicySettings {
            node_name: node_name.clone(),
            pod_match,
            client: client.clone(),
            hands: hands.clone(),
            clock: clock.clone(),
            journal: journal.clone(),
        };
        whole(corten_runner::run_network_policy(settings, told.now()))
    }));
}
