//! What a cluster has of addresses, and the domain of its names: settled when it is made, and the same for all its machines.
//!
//! It is written as upstream's options are, under their names: on a command line, in a file of the data folder, and in the ConfigMap
//! that machines read which join. This is the one place with the defaults.

use core::{net::IpAddr, ops::RangeInclusive};
use std::{collections::BTreeMap, fmt};

use corten_meta::address::Cidr;

use crate::load_balancer::AddressPool;

pub const CLUSTER_CIDR: &str = "cluster-cidr";
pub const NODE_MASK_IPV4: &str = "node-cidr-mask-size-ipv4";
pub const NODE_MASK_IPV6: &str = "node-cidr-mask-size-ipv6";
pub const SERVICE_RANGE: &str = "service-cluster-ip-range";
pub const DOMAIN: &str = "cluster-domain";
/// Each of them, as options are listed.
pub const OPTIONS: [&str; 5] = [CLUSTER_CIDR, NODE_MASK_IPV4, NODE_MASK_IPV6, SERVICE_RANGE, DOMAIN];
/// Of each server, which may change: [`NodePorts`].
pub const NODE_PORT_RANGE: &str = "service-node-port-range";

/// Of each server, too: what load balancers' addresses are out of. Empty where there is no pool.
pub const LOAD_BALANCER_POOL: &str = "load-balancer-pool";

/// The ConfigMap that says it to the machines of a cluster.
pub const CONFIG_MAP: &str = "corten-cluster-network";
pub const CONFIG_MAP_NAMESPACE: &str = "kube-system";

/// The Service by which Pods ask for names: namespace and name.
pub const NAME_SERVER_SERVICE: (&str, &str) = ("kube-system", "kube-dns");
/// Who manages that Service's slice, where it leads to Corten's own name server.
pub const NAME_SERVER_MANAGER: &str = "dns.corten.dev";

/// The Node's annotation with its public key, where Pods' packets go from node to node in WireGuard. The kubelet writes it, and the
/// kernel of every other node goes by it.
pub const WIREGUARD_PUBLIC_KEY: &str = "corten.dev/wireguard-public-key";

/// Of Pods: of the IPv6 addresses that are nobody's on the internet, as 10.0.0.0/8 is.
const CLUSTER_CIDRS: &str = "10.244.0.0/16,fd00:10:244::/56";
/// Where upstream's own clusters and the tools that make them have Services, apart from the networks of Pods.
const SERVICE_RANGES: &str = "10.96.0.0/12,fd00:10:96::/112";
const CLUSTER_DOMAIN: &str = "cluster.local";
const NODE_PORTS: RangeInclusive<u16> = 30_000..=32_767;

/// As upstream: a Service's address is looked for in a bitmap of this many bits at most.
const SERVICE_BITS_MAX: u8 = 20;
/// The name server has the tenth address.
const SERVICE_BITS_MIN: u8 = 4;
/// As upstream's `CIDRSet`: so many bits of an address tell nodes apart.
const NODE_BITS_MAX: u8 = 16;
/// A node's part has room for the bridge's address and Pods.
const POD_BITS_MIN: u8 = 2;
const DOMAIN_MAX: usize = 190;
const LABEL_MAX: usize = 63;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterNetwork {
    /// The ranges that all Pods have their addresses from, each node a part of each: the primary family first.
    pub cluster_cidrs: Vec<Cidr>,
    pub node_mask_ipv4: u8,
    pub node_mask_ipv6: u8,
    /// The ranges of Services: the primary family first.
    pub service_cidrs: Vec<Cidr>,
    pub domain: String,
}

impl Default for ClusterNetwork {
    fn default() -> Self {
        Self {
            cluster_cidrs: ranges(CLUSTER_CIDRS),
            node_mask_ipv4: 24,
            node_mask_ipv6: 64,
            service_cidrs: ranges(SERVICE_RANGES),
            domain: CLUSTER_DOMAIN.to_owned(),
        }
    }
}

