//! Keeps the Pods' network as the node made it, whatever others on the machine do to it.
//!
//! ```text
//! kernel tells: rules, links, addresses, routes ──► look ──► what is the node's own is put back
//! every 5 s: sysctls                           ──┘      └──► others' filters that drop Pods' traffic: opened where their manager
//!                                                            has a place for that, else named
//! ```

mod filters;
mod kernel_changes;
mod managers;

use std::{
    net::{IpAddr, Ipv4Addr, UdpSocket},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use corten_kubelet::NodeProblem;
use corten_machine::{Layout, MachineError};
use corten_meta::address::Cidr;
use tokio::{sync::Notify, time::Instant};

use crate::{
    PolicyRules, ServiceRules, addresses, bridge,
    cni::{self, PodLink},
    nat64::Nat64,
    nft::SourceGuard,
    peers, routes,
    source_guards::PodSourceGuards,
};
use filters::Filters;
use kernel_changes::{KernelChange, KernelWatcher};

/// The kernel does not tell when a sysctl is written.
const PERIOD: Duration = Duration::from_secs(5);
/// What belongs together is looked at once.
const PAUSE: Duration = Duration::from_millis(100);

/// An address that is still the same so much later is no passing one.
const SETTLED: Duration = Duration::from_secs(5);

/// Clones are the same.
#[derive(Clone)]
pub struct PodNetwork {
    layout: Layout,
    link: PodLink,
    networks: Vec<String>,
    /// Where the Pods of all nodes are.
    cluster_cidrs: Vec<Cidr>,
    source_guards: PodSourceGuards,
    nat64: Option<Nat64>,
    services: ServiceRules,
    services_lost: Arc<Notify>,
    policies: PolicyRules,
    policies_lost: Arc<Notify>,
    found: Arc<Mutex<Vec<NodeProblem>>>,
    /// What the machine had when the node began to listen there.
    address: IpAddr,
}

impl PodNetwork {
    pub fn new(
        layout: Layout,
        link: PodLink,
        (networks, cluster_cidrs): (Vec<String>, Vec<Cidr>),
        source_guards: PodSourceGuards,
    ) -> Self {
        Self {
            // The way from a plug-in's IPv6 to IPv4 is the plug-in's.
            nat64: Nat64::new(&layout, &networks).filter(|_| !link.is_plugin()),
            link,
            networks,
            cluster_cidrs,
            source_guards,
            services: ServiceRules::new(&layout),
            services_lost: Arc::default(),
            policies: PolicyRules::new(&layout),
            policies_lost: Arc::default(),
            found: Arc::default(),
            address: own_address(),
            layout,
        }
    }

    /// Becomes ready when somebody has taken the rules of Services away.
    pub async fn services_lost(&self) {
        self.services_lost.notified().await;
    }

    /// As [`PodNetwork::services_lost`], of the rules of policies.
    pub async fn policies_lost(&self) {
        self.policies_lost.notified().await;
    }

    /// Do packets that Pods send each other pass the packet filter?
    pub async fn is_bridge_filtered(&self) -> bool {
        let families = if self.link.is_plugin() { bridge::have_families() } else { bridge::families(&self.networks) };
        bridge::filter_bridged(families).await
    }

    /// What others on the machine keep from reaching Pods, as it was last looked at.
    pub fn drops(&self) -> Vec<NodeProblem> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What there is to say of the machine's own way out.
    pub fn way_out(&self) -> Option<NodeProblem> {
        (own_address().is_loopback() && !self.address.is_loopback())
            .then(|| NodeProblem::NoDefaultRoute { address: self.address.to_string() })
    }

    /// Routes of others to addresses of Pods.
    pub async fn taken_ranges(&self) -> Vec<NodeProblem> {
        if self.link.is_plugin() {
            return Vec::new();
        }
        let own = [&*self.layout.bridge, &peers::device(&self.layout), &peers::wireguard_device(&self.layout)];
        routes::taken(&own, &self.networks).await
    }

    /// Waits until the machine has another address for good than the one that the node listens at; gives both.
    pub async fn moved(&self) -> (IpAddr, IpAddr) {
        let mut seen = None;
        loop {
            tokio::time::sleep(SETTLED).await;
            let now = own_address();
            let has_moved = self.address.is_loopback() || UdpSocket::bind((self.address, 0)).is_err();
            if has_moved && !now.is_loopback() && now != self.address {
                if seen == Some(now) {
                    return (self.address, now);
                }
                seen = Some(now);
            } else {
                seen = None;
            }
        }
    }

    /// Keeps it. Never returns.
    pub async fn keep(&self) {
        let others = Notify::new();
        others.notify_one();
        // A manager of filters may take its time: the node's own does not wait for it.
        tokio::join!(self.keep_own(&others), self.keep_open(&others), self.translate());
    }

    async fn keep_own(&self, others: &Notify) {
        let kernel = KernelWatcher::listen(&self.layout)
            .inspect_err(|error| tracing::warn!(%error, "what others do to the network is seen late"))
            .ok();
        let mut change = KernelChange { ours: true, others: false };
        let mut pause = PAUSE;
        loop {
            let begin = Instant::now();
            if change.others {
                others.notify_one();
            }
            if change.ours {
                // What fails is itself told by the kernel, as far as it went: it is not tried again at once.
                pause = if self.put_back().await { PAUSE } else { (pause * 2).min(PERIOD) };
            }
            pause_after(begin, pause).await;
            let told = async {
                match &kernel {
                    Some(kernel) => kernel.next().await,
                    None => std::future::pending().await,
                }
            };
            // A look that comes late also looks at what the kernel could not tell of.
            change = tokio::time::timeout(PERIOD, told)
                .await
                .unwrap_or(KernelChange { ours: true, others: kernel.is_none() });
        }
    }

    async fn translate(&self) {
        match &self.nat64 {
            Some(nat64) => nat64.serve().await,
            None => std::future::pending().await,
        }
    }

    async fn keep_open(&self, others: &Notify) {
        if self.link.is_plugin() {
            return std::future::pending().await;
        }
        loop {
            let is_told = tokio::time::timeout(PERIOD, others.notified()).await.is_ok();
            // What a manager did not open is tried again.
            if is_told || !self.drops().is_empty() {
                let begin = Instant::now();
                self.look_at_filters().await;
                pause_after(begin, PAUSE).await;
            }
        }
    }

    /// Makes again what is gone of the node's own; was that possible?
    async fn put_back(&self) -> bool {
        let is_done = self.link.is_plugin() || self.put_back_bridge().await;
        if matches!(self.services.is_there().await, Ok(false)) {
            self.services_lost.notify_one();
        }
        if matches!(self.policies.is_there().await, Ok(false)) {
            self.policies_lost.notify_one();
        }
        is_done
    }

    /// What a plug-in of another's would look after itself.
    async fn put_back_bridge(&self) -> bool {
        let mut is_done = true;
        if let Some(what) = bridge::changed(&self.layout, &self.networks).or_else(|| cni::unplugged(&self.layout)) {
            tracing::warn!(what, "the pods' network was changed by another; it is put back");
            is_done &= self.tell_failure(bridge::prepare(&self.layout, &self.networks).await);
            bridge::filter_bridged(bridge::families(&self.networks)).await;
            is_done &= self.tell_failure(cni::replug(&self.layout));
        }
        if let Some(nat64) = &self.nat64
            && let Some(what) = nat64.changed()
        {
            tracing::info!(what, "the way to what has IPv4 alone is made");
            is_done &= self.tell_failure(nat64.prepare().await);
        }
        if matches!(cni::has_rules(&self.layout).await, Ok(false)) {
            tracing::warn!("the packet rules of the pods' network were removed by another; they are put back");
            is_done &= self.tell_failure(cni::put_rules(&self.layout, &self.networks, &self.cluster_cidrs).await);
        }
        if matches!(SourceGuard::new(&self.layout).is_there().await, Ok(false)) {
            self.source_guards.look().await;
        }
        is_done
    }

    async fn look_at_filters(&self) {
        match self.opened_filters().await {
            Ok(filters) => {
                *self.found.lock().unwrap_or_else(PoisonError::into_inner) = filters.drops(&self.layout);
            }
            Err(error) => tracing::debug!(%error, "cannot look at others' packet rules"),
        }
    }

    /// Others' filters, as they are once their managers have opened what they can.
    async fn opened_filters(&self) -> Result<Filters, MachineError> {
        let filters = Filters::read().await?;
        if managers::open(&filters, &self.layout).await { Filters::read().await } else { Ok(filters) }
    }

    fn tell_failure(&self, result: Result<(), MachineError>) -> bool {
        let told = result.inspect_err(|error| {
            tracing::warn!(%error, bridge = self.layout.bridge, "the pods' network cannot be put back");
        });
        told.is_ok()
    }
}

/// Whoever changes hundreds of things one by one is not kept from it by a look at each.
async fn pause_after(begin: Instant, pause: Duration) {
    tokio::time::sleep(pause.max(begin.elapsed() * 2)).await;
}

/// That of the default route; without one only this machine reaches the node.
fn own_address() -> IpAddr {
    addresses().first().copied().unwrap_or(Ipv4Addr::LOCALHOST.into())
}

/// Takes back what was put into the places of others' filters.
pub async fn withdraw(layout: &Layout) -> Result<(), MachineError> {
    managers::withdraw(layout).await
}
