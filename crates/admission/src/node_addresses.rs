//! What a node may say that it and its Pods are reached at: never at a name or an address of the cluster, the API server,
//! another node, or another node's Pods.
//!
//! Looked at is what is new: a node that is already known under an address does not fall silent because somebody else comes
//! to have it, too.

use std::{cell::OnceCell, collections::BTreeSet, net::IpAddr};

use corten_api::{
    cluster_network::WIREGUARD_PUBLIC_KEY,
    load_balancer::POOL_ADDRESSES,
    resources::{NODES, PODS, SERVICES},
};
use corten_meta::address::Cidr;
use corten_meta::reserved::Host;
use serde_json::Value;

use super::Attributes;
use crate::{Cluster, api_servers, services};

/// One node's claims.
struct Claimant<'a> {
    cluster: &'a Cluster,
    node: &'a str,
    /// Runs in this process: it has this machine's names and addresses, as the server does.
    is_local: bool,
    /// What others have is read once for all that is claimed.
    others: OnceCell<Vec<(String, Value)>>,
    own: OnceCell<Value>,
    balanced: OnceCell<BTreeSet<IpAddr>>,
    of_pods: OnceCell<BTreeSet<Host>>,
    servers: OnceCell<BTreeSet<Host>>,
}

/// Why `node` may not write what is in `status.addresses` of its Node; `None` where it may.
pub(super) fn refused(request: &Attributes<'_>, node: &str, object: &Value) -> Option<String> {
    let is_local = request.cluster.machine.node.as_deref() == Some(node);
    let claimant = Claimant::new(request.cluster, node, is_local);
    let before: BTreeSet<&str> = request.old.into_iter().flat_map(addresses).collect();
    let known: BTreeSet<Host> = before.iter().map(|it| Host::parse(it)).collect();
    let new: BTreeSet<&str> = addresses(object).filter(|it| !before.contains(it)).collect();
    let n_all = addresses(object).count();
    if !new.is_empty() && n_all > ADDRESSES_MAX {
        return Some(format!("node {node:?} is not allowed to claim {n_all} addresses"));
    }
    if let Some(refused) = claimant.refused_of_pool(&new, object) {
        return Some(refused);
    }
    let taken = new.into_iter().find_map(|text| {
        let refused = |why: String| format!("node {node:?} is not allowed to claim the address {text:?}: it {why}");
        match Host::strict(text) {
            Err(why) => Some(refused(why.into())),
            Ok(host) if known.contains(&host) => None,
            Ok(host) => claimant.owner(&host).map(|owner| refused(format!("belongs to {owner}"))),
        }
    });
    let n_ranges = object["spec"]["podCIDRs"].as_array().map_or(0, Vec::len);
    if n_ranges > RANGES_MAX {
        return Some(format!(
            "node {node:?} is not allowed to claim {n_ranges} pod networks: there is one of each family"
        ));
    }
    let before: Vec<Cidr> = request.old.into_iter().flat_map(pod_ranges).collect();
    let new: Vec<Cidr> = pod_ranges(object).filter(|it| !before.contains(it)).collect();
    let taken = taken.or_else(|| claimant.refused_key(request.old, object));
    taken.or_else(|| {
        new.iter().find_map(|it| {
            let why = claimant.inside(*it).map(|it| format!("{it} is in it"));
            let why = why.or_else(|| claimant.not_given(*it, object))?;
            Some(format!("node {node:?} is not allowed to claim the pod network {:?}: {why}", it.to_string()))
        })
    })
}

/// Why `node` may not write the addresses of a Pod that is bound to it; `None` where it may. Upstream's plugin takes any. Whoever has
/// one here is let through by policies that let the Pod through.
pub(super) fn refused_of_pod(request: &Attributes<'_>, node: &str, pod: &Value) -> Option<String> {
    let is_local = request.cluster.machine.node.as_deref() == Some(node);
    let claimant = Claimant::new(request.cluster, node, is_local);
    let before: BTreeSet<Host> = request.old.into_iter().flat_map(pod_hosts).collect();
    let new: BTreeSet<Host> = pod_hosts(pod).filter(|it| !before.contains(it)).collect();
    if new.len() > NEW_OF_POD_MAX {
        return Some(format!("node {node:?} is not allowed to claim {} new addresses for one pod", new.len()));
    }
    new.into_iter().find_map(|host| {
        let owner = claimant.owner_of_pods(&host)?;
        Some(format!("node {node:?} is not allowed to claim the address {host} for its pod: it belongs to {owner}"))
    })
}

fn pod_hosts(pod: &Value) -> impl Iterator<Item = Host> + use<'_> {
    let all = pod["status"]["podIPs"].as_array().into_iter().flatten().map(|it| &it["ip"]);
    all.chain([&pod["status"]["podIP"]]).filter_map(|it| Some(Host::of(it.as_str()?.parse().ok()?)))
}

/// More than any machine has.
const ADDRESSES_MAX: usize = 100;
/// One of IPv4 and one of IPv6: the pool of load balancers may be a part of the network that machines are in.
const OF_POOL_MAX: usize = 2;
/// One of IPv4 and one of IPv6.
const RANGES_MAX: usize = 2;
/// One of each family, and as much again where `podIP` and `podIPs` differ.
const NEW_OF_POD_MAX: usize = 4;