/// Those that are none are left out.
fn ranges(text: &str) -> Vec<Cidr> {
    text.split(',').filter_map(Cidr::parse).collect()
}

fn text(ranges: &[Cidr]) -> String {
    ranges.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

impl ClusterNetwork {
    pub fn is_ipv6_only(&self) -> bool {
        self.cluster_cidrs.iter().all(|it| it.address.is_ipv6())
    }

    /// The settings that are given by name; others are the defaults.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn of(given: &BTreeMap<String, String>) -> Result<Self, Vec<String>> {
        let mut network = Self::default();
        let mut errors = Vec::new();
        let mut list = |name: &str, into: &mut Vec<Cidr>| {
            if let Some(text) = given.get(name) {
                match parsed(name, text) {
                    Ok(ranges) => *into = ranges,
                    Err(error) => errors.push(error),
                }
            }
        };
        list(CLUSTER_CIDR, &mut network.cluster_cidrs);
        list(SERVICE_RANGE, &mut network.service_cidrs);
        for (name, into) in
            [(NODE_MASK_IPV4, &mut network.node_mask_ipv4), (NODE_MASK_IPV6, &mut network.node_mask_ipv6)]
        {
            match given.get(name).map(|it| it.parse()) {
                None => {}
                Some(Ok(bits)) => *into = bits,
                Some(Err(_)) => {
                    errors.push(format!("--{name} must be the length of a prefix, and not {}", given[name]))
                }
            }
        }
        if let Some(domain) = given.get(DOMAIN) {
            network.domain = domain.trim_end_matches('.').to_ascii_lowercase();
        }
        errors.extend(network.wrong());
        if errors.is_empty() { Ok(network) } else { Err(errors) }
    }

    /// As [`Self::of`] reads them.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let values = [
            text(&self.cluster_cidrs),
            self.node_mask_ipv4.to_string(),
            self.node_mask_ipv6.to_string(),
            text(&self.service_cidrs),
            self.domain.clone(),
        ];
        OPTIONS.map(str::to_owned).into_iter().zip(values).collect()
    }

    /// What the ConfigMap holds: beside these settings what each server may be told anew.
    pub fn record(
        &self,
        node_ports: &NodePorts,
        pool: &AddressPool,
        name_servers: &BTreeMap<String, String>,
    ) -> BTreeMap<String, String> {
        let of_server = [(NODE_PORT_RANGE, node_ports.to_string()), (LOAD_BALANCER_POOL, pool.to_string())];
        let of_server = of_server.map(|(name, text)| (name.to_owned(), text));
        self.settings().into_iter().chain(name_servers.clone()).chain(of_server).collect()
    }

    /// The options that were given and say something else than this, with what this has.
    pub fn differing(&self, given: &BTreeMap<String, String>) -> Vec<(String, String)> {
        let own = self.settings();
        let other = Self::of(&own.clone().into_iter().chain(given.clone()).collect()).map(|it| it.settings());
        let said = other.unwrap_or_else(|_| given.clone());
        let differs = |it: &(String, String)| said.get(&it.0).is_some_and(|said| *said != it.1);
        own.into_iter().filter(|it| given.contains_key(&it.0)).filter(differs).collect()
    }

    /// How long the prefix of a node's part is.
    pub fn node_bits(&self, is_ipv4: bool) -> u8 {
        if is_ipv4 { self.node_mask_ipv4 } else { self.node_mask_ipv6 }
    }

    /// The part of the cluster's first machine: the first of each range.
    pub fn first_parts(&self) -> Vec<Cidr> {
        let part = |it: &Cidr| Cidr::new(it.address, self.node_bits(it.address.is_ipv4()));
        self.cluster_cidrs.iter().map(part).collect()
    }

    /// The range of all Pods of which `part` is a node's.
    pub fn range_around(&self, part: &Cidr) -> Option<&Cidr> {
        self.cluster_cidrs.iter().find(|it| it.contains(part.address))
    }

    /// Where Pods ask for names: the tenth address of Services, as in clusters that kubeadm makes.
    pub fn cluster_dns(&self) -> Option<IpAddr> {
        self.service_cidrs.first().map(|it| nth(it, 10))
    }

    /// The first address of Services, by which Pods find the API.
    pub fn api_address(&self) -> Option<IpAddr> {
        self.service_cidrs.first().map(|it| nth(it, 1))
    }

    /// Has nobody said where Services are?
    pub fn has_default_services(&self) -> bool {
        text(&self.service_cidrs) == SERVICE_RANGES
    }

    /// The default's second family comes with the addresses of Pods; what somebody asked for is there in any case.
    pub fn services_where(&self, has_ipv6: bool) -> Vec<Cidr> {
        let is_left = |it: &&Cidr| has_ipv6 || it.address.is_ipv4() || !self.has_default_services();
        self.service_cidrs.iter().filter(is_left).copied().collect()
    }

    fn wrong(&self) -> Vec<String> {
        let mut errors = Vec::new();
        for it in &self.service_cidrs {
            let (bits, free) = (width(it), width(it) - it.bits);
            if free > SERVICE_BITS_MAX {
                let least = bits - SERVICE_BITS_MAX;
                errors.push(format!(
                    "specified --{SERVICE_RANGE} is too large; for {bits}-bit addresses, the mask must be >= {least}"
                ));
            } else if free < SERVICE_BITS_MIN {
                errors.push(format!("specified --{SERVICE_RANGE} is too small: {it} has no room for the name server's address, which is the tenth"));
            }
        }
        for it in &self.cluster_cidrs {
            let is_ipv4 = it.address.is_ipv4();
            let (bits, option) = (self.node_bits(is_ipv4), if is_ipv4 { NODE_MASK_IPV4 } else { NODE_MASK_IPV6 });
            if bits < it.bits {
                errors.push(format!("the size of pod subnet with mask {} is smaller than the size of node subnet with mask {bits} (--{option})", it.bits));
            } else if bits - it.bits > NODE_BITS_MAX {
                errors.push(format!("pod subnet mask ({}) and node-mask ({bits}, --{option}) difference is greater than {NODE_BITS_MAX}", it.bits));
            }
            if bits > width(it) - POD_BITS_MIN {
                errors.push(format!("--{option} of {bits} leaves no addresses for Pods"));
            }
        }
        errors.extend(self.overlaps());
        let families = |ranges: &[Cidr]| ranges.iter().map(|it| it.address.is_ipv4()).collect::<Vec<_>>();
        let (pods, services) = (families(&self.cluster_cidrs), families(&self.service_cidrs));
        if errors.is_empty() && pods.first() != services.first() {
            errors.push(format!("--{CLUSTER_CIDR} and --{SERVICE_RANGE} must begin with the same IP family"));
        } else if errors.is_empty() && pods.len() < services.len() {
            errors.push(format!(
                "--{SERVICE_RANGE} has an IP family that --{CLUSTER_CIDR} has not: give --{SERVICE_RANGE} {} too",
                text(&self.service_cidrs[..pods.len()])
            ));
        }
        if !is_domain(&self.domain) {
            errors.push(format!(
                "--{DOMAIN} must be a domain in small letters, as cluster.local, and not {:?}",
                self.domain
            ));
        }
        errors
    }

    fn overlaps(&self) -> impl Iterator<Item = String> {
        let pairs = self.cluster_cidrs.iter().flat_map(|pods| self.service_cidrs.iter().map(move |it| (pods, it)));
        pairs.filter(|it| it.0.meets(it.1)).map(|(pods, services)| {
            format!("--{CLUSTER_CIDR} {pods} and --{SERVICE_RANGE} {services} overlap: an address would be a Pod's and a Service's")
        })
    }
}

