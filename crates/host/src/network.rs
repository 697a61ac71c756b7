//! Keeps the Pods' network as the node made it, whatever others on the machine do to it.
//!
//! ```text
//! kernel tells: rules, links, addresses ──► look ──► what is the node's own is put back
//! every 5 s: sysctls                   ──┘      └──► others' filters that drop Pods' traffic: opened where their manager
//!                                                    has a place for that, else named
//! ```

mod filters;
mod news;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use corten_kubelet::Exposure;
use tokio::sync::Notify;

use crate::{Containerd, HostError, Layout, ServiceRules, bridge, cni, doors::Doors, nft::SourceGuard};
use filters::Filters;
use news::{KernelNews, News};

/// The kernel does not tell when a sysctl is written.
const PERIOD: Duration = Duration::from_secs(5);
/// What belongs together is looked at once.
const PAUSE: Duration = Duration::from_millis(100);

/// Clones are the same.
#[derive(Clone)]
pub struct PodNetwork {
    layout: Layout,
    networks: Vec<String>,
    doors: Doors,
    services: ServiceRules,
    services_lost: Arc<Notify>,
    found: Arc<Mutex<Vec<Exposure>>>,
}

impl PodNetwork {
    pub fn new(containerd: &Containerd) -> Self {
        let layout = containerd.layout().clone();
        Self {
            networks: containerd.networks().to_vec(),
            doors: containerd.doors(),
            services: ServiceRules::new(&layout),
            services_lost: Arc::default(),
            found: Arc::default(),
            layout,
        }
    }

    /// Becomes ready when somebody has taken the rules of Services away.
    pub async fn services_lost(&self) {
        self.services_lost.notified().await;
    }

    /// What others on the machine keep from reaching Pods, as it was last looked at.
    pub fn drops(&self) -> Vec<Exposure> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps it. Never returns.
    pub async fn keep(&self) {
        let kernel = KernelNews::listen(&self.layout)
            .inspect_err(|error| tracing::warn!(%error, "what others do to the network is seen late"))
            .ok();
        let mut news = News { ours: true, others: true };
        loop {
            if news.ours {
                self.put_back().await;
            }
            if news.others {
                self.look_at_filters().await;
            }
            tokio::time::sleep(PAUSE).await;
            let told = async {
                match &kernel {
                    Some(kernel) => kernel.next().await,
                    None => std::future::pending().await,
                }
            };
            // A look that comes late also looks at what the kernel could not tell of.
            news = tokio::time::timeout(PERIOD, told).await.unwrap_or(News { ours: true, others: kernel.is_none() });
        }
    }

    /// Makes again what is gone of the node's own.
    async fn put_back(&self) {
        if let Some(what) = bridge::changed(&self.layout, &self.networks) {
            tracing::warn!(what, "the pods' network was changed by another; it is put back");
            self.tell_failure(bridge::prepare(&self.layout, &self.networks).await);
            bridge::is_filtered(&self.networks).await;
            self.tell_failure(cni::replug(&self.layout));
        }
        if matches!(cni::has_rules(&self.layout).await, Ok(false)) {
            tracing::warn!("the packet rules of the pods' network were removed by another; they are put back");
            self.tell_failure(cni::put_rules(&self.layout, &self.networks).await);
        }
        if matches!(SourceGuard::new(&self.layout).is_there().await, Ok(false)) {
            self.doors.look().await;
        }
        if matches!(self.services.is_there().await, Ok(false)) {
            self.services_lost.notify_one();
        }
    }

    async fn look_at_filters(&self) {
        let filters = match Filters::read().await {
            Ok(filters) => filters,
            Err(error) => return tracing::debug!(%error, "cannot look at others' packet rules"),
        };
        let opened = filters.open_by_managers(&self.layout).await;
        // What was opened is seen as open by the next look, which this change has called.
        let found = if opened { Vec::new() } else { filters.drops(&self.layout) };
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = found;
    }

    fn tell_failure(&self, result: Result<(), HostError>) {
        if let Err(error) = result {
            tracing::warn!(%error, bridge = self.layout.bridge, "the pods' network cannot be put back");
        }
    }
}

/// Takes back what was put into the places of others' filters.
pub(crate) async fn withdraw(layout: &Layout) -> Result<(), HostError> {
    filters::withdraw(layout).await
}