fn addresses(node: &Value) -> impl Iterator<Item = &str> + use<'_> {
    let addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    addresses.map(|it| it["address"].as_str().unwrap_or_default())
}

fn hosts(node: &Value) -> impl Iterator<Item = Host> + use<'_> {
    addresses(node).map(Host::parse)
}

/// Where a Node says that its Pods have their addresses.
fn pod_ranges(node: &Value) -> impl Iterator<Item = Cidr> + use<'_> {
    let ranges = node["spec"]["podCIDRs"].as_array().into_iter().flatten().chain([&node["spec"]["podCIDR"]]);
    ranges.filter_map(|it| Cidr::parse(it.as_str()?))
}

/// The key of its end of WireGuard.
fn wireguard_key(node: &Value) -> Option<&str> {
    node["metadata"]["annotations"][WIREGUARD_PUBLIC_KEY].as_str()
}

impl<'a> Claimant<'a> {
    fn new(cluster: &'a Cluster, node: &'a str, is_local: bool) -> Self {
        let (others, own) = (OnceCell::new(), OnceCell::new());
        let (balanced, of_pods, servers) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Self { cluster, node, is_local, others, own, balanced, of_pods, servers }
    }

    /// Why a node may not tell this key of its tunnel: packets for another node's Pods go to whoever has that one's key.
    fn refused_key(&self, old: Option<&Value>, object: &Value) -> Option<String> {
        let key = wireguard_key(object).filter(|it| old.and_then(wireguard_key) != Some(it))?;
        let (other, _) = self.others().iter().find(|it| wireguard_key(&it.1) == Some(key))?;
        Some(format!("node {:?} is not allowed to tell the WireGuard key of node {other:?}", self.node))
    }

    /// Why a node may not have so many addresses of the pool of load balancers. Services are given what no node has: one could take all.
    fn refused_of_pool(&self, new: &BTreeSet<&str>, object: &Value) -> Option<String> {
        let pool = &self.cluster.load_balancer_pool;
        let is_of_pool = |it: &str| it.parse().is_ok_and(|it: IpAddr| pool.contains(it.to_canonical()));
        if self.is_local || !new.iter().any(|it| is_of_pool(it)) {
            return None;
        }
        let claimed: BTreeSet<&str> = addresses(object).filter(|it| is_of_pool(it)).collect();
        (claimed.len() > OF_POOL_MAX).then(|| {
            format!(
                "node {:?} is not allowed to claim {} addresses of the pool of load balancers {pool}, but {OF_POOL_MAX}",
                self.node,
                claimed.len()
            )
        })
    }

    /// Whose it is, where it is not the node's.
    fn owner(&self, host: &Host) -> Option<String> {
        let is_own = self.is_local && (host.is_loopback() || host.is_link_local() || Host::parse(self.node) == *host);
        if host.is_reserved(&self.cluster.network.domain) && !is_own {
            return Some("the cluster".into());
        }
        let caches = self.cluster.caches();
        if let Some((name, namespace)) = host.service()
            && caches.get(&SERVICES).is_some_and(|it| it.get(namespace, name).is_some())
        {
            return Some("a Service".into());
        }
        if self.is_local {
            return None;
        }
        if let Host::Address(address) = host
            && services::ranges(caches).iter().any(|it| it.contains(*address))
        {
            return Some("the range of Services' addresses".into());
        }
        if let Host::Address(address) = host
            && self.balanced().contains(address)
        {
            return Some("a load balancer".into());
        }
        if let Host::Address(address) = host
            && let Some(owner) = self.pods_owner(*address)
        {
            return Some(owner);
        }
        if self.servers().contains(host) {
            return Some("the API server".into());
        }
        self.other_node(host).map(|it| format!("node {it:?}"))
    }

    /// Whose it is, where it is no Pod's of the node. What lies in nobody's range may be its Pod's: a node without a range, and a
    /// network of another's, have their own.
    fn owner_of_pods(&self, host: &Host) -> Option<String> {
        let Host::Address(address) = host else { return None };
        if self.is_local {
            return None;
        }
        let own = self.own();
        // With the network of its machine it is where the node is.
        if pod_ranges(own).any(|it| it.contains(*address)) || hosts(own).any(|it| it == *host) {
            return None;
        }
        if services::ranges(self.cluster.caches()).iter().any(|it| it.contains(*address)) {
            return Some("the range of Services' addresses".into());
        }
        if self.servers().contains(host) {
            return Some("the API server".into());
        }
        let others = self.others();
        if let Some((name, _)) = others.iter().find(|it| pod_ranges(&it.1).any(|it| it.contains(*address))) {
            return Some(format!("the pods of node {name:?}"));
        }
        let other = others.iter().find(|it| !is_silent(&it.1) && hosts(&it.1).any(|it| it == *host));
        other.map(|(name, _)| format!("node {name:?}"))
    }

