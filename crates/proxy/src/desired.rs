//! What one Service wants of the packets: its chains, and its places in the maps.
//!
//! ```text
//! ClusterIP ───────────────────────────→ svc (all endpoints) or loc (this node's)
//! NodePort, external address ─→ ext ─┬─→ svc, marked to be masqueraded
//! balancer's address ─→ lb ─→ ext    └─→ loc; Pods and the node itself go on to svc
//! ```

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use corten_meta::address::Cidr;
use corten_reconcile::{Actor, Wait};

use crate::{
    Config,
    base_chains::REFUSE,
    endpoints::{ByPort, Chosen, choose},
    projections::{EndpointSlice, Service, ServicePort},
    reserved::{PoolOwners, of_another, refusal},
    rules::{Backend, Element, ElementKey, Family, Map, Protocol, Rule, Side, Term, Value},
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Desired {
    pub(crate) chains: BTreeMap<String, Body>,
    pub(crate) elements: BTreeMap<Element, Value>,
    /// What connections of protocols without an end are bound to.
    pub(crate) bound: BTreeMap<Frontend, BTreeSet<Backend>>,
    /// Where a load balancer asks how many endpoints this node has, and the answer.
    pub(crate) health: Option<(u16, usize)>,
    pub(crate) says: Vec<String>,
    pub(crate) waits: Vec<Wait>,
}

/// What a chain holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Fixed(Vec<Rule>),
    Spread(Spread),
}

/// Connections are spread over these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Spread {
    pub(crate) family: Family,
    pub(crate) protocol: Protocol,
    pub(crate) backends: BTreeSet<Backend>,
    /// Clients stay with their endpoint this long.
    pub(crate) seconds: Option<u32>,
    /// `namespace/name/protocol/port`
    pub(crate) path: String,
}

/// A place in front of a Service; without an address any of the node's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frontend {
    pub family: Family,
    pub address: Option<IpAddr>,
    pub protocol: Protocol,
    pub port: u16,
}

/// What is known apart from the Service itself.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) config: &'a Config,
    pub(crate) zone: &'a str,
    /// Of Services' addresses, by the names of their objects.
    pub(crate) ranges: &'a BTreeMap<String, Vec<Cidr>>,
    pub(crate) pool: &'a PoolOwners,
}

pub(crate) fn desired<'a>(service: &'a Service, slices: &[&'a EndpointSlice], around: &Around<'_>) -> Desired {
    let Around { config, zone, .. } = *around;
    let mut desired = Desired::default();
    if !service.is_proxied() {
        return desired;
    }
    let slices = ByPort::of(slices);
    if let Some(wait) = too_much(service, &slices) {
        desired.waits.push(wait);
        return desired;
    }
    for address in service.pool_addresses().into_iter().filter(|it| !config.addresses.contains(it)) {
        let element = Element { map: Map::PoolIps(Family::of(address)), key: ElementKey::Address(address) };
        desired.elements.insert(element, Value::Nothing);
    }
    let mut here = BTreeSet::new();
    for cluster_ip in service.addresses() {
        let family = Family::of(cluster_ip);
        desired
            .elements
            .insert(Element { map: Map::ClusterIps(family), key: ElementKey::Address(cluster_ip) }, Value::Nothing);
        for port in service.spec.ports.iter().filter(|it| it.port != 0) {
            let Some(protocol) = Protocol::parse(&port.protocol) else { continue };
            let chosen = choose(&slices, (&port.name, protocol), family, config, zone);
            let meta = &service.metadata;
            let path = format!("{}/{}/{}/{}", meta.namespace, meta.name, protocol.word(), port.port);
            here.extend(chosen.local.iter().map(|it| it.address));
            let Around { ranges, pool, .. } = *around;
            PortRoute { service, config, ranges, pool, cluster_ip, family, protocol, port, chosen, path }
                .add_to(&mut desired);
        }
    }
    let spec = &service.spec;
    if spec.health_check_node_port != 0 && spec.external_traffic_policy == "Local" {
        desired.health = Some((spec.health_check_node_port, here.len()));
    }
    desired
}

/// So many places one Service may have in the maps, and so many rules in its chains: each of its ports is at each of its
/// addresses, and lets in each of its ranges.
const FRONTS_MAX: usize = 20_000;
/// So many endpoints all of its ports may choose from.
const ENDPOINTS_MAX: usize = 200_000;

/// Nothing is laid for a Service whose lists, multiplied, come to more than a node can hold.
fn too_much<'a>(service: &'a Service, slices: &ByPort<'a>) -> Option<Wait> {
    let spec = &service.spec;
    let n_addresses = service.addresses().len() + spec.external_ips.len() + service.status.load_balancer.ingress.len();
    let n_each = 1 + n_addresses + spec.load_balancer_source_ranges.len();
    let n_fronts = spec.ports.len().saturating_mul(n_each);
    let of_port = |it: &'a ServicePort| Some(slices.n_endpoints((&it.name, Protocol::parse(&it.protocol)?)));
    let n_endpoints = spec.ports.iter().filter_map(of_port).fold(0, usize::saturating_add);
    let message = if n_fronts > FRONTS_MAX {
        format!(
            "its ports at all of its addresses, for all of its source ranges, are {n_fronts} rules: at most {FRONTS_MAX}"
        )
    } else if n_endpoints > ENDPOINTS_MAX {
        format!("its ports have {n_endpoints} endpoints, each counted for each port: at most {ENDPOINTS_MAX}")
    } else {
        return None;
    };
    Some(Wait::new("TooManyRules", message, Actor::Author))
}