/// Ranges that no Pod and no Service has (IANA's registries of special-purpose addresses, RFC 6890).
const NOT_ROUTED: [(&str, &str); 7] = [
    ("0.0.0.0/8", "unspecified"),
    ("127.0.0.0/8", "loopback"),
    ("169.254.0.0/16", "link-local"),
    ("224.0.0.0/4", "multicast"),
    ("::/127", "unspecified and loopback"),
    ("fe80::/10", "link-local"),
    ("ff00::/8", "multicast"),
];

fn parsed(name: &str, text: &str) -> Result<Vec<Cidr>, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).filter(|it| !it.is_empty()).collect();
    if parts.is_empty() {
        return Err(format!("--{name} must contain at least one valid cidr"));
    }
    if parts.len() > 2 {
        return Err(format!("--{name} must not contain more than two entries"));
    }
    let read = |it: &&str| {
        let range = Cidr::parse(it).ok_or_else(|| format!("--{name}: invalid CIDR address: {it}"))?;
        let is_whole = it.split_once('/').is_some_and(|it| it.0.parse() == Ok(range.address));
        if !is_whole {
            return Err(format!("--{name}: {it} is an address within {range}: the range is meant"));
        }
        match NOT_ROUTED.iter().find(|it| Cidr::parse(it.0).is_some_and(|it| it.meets(&range))) {
            Some((_, what)) => Err(format!("--{name}: {it} holds {what} addresses, which lead to no other machine")),
            None => Ok(range),
        }
    };
    let ranges = parts.iter().map(read).collect::<Result<Vec<Cidr>, String>>()?;
    if let [first, second] = *ranges
        && first.address.is_ipv4() == second.address.is_ipv4()
    {
        return Err(format!("--{name}[0] and --{name}[1] must be of different IP family"));
    }
    Ok(ranges)
}