    /// What Services have from the pool: one node answers for each of these, and they are no node's own.
    fn balanced(&self) -> &BTreeSet<IpAddr> {
        self.balanced.get_or_init(|| {
            let services = self.cluster.caches().get(&SERVICES).expect("services are a row of the table").snapshot();
            let shown = |service: Value| {
                let of = |field: &str| service["status"][field].as_array().cloned().unwrap_or_default();
                let is_pooled = of("conditions").iter().any(|it| it["type"] == POOL_ADDRESSES);
                let shown = service["status"]["loadBalancer"]["ingress"].as_array().cloned().unwrap_or_default();
                shown.into_iter().filter(move |_| is_pooled).filter_map(|it| it["ip"].as_str()?.parse().ok())
            };
            services.iter().flat_map(|it| shown(it.parse())).collect()
        })
    }

    /// Whose Pods are at an address, or could be.
    fn pods_owner(&self, address: IpAddr) -> Option<String> {
        let is_theirs = |it: &Value| pod_ranges(it).any(|it| it.contains(address));
        let of = |name: &str| format!("the pods of node {name:?}");
        if is_theirs(self.own()) {
            return Some(of(self.node));
        }
        if let Some((name, _)) = self.others().iter().find(|it| is_theirs(&it.1)) {
            return Some(of(name));
        }
        // Who asks is not to be told of Pods that are none of its own.
        self.of_pods().contains(&Host::of(address)).then(|| "a pod".into())
    }

    /// Where Pods are. One in its node's own network has its node's address.
    fn of_pods(&self) -> &BTreeSet<Host> {
        self.of_pods.get_or_init(|| {
            let pods = self.cluster.caches().get(&PODS).expect("pods are a row of the table").snapshot();
            let pods = pods.iter().map(|it| it.parse()).filter(|it| it["spec"]["hostNetwork"] != true);
            pods.flat_map(|it| pod_hosts(&it).collect::<Vec<_>>()).collect()
        })
    }

    fn servers(&self) -> &BTreeSet<Host> {
        self.servers.get_or_init(|| api_servers::hosts(self.cluster))
    }

    /// Why a range is none that it can have been given: each node has one part of each of the cluster's ranges, the first of them the
    /// control plane's, and no other's. A node whose Node is made anew says again what it was given.
    fn not_given(&self, range: Cidr, node: &Value) -> Option<String> {
        if self.is_local {
            return None;
        }
        let network = &self.cluster.network;
        let bits = network.node_bits(range.address.is_ipv4());
        let is_part = |of: &Cidr| range.bits == bits && of.contains(range.address) && range.address != of.address;
        if !network.cluster_cidrs.iter().any(is_part) {
            return Some("it is no part that a node of this cluster is given".into());
        }
        let is_of_family = |it: &Cidr| it.address.is_ipv4() == range.address.is_ipv4();
        if pod_ranges(node).filter(is_of_family).any(|it| it != range) {
            return Some("a node is given one part of each family".into());
        }
        let overlaps = |it: Cidr| it.meets(&range);
        let other = self.others().iter().find(|it| pod_ranges(&it.1).any(overlaps));
        other.map(|(name, _)| format!("node {name:?} has it"))
    }

    /// What of the cluster lies in a range that a node says is its Pods'. What is in such a range is no other node's.
    fn inside(&self, range: Cidr) -> Option<String> {
        if self.is_local {
            return None;
        }
        let services = services::ranges(self.cluster.caches());
        if services.iter().any(|it| it.meets(&range)) {
            return Some("an address of Services".into());
        }
        let is_in_it = |it: &Host| matches!(it, Host::Address(it) if range.contains(*it));
        if self.servers().iter().any(is_in_it) {
            return Some("the address of the API server".into());
        }
        self.others()
            .iter()
            .find(|(_, it)| !is_silent(it) && hosts(it).any(|it| is_in_it(&it)))
            .map(|it| format!("node {:?}", it.0))
    }

    fn others(&self) -> &[(String, Value)] {
        self.others.get_or_init(|| {
            let nodes = self.cluster.caches().get(&NODES).expect("nodes are a row of the table").snapshot();
            let others = nodes.iter().filter(|it| it.name() != self.node);
            others.map(|it| (it.name().to_owned(), it.parse())).collect()
        })
    }

    /// Its Node as it is; null where there is none.
    fn own(&self) -> &Value {
        self.own.get_or_init(|| {
            let nodes = self.cluster.caches().get(&NODES).expect("nodes are a row of the table");
            nodes.get("", self.node).map(|it| it.parse()).unwrap_or_default()
        })
    }

    /// A node that is silent may be gone, and its address another's now. Its name stays its own.
    fn other_node(&self, host: &Host) -> Option<String> {
        // Whatever others say: a node's name is its own.
        if Host::parse(self.node) == *host {
            return None;
        }
        let found = self
            .others()
            .iter()
            .find(|(name, it)| Host::parse(name) == *host || !is_silent(it) && hosts(it).any(|it| it == *host));
        found.map(|it| it.0.clone())
    }
}

fn is_silent(node: &Value) -> bool {
    let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == "Ready" && it["status"] == "Unknown")
}
