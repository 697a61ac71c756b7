//! Gives Services of type LoadBalancer addresses of a pool, for which one node each answers; where there is no pool the nodes' own
//! addresses, and each node leads packets for them.
//!
//! A port of the nodes' addresses has room for one Service. Of two that want it, who has it keeps it, else the older gets it;
//! the other waits. Services with a `loadBalancerClass` are another's.

mod pooled;

use std::{collections::BTreeSet, fmt, time::Duration};

use corten_api::{
    cluster_network::NodePorts,
    load_balancer::{AddressPool, EXCLUDED, POOL_ADDRESSES},
    resources,
};
use corten_meta::{Key, ObjectMeta, Resource, Time};
use corten_reconcile::{Actor, Controller, Effect, EventType, Plan, Verb, View, Wait, Wake, Watch, Write};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    projections::{EndpointSlice, Frontend, Ingress, ReachableService, projection, reference},
    settings::Settings,
};

/// How soon a Service that waits for a port looks again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
const SERVICE_NAME: &str = "kubernetes.io/service-name";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Node {
    metadata: ObjectMeta,
    #[serde(default)]
    status: NodeStatus,
}
projection!(Node, resources::NODES);

#[derive(Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeStatus {
    addresses: Vec<Address>,
    daemon_endpoints: DaemonEndpoints,
}

#[derive(Default, PartialEq, Deserialize)]
#[serde(default)]
struct Address {
    r#type: String,
    address: String,
}

#[derive(Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DaemonEndpoints {
    kubelet_endpoint: DaemonEndpoint,
}

#[derive(Default, PartialEq, Deserialize)]
#[serde(default)]
struct DaemonEndpoint {
    #[serde(rename = "Port")]
    port: i64,
}

/// A heartbeat is no news.
impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.status == other.status && self.takes_packets() == other.takes_packets()
    }
}

impl Node {
    fn takes_packets(&self) -> bool {
        !self.metadata.is_deleting() && !self.metadata.labels.contains_key(EXCLUDED)
    }

    /// Where the world reaches it: its external addresses, where it has some.
    fn addresses(&self, family: &str) -> Vec<&str> {
        let of = |kind: &str| -> Vec<&str> {
            let addresses = self.status.addresses.iter().filter(|it| it.r#type == kind).map(|it| &*it.address);
            addresses.filter(|it| it.contains(':') == (family == "IPv6")).collect()
        };
        Some(of("ExternalIP")).filter(|it| !it.is_empty()).unwrap_or_else(|| of("InternalIP"))
    }
}

impl ReachableService {
    fn is_ours(&self) -> bool {
        self.spec.r#type == "LoadBalancer" && self.spec.load_balancer_class.is_none() && !self.metadata.is_deleting()
    }

    fn is_served(&self) -> bool {
        !self.status.load_balancer.ingress.is_empty()
    }

    /// Who goes first to a port that two want.
    fn rank(&self) -> (bool, Option<Time>, Key) {
        (!self.is_served(), self.metadata.creation_timestamp, self.metadata.key())
    }
}

/// With a pool and without one, each Service is a key of its own.
#[derive(Default)]
pub struct LoadBalancers {
    pool: AddressPool,
    node_ports: NodePorts,
}

impl LoadBalancers {
    pub fn new(settings: &Settings) -> Self {
        Self { pool: settings.load_balancer_pool.clone(), node_ports: settings.node_ports.clone() }
    }
}

impl Controller for LoadBalancers {
    fn name(&self) -> &'static str {
        "service"
    }

    fn watches(&self) -> Vec<Watch> {
        if self.pool.is_empty() {
            return vec![
                Watch::new::<ReachableService>(Wake::Itself),
                Watch::new::<Node>(Wake::With(balanced)).telling_changes_of::<Node>(),
                Watch::new::<EndpointSlice>(Wake::Nobody),
            ];
        }
        vec![
            Watch::new::<ReachableService>(Wake::With(pooled::sharers)),
            Watch::new::<Node>(Wake::With(balanced)).telling_changes_of::<Node>(),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            let fields = &["status.loadBalancer", "status.conditions"];
            &[Write { verb: Verb::Patch, resource: resources::SERVICES, fields }]
        }
    }

