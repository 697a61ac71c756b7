//! The addresses of load balancers that this node answers for: a mind, and the kernel as its hands.

use std::{collections::BTreeSet, sync::Arc};

use corten_client::BoxFuture;
use corten_host::gather;
use corten_machine::Layout;
use corten_network::AnnouncedAddresses;
use corten_proxy::Announcement;
use corten_runner::{AnnouncementHands, AnnouncementSettings};
use tokio::{sync::Mutex, task::JoinSet};

use crate::{cluster_access::ClusterAccess, in_process};

struct KernelAddresses(Mutex<AnnouncedAddresses>);

impl AnnouncementHands for KernelAddresses {
    fn apply(&self, wanted: BTreeSet<Announcement>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let wanted = wanted.into_iter().map(|it| it.address).collect();
            // Nobody else has it: it is a turn and no wait.
            self.0.lock().await.apply(&wanted).await.map_err(|it| it.to_string())
        })
    }
}

/// Answers for them, from now until the node stops.
pub(crate) fn start(tasks: &mut JoinSet<()>, cluster: &ClusterAccess, layout: &Layout, node_name: &str) {
    let addresses = AnnouncedAddresses::new(gather(layout).addresses);
    let settings = AnnouncementSettings {
        node_name: node_name.to_owned(),
        client: cluster.client(in_process::kube_proxy()),
        hands: Arc::new(KernelAddresses(Mutex::new(addresses))),
        clock: cluster.clock.clone(),
        journal: cluster.journal.clone(),
    };
    tasks.spawn(corten_runner::run_announcements(settings, cluster.stopping()));
}
