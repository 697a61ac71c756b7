//! Under which names and addresses a node may serve: its own, which nobody else in the cluster has.

use std::collections::BTreeSet;
use std::net::IpAddr;

use corten_api::resources;
use corten_meta::reserved::Host;
use corten_meta::{Key, ObjectMeta, address::Cidr};
use corten_reconcile::{Actor, View, Wait};
use serde::Deserialize;

use super::{api_servers, request::Serving};
use crate::projections::{Pod, ReachableService, or_default, projection};

/// For each name it is looked through all that Services, Pods and nodes have.
const NAMES_MAX: usize = 32;

/// A node, as far as a certificate's names go.
#[derive(Deserialize)]
pub(super) struct NamedNode {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: NodeSpec,
    #[serde(default)]
    status: NodeStatus,
}
projection!(NamedNode, resources::NODES);

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeSpec {
    #[serde(rename = "podCIDRs", deserialize_with = "or_default")]
    pod_cidrs: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeStatus {
    #[serde(deserialize_with = "or_default")]
    addresses: Vec<NodeAddress>,
    #[serde(deserialize_with = "or_default")]
    conditions: Vec<NodeCondition>,
}

#[derive(Deserialize)]
struct NodeCondition {
    r#type: String,
    status: String,
}

#[derive(Deserialize)]
struct NodeAddress {
    address: String,
}

impl NamedNode {
    /// Does a machine that has a certificate already run under this name?
    pub(super) fn is_ready(&self) -> bool {
        self.status.conditions.iter().any(|it| it.r#type == "Ready" && it.status == "True")
    }

    fn hosts(&self) -> impl Iterator<Item = Host> {
        self.status.addresses.iter().map(|it| Host::parse(&it.address))
    }

    fn has_pods_at(&self, address: IpAddr) -> bool {
        self.spec.pod_cidrs.iter().filter_map(|it| Cidr::parse(it)).any(|it| it.contains(address))
    }
}

/// # Errors
/// Why a person must look at it.
pub(super) fn check(view: &View, asked: &Serving, domain: &str) -> Result<(), Wait> {
    let missing = || needed(format!("there is no node {} yet", asked.node));
    let node = view.get::<NamedNode>(&Key::cluster(&*asked.node)).ok_or_else(missing)?;
    let own: BTreeSet<Host> = node.hosts().collect();
    let n_names = asked.dns.len() + asked.addresses.len();
    if n_names > NAMES_MAX {
        return Err(needed(format!("it asks for {n_names} names, and no machine has more than {NAMES_MAX}")));
    }
    // A client that reads a text as a name must not find an address there.
    if let Some((name, why)) = asked.dns.iter().find_map(|it| Some((it, is_odd_name(it)?))) {
        return Err(needed(format!("{name} {why}")));
    }
    let servers = api_servers::hosts(view, &asked.node);
    let hosts = asked.dns.iter().map(|it| Host::parse(it)).chain(asked.addresses.iter().copied().map(Host::of));
    for host in hosts {
        if !own.contains(&host) {
            return Err(needed(format!("{host} is not among the addresses of node {}", asked.node)));
        }
        is_its_own(node, &own, &host, domain).map_err(needed)?;
        if servers.contains(&host) {
            return Err(needed(format!("{host} is that of an API server")));
        }
        is_nobody_elses(view, node, &host)?;
    }
    Ok(())
}

fn is_odd_name(name: &str) -> Option<&'static str> {
    match Host::strict(name) {
        Ok(Host::Name(_)) => None,
        Ok(Host::Address(_)) => Some("is an address and no name"),
        Err(why) => Some(why),
    }
}

fn needed(message: String) -> Wait {
    Wait::new("ApprovalNeeded", message, Actor::Operator)
}

fn is_its_own(node: &NamedNode, own: &BTreeSet<Host>, host: &Host, domain: &str) -> Result<(), String> {
    let is_name = Host::parse(&node.metadata.name) == *host;
    // A node without a network, or one that is called so, is reached from its own machine only.
    let is_all_it_has = match host {
        Host::Name(_) => is_name,
        Host::Address(_) => own.iter().all(|it| it == host || matches!(it, Host::Name(_))),
    };
    if host.is_reserved(domain) && !(host.is_loopback() && is_all_it_has) {
        return Err(format!("{host} belongs to the cluster"));
    }
    if matches!(host, Host::Name(_)) && !is_name {
        return Err(format!("{host} is not the name of the node, and could be another machine's"));
    }
    Ok(())
}

fn is_nobody_elses(view: &View, node: &NamedNode, host: &Host) -> Result<(), Wait> {
    let of_name = host.service().and_then(|(name, namespace)| view.get::<ReachableService>(&Key::new(namespace, name)));
    if let Some(service) = of_name.or_else(|| view.list::<ReachableService>().find(|it| it.has(host))) {
        let service = service.metadata.key().to_string();
        return Err(needed(format!("{host} is that of service {service}")).on("Service", &service));
    }
    // Whatever others say: a node's name is its own.
    let Host::Address(address) = host else { return Ok(()) };
    is_no_pods(view, node, host, *address)?;
    let mut others = view.list::<NamedNode>().filter(|it| it.metadata.name != node.metadata.name);
    match others.find(|it| it.hosts().any(|it| it == *host)) {
        Some(NamedNode { metadata, .. }) => {
            Err(needed(format!("{host} is that of node {}, too", metadata.name)).on("Node", &metadata.name))
        }
        None => Ok(()),
    }
}

/// What serves at a Pod's address is the Pod, also where the node has no part in the network that it is in.
fn is_no_pods(view: &View, node: &NamedNode, host: &Host, address: IpAddr) -> Result<(), Wait> {
    if let Some(NamedNode { metadata, .. }) = view.list::<NamedNode>().find(|it| it.has_pods_at(address)) {
        return Err(needed(format!("{host} is of the pods of node {}", metadata.name)).on("Node", &metadata.name));
    }
    let is_alive = |it: &Pod| !matches!(&*it.status.phase, "Succeeded" | "Failed");
    let is_its = |it: &Pod| it.status.pod_ips.iter().chain([&it.status.pod_ip]).any(|it| Host::parse(it) == *host);
    // One in its node's own network has its node's address.
    let mut of_others = view.list::<Pod>().filter(|it| it.spec.node_name != node.metadata.name && is_alive(it));
    match of_others.find(|it| is_its(it)) {
        Some(pod) => {
            let pod = pod.metadata.key().to_string();
            Err(needed(format!("{host} is that of pod {pod}")).on("Pod", &pod))
        }
        None => Ok(()),
    }
}