fn width(range: &Cidr) -> u8 {
    if range.address.is_ipv4() { 32 } else { 128 }
}

fn nth(range: &Cidr, n: u8) -> IpAddr {
    match range.address {
        IpAddr::V4(it) => IpAddr::V4((it.to_bits() | u32::from(n)).into()),
        IpAddr::V6(it) => IpAddr::V6((it.to_bits() | u128::from(n)).into()),
    }
}

/// RFC 1123, and short enough for the names of Services in it.
pub fn is_domain(text: &str) -> bool {
    let is_inner = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit();
    let is_label = |it: &str| {
        let bytes = it.as_bytes();
        let ends = bytes.first().copied().zip(bytes.last().copied()).is_some_and(|it| is_inner(it.0) && is_inner(it.1));
        ends && it.len() <= LABEL_MAX && bytes.iter().all(|it| is_inner(*it) || *it == b'-')
    };
    text.len() <= DOMAIN_MAX && text.split('.').all(is_label)
}

/// The ports of nodes that Services are given. Each server may be told others at its next start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePorts(pub RangeInclusive<u16>);

impl Default for NodePorts {
    fn default() -> Self {
        Self(NODE_PORTS)
    }
}

impl fmt::Display for NodePorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0.start(), self.0.end())
    }
}

impl NodePorts {
    /// `first-last`, or `first+more`, or one port, as upstream's `PortRange`.
    pub fn parse(text: &str) -> Option<Self> {
        let (first, last) = match (text.split_once('-'), text.split_once('+')) {
            (Some((first, last)), _) => (first.trim().parse().ok()?, last.trim().parse().ok()?),
            (None, Some((first, more))) => {
                let first: u16 = first.trim().parse().ok()?;
                (first, first.checked_add(more.trim().parse().ok()?)?)
            }
            (None, None) => (text.trim().parse().ok()?, text.trim().parse().ok()?),
        };
        (first > 0 && first <= last).then_some(Self(first..=last))
    }

    pub fn contains(&self, port: u16) -> bool {
        self.0.contains(&port)
    }
}

#[cfg(test)]
mod tests;