    fn about(&self) -> Option<Resource> {
        Some(resources::SERVICES)
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        if !self.pool.is_empty() {
            return pooled::assign(&self.pool, view, key, now);
        }
        let Some(service) = view.get::<ReachableService>(key) else { return Plan::default() };
        let mut plan = Plan::default();
        if !service.is_ours() {
            plan.effects.extend(taken_away(service));
            return plan;
        }
        if let Some((port, holder)) = taken(view, service, &self.node_ports) {
            let place = format!("port {}/{} of the nodes' addresses", port.port, port.protocol);
            let wait = Wait::new("PortTaken", format!("{place} is taken by {holder}"), Actor::Author);
            plan.waits.push(match &holder {
                Holder::Service(of) => wait.on("Service", &of.to_string()),
                Holder::Hidden | Holder::Cluster(_) => wait,
            });
            plan.wake_at = Some(now.after(LOOK_AGAIN));
            if service.is_served() {
                plan.effects.push(patch(service, &[], None));
            }
            let message =
                format!("Error syncing load balancer: failed to ensure load balancer: {place} is taken by {holder}");
            plan.effects.push(event(service, EventType::Warning, "SyncLoadBalancerFailed", &message));
            return plan;
        }
        let ingress = ingress(view, service);
        if ingress.is_empty() {
            plan.waits.push(Wait::new("NoNodes", "there is no node whose address it could have", Actor::Operator));
        }
        // Of addresses of the nodes none answers for the others: what was said of the pool goes.
        if ingress != service.status.load_balancer.ingress || service.pool_addresses().is_some() {
            plan.effects.extend(balance(service, &ingress, None));
        }
        plan
    }
}

/// A Service that is served already has other nodes now; as upstream's service controller tells of either.
fn balance(service: &ReachableService, ingress: &[Ingress], condition: Option<Value>) -> Vec<Effect> {
    let normal = |reason, message| event(service, EventType::Normal, reason, message);
    let write = patch(service, ingress, condition);
    if !service.is_served() {
        let begun = normal("EnsuringLoadBalancer", "Ensuring load balancer");
        return vec![begun, write, normal("EnsuredLoadBalancer", "Ensured load balancer")];
    }
    if ingress.is_empty() {
        let message = "There are no available nodes for LoadBalancer";
        return vec![write, event(service, EventType::Warning, "UnAvailableLoadBalancer", message)];
    }
    vec![write, normal("UpdatedLoadBalancer", "Updated load balancer with new hosts")]
}

/// Of a Service that is no balancer any more. Another's balancers are another's to take away.
fn taken_away(service: &ReachableService) -> Vec<Effect> {
    if service.spec.r#type == "LoadBalancer" || !(service.is_served() || service.pool_addresses().is_some()) {
        return Vec::new();
    }
    let normal = |reason, message| event(service, EventType::Normal, reason, message);
    let begun = normal("DeletingLoadBalancer", "Deleting load balancer");
    vec![begun, patch(service, &[], None), normal("DeletedLoadBalancer", "Deleted load balancer")]
}

/// A node came, went or moved.
fn balanced(view: &View, _node: &ObjectMeta) -> Vec<Key> {
    view.list::<ReachableService>().filter(|it| it.spec.r#type == "LoadBalancer").map(|it| it.metadata.key()).collect()
}

fn ingress(view: &View, service: &ReachableService) -> Vec<Ingress> {
    let nodes: Vec<&Node> = view.list::<Node>().filter(|it| it.takes_packets()).collect();
    let families = service.spec.ip_families.iter();
    let addresses = families.flat_map(|family| nodes.iter().flat_map(move |it| it.addresses(family)));
    addresses.map(vip).collect()
}

fn vip(ip: &str) -> Ingress {
    Ingress { ip: ip.to_owned(), ip_mode: Some("VIP".into()), ..Ingress::default() }
}

/// Who has a port.
enum Holder {
    Service(Key),
    /// A Service of another namespace: who may not read it is not told of it.
    Hidden,
    Cluster(&'static str),
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service(of) => write!(f, "service {of}"),
            Self::Hidden => f.write_str("a service of another namespace"),
            Self::Cluster(what) => f.write_str(what),
        }
    }
}