/// From the fronts of one port, in one family, to its endpoints.
struct PortRoute<'a> {
    service: &'a Service,
    config: &'a Config,
    ranges: &'a BTreeMap<String, Vec<Cidr>>,
    pool: &'a PoolOwners,
    cluster_ip: IpAddr,
    family: Family,
    protocol: Protocol,
    port: &'a ServicePort,
    chosen: Chosen,
    path: String,
}

impl PortRoute<'_> {
    fn add_to(self, desired: &mut Desired) {
        self.say(desired);
        self.internal(desired);
        self.external(desired);
        let hairpins = self.chosen.here.iter().map(|it| (Map::Hairpins(self.family), ElementKey::Address(*it)));
        desired.elements.extend(hairpins.map(|(map, key)| (Element { map, key }, Value::Nothing)));
    }

    fn say(&self, desired: &mut Desired) {
        let (port, protocol) = (self.port.port, self.protocol.word().to_uppercase());
        let front = match self.cluster_ip {
            IpAddr::V4(it) => format!("{it}:{port}/{protocol}"),
            IpAddr::V6(it) => format!("[{it}]:{port}/{protocol}"),
        };
        let n = self.chosen.cluster.len();
        if n == 0 {
            let message = format!("connections to {front} are refused: it has no endpoint that is ready");
            desired.waits.push(Wait::new("NoEndpoints", message, Actor::Cluster));
            return;
        }
        desired.says.push(format!("forward {front} to {n} endpoint{}", if n == 1 { "" } else { "s" }));
        let spec = &self.service.spec;
        let policies = [("internal", &spec.internal_traffic_policy), ("external", &spec.external_traffic_policy)];
        for (which, _) in policies.into_iter().filter(|it| it.1 == "Local" && self.chosen.local.is_empty()) {
            let message = format!(
                "{which} connections to {front} are dropped: {which}TrafficPolicy is Local and no endpoint is on node {}",
                self.config.node_name
            );
            desired.waits.push(Wait::new("NoLocalEndpoints", message, Actor::Author));
        }
    }

    fn internal(&self, desired: &mut Desired) {
        let front = self.front(self.cluster_ip);
        let is_local = self.service.spec.internal_traffic_policy == "Local";
        let (word, usable) = if is_local { ("loc", &self.chosen.local) } else { ("svc", &self.chosen.cluster) };
        if usable.is_empty() {
            let verdict = if self.chosen.cluster.is_empty() { refuse() } else { Value::Drop };
            desired.elements.insert(Element { map: Map::Refused(self.family), key: front }, verdict);
            return;
        }
        let chain = self.spread(word, usable, desired);
        desired.elements.insert(Element { map: Map::Services(self.family), key: front }, Value::Goto(chain));
        self.bind(desired, Some(self.cluster_ip), self.port.port, usable);
    }

    fn external(&self, desired: &mut Desired) {
        let spec = &self.service.spec;
        let has_balancer = spec.r#type == "LoadBalancer";
        let balancers = if has_balancer { self.free(self.service.balancer_addresses(), desired) } else { Vec::new() };
        let externals = self.free(self.not_of_others(desired), desired);
        let is_open = has_balancer || spec.r#type == "NodePort";
        let node_port = Some(self.port.node_port).filter(|it| is_open && *it != 0);
        if balancers.is_empty() && externals.is_empty() && node_port.is_none() {
            return;
        }
        let is_local = spec.external_traffic_policy == "Local";
        let ext = (!self.chosen.cluster.is_empty()).then(|| self.ext(is_local, desired));
        let guarded = ext.as_ref().map(|it| self.guarded(it, &balancers, desired));
        // What is dropped behind the shortcuts of Pods and of the node itself.
        let refused = match &ext {
            None => Some(refuse()),
            Some(_) => (is_local && self.chosen.local.is_empty()).then_some(Value::Drop),
        };
        let usable = if is_local { &self.chosen.local } else { &self.chosen.cluster };
        let fronts = balancers.iter().map(|it| (it, &guarded)).chain(externals.iter().map(|it| (it, &ext)));
        for (address, chain) in fronts {
            let key = self.front(*address);
            let goto = chain.clone().map(Value::Goto);
            desired.elements.extend(goto.map(|it| (Element { map: Map::Services(self.family), key }, it)));
            desired.elements.extend(refused.clone().map(|it| (Element { map: Map::Refused(self.family), key }, it)));
            self.bind(desired, Some(*address), self.port.port, usable);
        }
        if let Some(port) = node_port {
            let key = ElementKey::Port { protocol: self.protocol, port };
            let goto = ext.map(Value::Goto);
            desired.elements.extend(goto.map(|it| (Element { map: Map::NodePorts(self.family), key }, it)));
            desired.elements.extend(refused.map(|it| (Element { map: Map::RefusedPorts(self.family), key }, it)));
            self.bind(desired, None, port, usable);
        }
    }

    /// The external addresses, but for those that another namespace's Service has from the pool: of those it is said.
    fn not_of_others(&self, desired: &mut Desired) -> Vec<IpAddr> {
        let mut addresses = self.service.external_addresses();
        let namespace = &self.service.metadata.namespace;
        for address in addresses.extract_if(.., |it| self.pool.is_of_another(*it, namespace)) {
            if Family::of(address) == self.family {
                desired.waits.push(of_another(address, self.protocol, self.port.port));
            }
        }
        addresses
    }

    /// Those of this family that may be led here; of the others it is said why.
    fn free(&self, addresses: Vec<IpAddr>, desired: &mut Desired) -> Vec<IpAddr> {
        let mut free = Vec::new();
        for address in addresses.into_iter().filter(|it| Family::of(*it) == self.family) {
            match refusal(self.config, self.ranges, address, self.protocol, self.port.port) {
                None => free.push(address),
                Some(wait) => desired.waits.push(wait),
            }
        }
        free
    }

    /// What comes from outside the cluster's own addresses.
    fn ext(&self, is_local: bool, desired: &mut Desired) -> String {
        let svc = self.spread("svc", &self.chosen.cluster, desired);
        let goto = |it: &str| Term::Goto(it.to_owned());
        let mut rules: Vec<Rule> = Vec::new();
        if is_local {
            // As in kube-proxy: within the cluster an external address is as good as the Service's own.
            let pods = self.config.pod_cidrs.iter().filter(|it| Family::of(it.address) == self.family);
            rules.extend(pods.map(|it| vec![Term::Within(Side::Source, *it), goto(&svc)]));
            rules.push(vec![Term::Local(Side::Source, self.family), Term::Mark, goto(&svc)]);
            if !self.chosen.local.is_empty() {
                let loc = self.spread("loc", &self.chosen.local, desired);
                rules.push(vec![goto(&loc)]);
            }
        } else {
            rules.push(vec![Term::Mark, goto(&svc)]);
        }
        self.chain("ext", rules, desired)
    }

    /// The chain that lets in only whom `loadBalancerSourceRanges` names; where it names nobody, the chain behind it.
    fn guarded(&self, ext: &str, balancers: &[IpAddr], desired: &mut Desired) -> String {
        let ranges = self.service.spec.load_balancer_source_ranges.iter().filter_map(|it| Cidr::parse(it));
        let mut ranges: BTreeSet<Cidr> = ranges.filter(|it| Family::of(it.address) == self.family).collect();
        if ranges.is_empty() {
            return ext.to_owned();
        }
        // As in kube-proxy: where the balancer's address is the node's own, its own requests come from there.
        let is_in = |address: &IpAddr| ranges.iter().any(|it| it.contains(*address));
        if self.config.addresses.iter().any(is_in) {
            let bits = if self.family == Family::V4 { 32 } else { 128 };
            ranges.extend(balancers.iter().map(|it| Cidr { address: *it, bits }));
        }
        let mut rules: Vec<Rule> =
            ranges.into_iter().map(|it| vec![Term::Within(Side::Source, it), Term::Goto(ext.to_owned())]).collect();
        rules.push(vec![Term::Drop]);
        self.chain("lb", rules, desired)
    }

    fn chain(&self, word: &str, rules: Vec<Rule>, desired: &mut Desired) -> String {
        let name = format!("{word}{}/{}", self.family.digit(), self.path);
        desired.chains.insert(name.clone(), Body::Fixed(rules));
        name
    }

    fn spread(&self, word: &str, backends: &BTreeSet<Backend>, desired: &mut Desired) -> String {
        let name = format!("{word}{}/{}", self.family.digit(), self.path);
        let spread = Spread {
            family: self.family,
            protocol: self.protocol,
            backends: backends.clone(),
            seconds: self.service.affinity_seconds(),
            path: self.path.clone(),
        };
        desired.chains.insert(name.clone(), Body::Spread(spread));
        name
    }

    fn front(&self, address: IpAddr) -> ElementKey {
        ElementKey::Frontend { address, protocol: self.protocol, port: self.port.port }
    }

    /// A flow without an end of its own, as of UDP, must be told that its endpoint went.
    fn bind(&self, desired: &mut Desired, address: Option<IpAddr>, port: u16, backends: &BTreeSet<Backend>) {
        if self.protocol == Protocol::Udp {
            let front = Frontend { family: self.family, address, protocol: self.protocol, port };
            desired.bound.entry(front).or_default().extend(backends);
        }
    }
}

fn refuse() -> Value {
    Value::Goto(REFUSE.to_owned())
}
