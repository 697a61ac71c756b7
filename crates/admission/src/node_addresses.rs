//! What a node may say it is reached at: never at a name or an address of the cluster, the API server, another node or a Pod.
//!
//! Looked at is what is new: a node that is already known under an address does not fall silent because somebody else comes
//! to have it, too.

use std::{collections::BTreeSet, net::IpAddr};

use corten_api::resources::{NODES, PODS, SERVICES};
use corten_meta::address::Cidr;
use corten_meta::reserved::Host;
use serde_json::Value;

use super::Attributes;
use crate::{Cluster, services};

/// One node's claims.
struct Claimant<'a> {
    cluster: &'a Cluster,
    node: &'a str,
    /// Runs in this process: it has this machine's names and addresses, as the server does.
    is_local: bool,
}

/// Why `node` may not write what is in `status.addresses` of its Node; `None` where it may.
pub(super) fn refused(request: &Attributes<'_>, node: &str, object: &Value) -> Option<String> {
    let is_local = request.cluster.machine.node.as_deref() == Some(node);
    let claimant = Claimant { cluster: request.cluster, node, is_local };
    let before: BTreeSet<&str> = request.old.into_iter().flat_map(addresses).collect();
    let known: BTreeSet<Host> = before.iter().map(|it| Host::parse(it)).collect();
    let new: BTreeSet<&str> = addresses(object).filter(|it| !before.contains(it)).collect();
    if new.len() > NEW_MAX {
        return Some(format!("node {node:?} is not allowed to claim {} new addresses at once", new.len()));
    }
    let taken = new.into_iter().find_map(|text| {
        let refused = |why: String| format!("node {node:?} is not allowed to claim the address {text:?}: it {why}");
        match Host::strict(text) {
            Err(why) => Some(refused(why.into())),
            Ok(host) if known.contains(&host) => None,
            Ok(host) => claimant.owner(&host).map(|owner| refused(format!("belongs to {owner}"))),
        }
    });
    let before: Vec<Cidr> = request.old.into_iter().flat_map(pod_ranges).collect();
    let mut new = pod_ranges(object).filter(|it| !before.contains(it));
    taken.or_else(|| {
        new.find_map(|it| {
            let inside = claimant.inside(it)?;
            Some(format!(
                "node {node:?} is not allowed to claim the pod network {:?}: {inside} is in it",
                it.to_string()
            ))
        })
    })
}

/// More than any machine has: for each of them all other nodes are looked through.
const NEW_MAX: usize = 100;

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

impl Claimant<'_> {
    /// Whose it is, where it is not the node's.
    fn owner(&self, host: &Host) -> Option<String> {
        let is_own = self.is_local && (host.is_loopback() || host.is_link_local() || Host::parse(self.node) == *host);
        if host.is_reserved() && !is_own {
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
            && let Some(owner) = self.pods_owner(*address)
        {
            return Some(owner);
        }
        if self.is_of_server(host) {
            return Some("the API server".into());
        }
        self.other_node(host).map(|it| format!("node {it:?}"))
    }

    /// Whose Pods are at an address, or could be.
    fn pods_owner(&self, address: IpAddr) -> Option<String> {
        let caches = self.cluster.caches();
        let nodes = caches.get(&NODES).expect("nodes are a row of the table").snapshot();
        let is_theirs = |it: &Value| pod_ranges(it).any(|it| it.contains(address));
        if let Some(node) = nodes.iter().find(|it| is_theirs(&it.parse())) {
            return Some(format!("the pods of node {:?}", node.name()));
        }
        let pods = caches.get(&PODS).expect("pods are a row of the table").snapshot();
        let is_its = |it: &Value| {
            let ips = it["status"]["podIPs"].as_array().into_iter().flatten().map(|it| &it["ip"]);
            let mut ips = ips.chain([&it["status"]["podIP"]]).filter_map(Value::as_str);
            // One in its node's own network has its node's address.
            it["spec"]["hostNetwork"] != true && ips.any(|it| Host::parse(it) == Host::of(address))
        };
        // Who asks is not to be told of Pods that are none of its own.
        pods.iter().any(|it| is_its(&it.parse())).then(|| "a pod".into())
    }

    /// What of the cluster lies in a range that a node says is its Pods'. What is in such a range is no other node's.
    fn inside(&self, range: Cidr) -> Option<String> {
        if self.is_local {
            return None;
        }
        let services = services::ranges(self.cluster.caches());
        if services.iter().any(|it| it.contains(range.address) || range.contains(it.address)) {
            return Some("an address of Services".into());
        }
        if self.cluster.advertise.is_some_and(|it| range.contains(it.ip())) {
            return Some("the address of the API server".into());
        }
        let is_in_it = |it: Host| matches!(it, Host::Address(it) if range.contains(it));
        self.others()
            .into_iter()
            .find(|(_, it)| !is_silent(it) && hosts(it).any(is_in_it))
            .map(|it| format!("node {:?}", it.0))
    }

    fn others(&self) -> Vec<(String, Value)> {
        let nodes = self.cluster.caches().get(&NODES).expect("nodes are a row of the table").snapshot();
        let others = nodes.iter().filter(|it| it.name() != self.node);
        others.map(|it| (it.name().to_owned(), it.parse())).collect()
    }

    fn is_of_server(&self, host: &Host) -> bool {
        let config = self.cluster;
        let advertised = config.advertise.map(|it| Host::of(it.ip()));
        advertised.as_ref() == Some(host) || Host::parse(&config.machine.host_name) == *host
    }

    /// A node that is silent may be gone, and its address another's now. Its name stays its own.
    fn other_node(&self, host: &Host) -> Option<String> {
        // Whatever others say: a node's name is its own.
        if Host::parse(self.node) == *host {
            return None;
        }
        let found = self
            .others()
            .into_iter()
            .find(|(name, it)| Host::parse(name) == *host || !is_silent(it) && hosts(it).any(|it| it == *host));
        found.map(|it| it.0)
    }
}

fn is_silent(node: &Value) -> bool {
    let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|it| it["type"] == "Ready" && it["status"] == "Unknown")
}