/// A port that another has, and who that is.
fn taken(view: &View, service: &ReachableService, node_ports: &NodePorts) -> Option<(Frontend, Holder)> {
    let own = &service.spec.ports;
    let cluster = ClusterPorts::of(view);
    if let Some(found) = own.iter().find_map(|it| Some((it.clone(), Holder::Cluster(cluster.holder(it, node_ports)?))))
    {
        return Some(found);
    }
    let rivals = view.list::<ReachableService>().filter(|it| it.is_ours() && it.rank() < service.rank());
    let (port, rival) = rivals.into_iter().find_map(|rival| {
        let theirs: BTreeSet<&Frontend> = rival.spec.ports.iter().collect();
        let port = own.iter().find(|it| theirs.contains(it))?;
        Some((port.clone(), rival.metadata.key()))
    })?;
    let is_known = rival.namespace == service.metadata.key().namespace;
    Some((port, if is_known { Holder::Service(rival) } else { Holder::Hidden }))
}

/// What of the cluster itself is at which ports of the nodes' addresses: found once for all ports of a Service.
struct ClusterPorts<'a> {
    kubelets: BTreeSet<i64>,
    api_server: BTreeSet<i64>,
    /// With their protocols.
    name_server: BTreeSet<(i64, &'a str)>,
}

impl<'a> ClusterPorts<'a> {
    fn of(view: &'a View) -> Self {
        let kubelets = view.list::<Node>().map(|it| it.status.daemon_endpoints.kubelet_endpoint.port);
        let api = view.get::<EndpointSlice>(&Key::new("default", "kubernetes"));
        let api_server = api.into_iter().flat_map(|it| &it.ports).filter_map(|it| it.port);
        // Where it is a Pod, as somebody's own may be, no port of a node is its.
        let of_nodes: BTreeSet<&str> =
            view.list::<Node>().flat_map(|it| &it.status.addresses).map(|it| &*it.address).collect();
        let is_of_node =
            |it: &&EndpointSlice| it.endpoints.iter().flat_map(|it| &it.addresses).any(|it| of_nodes.contains(&**it));
        let slices = view
            .in_namespace::<EndpointSlice>("kube-system")
            .filter(|it| it.metadata.labels.get(SERVICE_NAME).is_some_and(|it| it == "kube-dns"));
        let name_server = slices.filter(is_of_node).flat_map(|it| &it.ports);
        let name_server = name_server.filter_map(|it| Some((it.port?, it.protocol.as_deref()?)));
        Self { kubelets: kubelets.collect(), api_server: api_server.collect(), name_server: name_server.collect() }
    }

    fn holder(&self, port: &Frontend, node_ports: &NodePorts) -> Option<&'static str> {
        let is_tcp = port.protocol == "TCP";
        if is_tcp && self.kubelets.contains(&port.port) {
            Some("the kubelet")
        } else if is_tcp && self.api_server.contains(&port.port) {
            Some("the API server")
        } else if self.name_server.contains(&(port.port, &port.protocol)) {
            Some("the cluster's name server")
        } else {
            let is_node_port = u16::try_from(port.port).is_ok_and(|it| node_ports.contains(it));
            is_node_port.then_some("the node ports of services")
        }
    }
}

/// With what is said of addresses from the pool, or without.
fn patch(service: &ReachableService, ingress: &[Ingress], condition: Option<Value>) -> Effect {
    let (resource, key, subresource) = (resources::SERVICES, service.metadata.key(), Some("status"));
    let ingress = if ingress.is_empty() { json!(null) } else { json!(ingress) };
    let mut patch =
        json!({ "metadata": { "uid": service.metadata.uid }, "status": { "loadBalancer": { "ingress": ingress } } });
    let gone = service.pool_addresses().map(|_| json!({ "type": POOL_ADDRESSES, "$patch": "delete" }));
    let Some(condition) = condition.or(gone) else { return Effect::Patch { resource, key, subresource, patch } };
    patch["status"]["conditions"] = json!([condition]);
    Effect::StrategicPatch { resource, key, subresource, patch }
}

fn event(service: &ReachableService, event_type: EventType, reason: &'static str, message: &str) -> Effect {
    Effect::Event { about: reference(service), event_type, reason, message: message.to_owned() }
}
