//! What plugins see of the server.

use std::{net::SocketAddr, sync::Arc};

use corten_access::{Access, Authorizer, Clock};
use corten_api::{
    cluster_network::{ClusterNetwork, NodePorts},
    load_balancer::AddressPool,
};
use corten_cacher::watch_cache::{Caches, ResourceCache};
use corten_conversion::Conversion;
use corten_kinds::Kind;
use corten_meta::{Resource, Time};
use corten_pki::Authority;

use crate::{
    host_port_pool::HostPortPool, measures::Measures, namespace_locks::NamespaceLocks, node_room::NodeRoom,
    policy_source::Policies, service_reservations::Ranges, webhook_source::Webhooks,
};

/// Makes UUIDs; random, or the simulator's from a seed.
pub type Uids = Arc<dyn Fn() -> String + Send + Sync>;

/// Where the server runs.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    pub host_name: String,
    /// The node in the server's process, where there is one: what the machine is reached at is its, too.
    pub node: Option<String>,
}

pub struct Cluster {
    pub caches: Arc<Caches>,
    pub access: Arc<Access>,
    pub pki: Arc<Authority>,
    pub clock: Clock,
    pub uids: Uids,
    pub machine: Machine,
    /// Where Pods and other machines reach this server; `None` where none can.
    pub advertise: Option<SocketAddr>,
    pub network: ClusterNetwork,
    pub node_ports: NodePorts,
    /// What Services of type LoadBalancer are given.
    pub load_balancer_pool: AddressPool,
    /// What Pods with their node's network have of ports.
    pub host_ports: HostPortPool,
    pub namespace_locks: NamespaceLocks,
    /// What nodes have left for Pods that are bound.
    pub node_room: NodeRoom,
    /// What Services have of addresses and ports.
    pub ranges: Ranges,
    /// Who else is asked about writes.
    pub webhooks: Webhooks,
    /// Who else makes custom resources of one version out of those of another.
    pub conversion: Conversion,
    /// Which expressions are asked about writes.
    pub policies: Policies,
    /// How long plugins take.
    pub measures: Measures,
}

impl Cluster {
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// The cache of a built-in kind that is stored.
    pub fn cache(&self, kind: &Kind) -> &ResourceCache {
        self.caches.built_in(kind)
    }

    /// As [`Self::cache`], by what it is called.
    ///
    /// # Panics
    /// Where no built-in kind that is stored is called so.
    pub(crate) fn cache_of(&self, resource: &Resource) -> &ResourceCache {
        self.caches.get(resource).expect("it is a row of the table that is stored")
    }

    pub fn authorizer(&self) -> &Authorizer {
        self.access.authorizer()
    }

    pub fn now(&self) -> Time {
        (self.clock)()
    }

    pub fn new_uid(&self) -> String {
        (self.uids)()
    }
}
