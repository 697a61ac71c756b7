//! Under which names and addresses a node may serve: its own, which nobody else in the cluster has.

use std::net::IpAddr;

use corten_api::resources;
use corten_kinds::reserved::Host;
use corten_meta::{Key, Named, ObjectMeta, Resource};
use corten_reconcile::{Actor, Seen, View, Wait};
use serde::Deserialize;

use super::request::Serving;
use crate::seen::{or_default, seen};

/// A node, as far as a certificate's names go.
#[derive(Deserialize)]
pub(super) struct NamedNode {
    metadata: ObjectMeta,
    #[serde(default)]
    status: NodeStatus,
}
seen!(NamedNode, resources::NODES);

#[derive(Default, Deserialize)]
#[serde(default)]
struct NodeStatus {
    #[serde(deserialize_with = "or_default")]
    addresses: Vec<NodeAddress>,
}

#[derive(Deserialize)]
struct NodeAddress {
    address: String,
}

impl NamedNode {
    fn hosts(&self) -> impl Iterator<Item = Host> {
        self.status.addresses.iter().map(|it| Host::parse(&it.address))
    }
}

/// A Service, as far as it goes by where it is reached.
#[derive(Deserialize)]
pub(super) struct Reachable {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}
seen!(Reachable, resources::SERVICES);

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(rename = "clusterIP")]
    cluster_ip: String,
    #[serde(rename = "clusterIPs", deserialize_with = "or_default")]
    cluster_ips: Vec<String>,
    #[serde(rename = "externalIPs", deserialize_with = "or_default")]
    external_ips: Vec<String>,
    load_balancer_class: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    load_balancer: LoadBalancer,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LoadBalancer {
    #[serde(deserialize_with = "or_default")]
    ingress: Vec<Ingress>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Ingress {
    ip: String,
    hostname: String,
}

impl Reachable {
    fn has(&self, host: &Host) -> bool {
        let of_cluster =
            [&self.spec.cluster_ip].into_iter().chain(&self.spec.cluster_ips).chain(&self.spec.external_ips);
        // Without a class a balancer's addresses are those of the nodes themselves.
        let is_others = self.spec.load_balancer_class.is_some();
        let ingress = self.status.load_balancer.ingress.iter().filter(|_| is_others);
        let of_balancer = ingress.flat_map(|it| [&it.ip, &it.hostname]);
        of_cluster.chain(of_balancer).filter(|it| !it.is_empty()).any(|it| Host::parse(it) == *host)
    }
}

/// # Errors
/// Why a person must look at it.
pub(super) fn check(view: &View, asked: &Serving) -> Result<(), Wait> {
    let missing = || needed(format!("there is no node {} yet", asked.node));
    let node = view.get::<NamedNode>(&Key::cluster(&*asked.node)).ok_or_else(missing)?;
    let own: Vec<Host> = node.hosts().collect();
    let hosts = asked.dns.iter().map(|it| Host::parse(it)).chain(asked.addresses.iter().copied().map(Host::of));
    for host in hosts {
        if !own.contains(&host) {
            return Err(needed(format!("{host} is not among the addresses of node {}", asked.node)));
        }
        is_its_own(node, &own, &host).map_err(needed)?;
        is_nobody_elses(view, node, &host)?;
    }
    // A client that reads a text as a name must not find an address there.
    match asked.dns.iter().find(|it| it.parse::<IpAddr>().is_ok()) {
        Some(address) => Err(needed(format!("{address} is an address and no name"))),
        None => Ok(()),
    }
}

fn needed(message: String) -> Wait {
    Wait::new("ApprovalNeeded", message, Actor::Operator)
}

fn is_its_own(node: &NamedNode, own: &[Host], host: &Host) -> Result<(), String> {
    let is_name = Host::parse(&node.metadata.name) == *host;
    // A node without a network, or one that is called so, is reached from its own machine only.
    let is_all_it_has = match host {
        Host::Name(_) => is_name,
        Host::Address(_) => own.iter().all(|it| it == host || matches!(it, Host::Name(_))),
    };
    if host.is_reserved() && !(host.is_loopback() && is_all_it_has) {
        return Err(format!("{host} belongs to the cluster"));
    }
    if matches!(host, Host::Name(_)) && !is_name {
        return Err(format!("{host} is not the name of the node, and could be another machine's"));
    }
    Ok(())
}

fn is_nobody_elses(view: &View, node: &NamedNode, host: &Host) -> Result<(), Wait> {
    let of_name = host.service().and_then(|(name, namespace)| view.get::<Reachable>(&Key::new(namespace, name)));
    if let Some(service) = of_name.or_else(|| view.list::<Reachable>().find(|it| it.has(host))) {
        let service = service.metadata.key().to_string();
        return Err(needed(format!("{host} is that of service {service}")).on("Service", &service));
    }
    // Whatever others say: a node's name is its own.
    if matches!(host, Host::Name(_)) {
        return Ok(());
    }
    let mut others = view.list::<NamedNode>().filter(|it| it.metadata.name != node.metadata.name);
    match others.find(|it| it.hosts().any(|it| it == *host)) {
        Some(NamedNode { metadata, .. }) => {
            Err(needed(format!("{host} is that of node {}, too", metadata.name)).on("Node", &metadata.name))
        }
        None => Ok(()),
    }
}
