//! Nodes in, the ways to the Pods of other nodes out.
//!
//! ```text
//! vxlan:      Pod ─ bridge ─ vx ══ UDP 8472, from node to node ══ vx ─ bridge ─ Pod
//! wireguard:  Pod ─ bridge ─ wg ══ UDP 51820, encrypted ══ wg ─ bridge ─ Pod
//! routes:     Pod ─ bridge ─ the link that all nodes are on ─ bridge ─ Pod
//! ```
//! A Node says itself where it is and which ranges its Pods have. What it says must not take from others what is theirs: only
//! ranges of the cluster's Pods are led to it, and none that this node or one that is older has.

use core::net::IpAddr;
use std::collections::BTreeSet;

use corten_api::cluster_network::WIREGUARD_PUBLIC_KEY;
use corten_meta::{
    ObjectMeta, Time,
    address::{Cidr, is_reachable},
};
use corten_reconcile::{Actor, Wait};
use serde::Deserialize;

use crate::wireguard::{PublicKey, WireGuardPeer, WireGuardTunnel};

/// How packets get from node to node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodNetworkMode {
    /// In UDP: whatever network lies between the nodes.
    #[default]
    Vxlan,
    /// In UDP, encrypted: nobody between the nodes reads or forges what Pods send each other.
    WireGuard,
    /// As they are: the nodes are on one link, which takes packets with the addresses of Pods.
    Routes,
    /// As a CNI plug-in of another's leads them: no way is made here.
    Plugin,
}

impl PodNetworkMode {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "vxlan" => Some(Self::Vxlan),
            "wireguard" => Some(Self::WireGuard),
            "routes" => Some(Self::Routes),
            "cni" => Some(Self::Plugin),
            _ => None,
        }
    }
}

/// A Node, as far as its place in the network goes.
#[derive(Clone, Debug, Deserialize)]
pub struct PlacedNode {
    pub metadata: ObjectMeta,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    #[serde(rename = "podCIDRs")]
    pod_cidrs: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    addresses: Option<Vec<NodeAddress>>,
}

#[derive(Clone, Debug, Deserialize)]
struct NodeAddress {
    r#type: String,
    address: String,
}

impl PlacedNode {
    fn ranges(&self) -> impl Iterator<Item = Cidr> {
        self.spec.pod_cidrs.iter().flatten().filter_map(|it| Cidr::parse(it))
    }

    /// Where it is reached in the cluster.
    fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let internal = self.status.addresses.iter().flatten().filter(|it| it.r#type == "InternalIP");
        internal.filter_map(|it| it.address.parse().ok()).filter(|it| is_reachable(*it))
    }

    fn address(&self, of_family: bool) -> Option<IpAddr> {
        self.addresses().find(|it| it.is_ipv4() == of_family)
    }

    /// What it says that others encrypt by.
    fn wireguard_key(&self) -> Option<&str> {
        self.metadata.annotations.get(WIREGUARD_PUBLIC_KEY).map(String::as_str)
    }

    pub fn has(&self, address: IpAddr) -> bool {
        self.addresses().any(|it| it == address)
    }

    fn age(&self) -> (Option<Time>, &str) {
        (self.metadata.creation_timestamp, &self.metadata.name)
    }
}

/// This node, as far as its place in the network goes.
#[derive(Clone, Debug)]
pub struct LocalNode {
    pub node_name: String,
    pub addresses: Vec<IpAddr>,
    /// What this node's own Pods have.
    pub pod_cidrs: Vec<Cidr>,
    /// What all Pods have.
    pub cluster_cidrs: Vec<Cidr>,
    /// How long the prefix of a node's part of them is: of IPv4, of IPv6.
    pub node_bits: (u8, u8),
    pub mode: PodNetworkMode,
}

impl LocalNode {
    /// A machine that has switched a family off (`disable_ipv6`) has no way of it either, and no Pod that would ask for one.
    fn has_family(&self, range: &Cidr) -> bool {
        self.pod_cidrs.is_empty() || self.pod_cidrs.iter().any(|it| it.address.is_ipv4() == range.address.is_ipv4())
    }

    fn node_bits(&self, range: &Cidr) -> u8 {
        if range.address.is_ipv4() { self.node_bits.0 } else { self.node_bits.1 }
    }
}

/// One end of the tunnel: what Ethernet calls it follows from its node's first range, so that nobody need tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TunnelEnd {
    pub node: IpAddr,
    pub mac: [u8; 6],
}

/// The way to the Pods of one range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodRoute {
    pub range: Cidr,
    pub node: IpAddr,
    /// Through the tunnel, to this end.
    pub end: Option<TunnelEnd>,
}

/// All ways that are to be there, and no others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRoutes {
    /// This node's own end; `None`: no VXLAN is wanted.
    pub own: Option<TunnelEnd>,
    /// Where all go in WireGuard, also of a node that is alone.
    pub wireguard: Option<WireGuardTunnel>,
    pub routes: BTreeSet<PodRoute>,
    /// All addresses in the cluster of the nodes that are reached: what comes by the tunnel comes from one of these.
    pub nodes: BTreeSet<IpAddr>,
}

/// A way that the kernel does not take, while it takes the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedWay {
    /// Where it leads to; none where it is the end that is here.
    pub node: Option<IpAddr>,
    pub message: String,
}

/// What is wanted, and which nodes cannot be reached, and why.
pub fn pod_routes<'a>(local_node: &LocalNode, nodes: impl Iterator<Item = &'a PlacedNode>) -> (PodRoutes, Vec<Wait>) {
    let (itself, mut others): (Vec<&PlacedNode>, Vec<_>) =
        nodes.partition(|it| it.metadata.name == local_node.node_name);
    if local_node.mode == PodNetworkMode::Plugin {
        let nodes =
            others.iter().flat_map(|it| it.addresses()).filter(|it| !local_node.addresses.contains(it)).collect();
        return (PodRoutes { nodes, ..PodRoutes::default() }, Vec::new());
    }
    others.sort_by(|a, b| a.age().cmp(&b.age()));
    let tunnel_is_ipv4 = local_node.addresses.iter().any(IpAddr::is_ipv4);
    let own_address =
        local_node.addresses.iter().copied().find(|it| it.is_ipv4() == tunnel_is_ipv4 && is_reachable(*it));
    let own = own_address.zip(local_node.pod_cidrs.first()).map(|(node, range)| TunnelEnd { node, mac: mac(range) });
    let (mut wanted, mut waits, mut taken) = (PodRoutes::default(), Vec::new(), local_node.pod_cidrs.clone());
    let mut wireguard = WireGuardTunnel {
        node: own_address,
        cluster_cidrs: local_node.cluster_cidrs.clone(),
        ..WireGuardTunnel::default()
    };
    let own_key = itself.iter().find_map(|it| it.wireguard_key()).and_then(PublicKey::parse);
    for node in others {
        // The end of the tunnel follows from the first range: a node of which one is refused is believed in nothing.
        let refused: Vec<String> = node.ranges().filter_map(|it| refusal(local_node, &taken, &it)).collect();
        if !refused.is_empty() {
            let wait = |it| Wait::new("PodRangeRefused", it, Actor::Operator).on("Node", &node.metadata.name);
            waits.extend(refused.into_iter().map(wait));
            continue;
        }
        let end = node.address(tunnel_is_ipv4).zip(node.ranges().next());
        let end = end.map(|(address, range)| TunnelEnd { node: address, mac: mac(&range) });
        if local_node.mode == PodNetworkMode::WireGuard && node.ranges().next().is_some() {
            match peer_key(node, own_key, &wireguard) {
                Ok(key) => wireguard.peers.extend(peer(local_node, node).map(|it| (key, it))),
                Err(wait) => {
                    taken.extend(node.ranges());
                    waits.push(wait);
                    continue;
                }
            }
        }
        for range in node.ranges() {
            taken.push(range);
            if !local_node.has_family(&range) {
                continue;
            }
            let route = match local_node.mode {
                PodNetworkMode::Vxlan => end.map(|end| PodRoute { range, node: end.node, end: Some(end) }),
                PodNetworkMode::WireGuard => {
                    peer(local_node, node).map(|it| PodRoute { range, node: it.node, end: None })
                }
                PodNetworkMode::Routes | PodNetworkMode::Plugin => {
                    let address = node.address(range.address.is_ipv4());
                    address.map(|node| PodRoute { range, node, end: None })
                }
            };
            match route.filter(|it| !local_node.addresses.contains(&it.node)) {
                Some(route) => {
                    wanted.nodes.extend(node.addresses().filter(|it| !local_node.addresses.contains(it)));
                    wanted.routes.insert(route);
                }
                None => waits.push(unreachable(&node.metadata.name, &range)),
            }
        }
    }
    if local_node.mode == PodNetworkMode::Vxlan && !wanted.routes.is_empty() {
        wanted.own = own;
    }
    wanted.wireguard = (local_node.mode == PodNetworkMode::WireGuard).then_some(wireguard);
    (wanted, waits)
}

/// What a node's packets are known by, or why nothing is sent to it. A key is one node's: the oldest's that says so. Whoever said
/// another's would else be led what is that one's.
fn peer_key(node: &PlacedNode, own: Option<PublicKey>, tunnel: &WireGuardTunnel) -> Result<PublicKey, Wait> {
    let name = &node.metadata.name;
    let wait = |reason, message| Err(Wait::new(reason, message, Actor::Operator).on("Node", name));
    let Some(text) = node.wireguard_key() else {
        return wait(
            "WireGuardKeyMissing",
            format!(
                "node {name} has told no WireGuard key: it runs without `--pod-network wireguard`, or its machine's kernel has \
                 none; nothing is sent to its Pods"
            ),
        );
    };
    let Some(key) = PublicKey::parse(text) else {
        let message = format!("what node {name} tells as its WireGuard key is none: nothing is sent to its Pods");
        return wait("WireGuardKeyRefused", message);
    };
    if own == Some(key) || tunnel.peers.contains_key(&key) {
        let message =
            format!("node {name} tells the WireGuard key of this node or of an older one: nothing is sent to its Pods");
        return wait("WireGuardKeyRefused", message);
    }
    Ok(key)
}

/// A node's end of the tunnel: at its address of a family that this node has, too, and with its own Pods' ranges alone.
fn peer(local_node: &LocalNode, node: &PlacedNode) -> Option<WireGuardPeer> {
    let families = [true, false].into_iter().filter(|it| local_node.addresses.iter().any(|own| own.is_ipv4() == *it));
    let mut addresses = families.filter_map(|it| node.address(it)).filter(|it| !local_node.addresses.contains(it));
    Some(WireGuardPeer {
        node: addresses.next()?,
        ranges: node.ranges().filter(|it| local_node.has_family(it)).collect(),
    })
}

fn refusal(local_node: &LocalNode, taken: &[Cidr], range: &Cidr) -> Option<String> {
    let overlaps = |it: &&Cidr| it.meets(range);
    if !local_node.cluster_cidrs.iter().any(|it| it.contains(range.address) && it.bits <= range.bits) {
        return Some(format!("{range} is no range of this cluster's Pods: nothing is led there"));
    }
    // It would hold what others are given.
    if range.bits < local_node.node_bits(range) {
        return Some(format!(
            "{range} is larger than a node's part, a /{}: nothing is led there",
            local_node.node_bits(range)
        ));
    }
    let other = taken.iter().find(overlaps)?;
    Some(format!("{range} overlaps {other}, which this node or an older one has: nothing is led there"))
}

fn unreachable(node: &str, range: &Cidr) -> Wait {
    let message = format!("node {node} has said no address at which its Pods in {range} could be reached from here");
    Wait::new("PodsUnreachable", message, Actor::Cluster).on("Node", node)
}

/// Locally administered, and another one for each range.
fn mac(range: &Cidr) -> [u8; 6] {
    let [a, b, c, d] = match range.address {
        IpAddr::V4(it) => it.octets(),
        // The part that tells the nodes' ranges apart comes just before the 64 bits of a host.
        IpAddr::V6(it) => {
            (u32::try_from((it.to_bits() >> 64) & u128::from(u32::MAX)).unwrap_or_default()).to_be_bytes()
        }
    };
    [0x0e, 0x58, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, ranges: &[&str], addresses: &[&str]) -> PlacedNode {
        let addresses: Vec<_> = addresses.iter().map(|it| json!({ "type": "InternalIP", "address": it })).collect();
        let node = json!({
            "metadata": { "name": name, "creationTimestamp": "2026-11-26T10:00:00Z" },
            "spec": { "podCIDRs": ranges },
            "status": { "addresses": addresses },
        });
        serde_json::from_value(node).expect("a Node")
    }

    fn with_key(node: PlacedNode, key: &str) -> PlacedNode {
        let mut node = node;
        node.metadata.annotations.insert(WIREGUARD_PUBLIC_KEY.into(), key.into());
        node
    }

    fn told(mode: PodNetworkMode, nodes: &[PlacedNode]) -> Vec<String> {
        told_at("192.168.0.1", mode, nodes)
    }

    fn told_at(addresses: &str, mode: PodNetworkMode, nodes: &[PlacedNode]) -> Vec<String> {
        told_with(addresses, &["10.244.0.0/24", "fd00:10:244::/64"], mode, nodes)
    }

    fn told_with(addresses: &str, pod_cidrs: &[&str], mode: PodNetworkMode, nodes: &[PlacedNode]) -> Vec<String> {
        let cidrs = |texts: &[&str]| texts.iter().filter_map(|it| Cidr::parse(it)).collect::<Vec<_>>();
        let local_node = LocalNode {
            node_name: "one".into(),
            addresses: addresses.split(' ').map(|it| it.parse().expect("an address")).collect(),
            pod_cidrs: cidrs(pod_cidrs),
            cluster_cidrs: cidrs(&["10.244.0.0/16", "fd00:10:244::/56"]),
            node_bits: (24, 64),
            mode,
        };
        let (wanted, waits) = pod_routes(&local_node, nodes.iter());
        let hex = |mac: [u8; 6]| mac.map(|it| format!("{it:02x}")).join(":");
        let own = wanted.own.iter().map(|it| format!("own {} {}", it.node, hex(it.mac)));
        let routes = wanted.routes.iter().map(|it| match it.end {
            Some(end) => format!("{} tunnel {} {}", it.range, end.node, hex(end.mac)),
            None => format!("{} via {}", it.range, it.node),
        });
        let peers = wanted.wireguard.iter().flat_map(|it| &it.peers).map(|(key, it)| {
            let ranges: Vec<String> = it.ranges.iter().map(ToString::to_string).collect();
            format!("peer {} {} {}", &key.to_string()[..4], it.node, ranges.join(" "))
        });
        own.chain(peers).chain(routes).chain(waits.iter().map(|it| format!("{}: {}", it.reason, it.message))).collect()
    }

    #[test]
    fn a_node_alone_has_no_tunnel() {
        let own = node("one", &["10.244.0.0/24"], &["192.168.0.1"]);
        assert_eq!(told(PodNetworkMode::Vxlan, std::slice::from_ref(&own)), Vec::<String>::new());
        assert_eq!(told(PodNetworkMode::Routes, &[own]), Vec::<String>::new());
    }

    #[test]
    fn pods_of_others_are_reached_by_tunnel_or_by_link() {
        let two = node("two", &["10.244.1.0/24", "fd00:10:244:1::/64"], &["192.168.0.2"]);
        let expected = [
            "own 192.168.0.1 0e:58:0a:f4:00:00",
            "10.244.1.0/24 tunnel 192.168.0.2 0e:58:0a:f4:01:00",
            "fd00:10:244:1::/64 tunnel 192.168.0.2 0e:58:0a:f4:01:00",
        ];
        assert_eq!(told(PodNetworkMode::Vxlan, std::slice::from_ref(&two)), expected);
        let expected = [
            "10.244.1.0/24 via 192.168.0.2",
            "PodsUnreachable: node two has said no address at which its Pods in fd00:10:244:1::/64 could be reached from here",
        ];
        assert_eq!(told(PodNetworkMode::Routes, &[two]), expected);
    }

    #[test]
    fn a_machine_without_ipv6_has_ways_of_ipv4_alone() {
        let two = with_key(node("two", &["10.244.1.0/24", "fd00:10:244:1::/64"], &["192.168.0.2", "fd00:89::2"]), TWO);
        let one = with_key(node("one", &["10.244.0.0/24"], &["192.168.0.1"]), THREE);
        let nodes = [one, two];
        let told = |mode| told_with("192.168.0.1", &["10.244.0.0/24"], mode, &nodes);
        assert_eq!(
            told(PodNetworkMode::Vxlan),
            ["own 192.168.0.1 0e:58:0a:f4:00:00", "10.244.1.0/24 tunnel 192.168.0.2 0e:58:0a:f4:01:00"]
        );
        assert_eq!(told(PodNetworkMode::Routes), ["10.244.1.0/24 via 192.168.0.2"]);
        let by_wireguard = ["peer IiIi 192.168.0.2 10.244.1.0/24", "10.244.1.0/24 via 192.168.0.2"];
        assert_eq!(told(PodNetworkMode::WireGuard), by_wireguard);
    }

    #[test]
    fn a_node_takes_nothing_that_is_anothers() {
        let nodes = [
            node("two", &["10.244.1.0/24"], &["192.168.0.2"]),
            node("wide", &["0.0.0.0/0"], &["192.168.0.3"]),
            node("large", &["10.244.0.0/17"], &["192.168.0.7"]),
            node("own", &["10.244.0.128/25"], &["192.168.0.4"]),
            node("young", &["10.244.1.0/25"], &["192.168.0.5"]),
            node("here", &["10.244.6.0/24"], &["192.168.0.1"]),
            // What its end of the tunnel is called follows from the first, which is another's.
            node("zz", &["10.244.1.0/24", "fd00:10:244:9::/64"], &["192.168.0.66"]),
        ];
        let expected = [
            "10.244.1.0/24 via 192.168.0.2",
            "PodsUnreachable: node here has said no address at which its Pods in 10.244.6.0/24 could be reached from here",
            "PodRangeRefused: 10.244.0.0/17 is larger than a node's part, a /24: nothing is led there",
            "PodRangeRefused: 10.244.0.128/25 overlaps 10.244.0.0/24, which this node or an older one has: nothing is led there",
            "PodRangeRefused: 0.0.0.0/0 is no range of this cluster's Pods: nothing is led there",
            "PodRangeRefused: 10.244.1.0/25 overlaps 10.244.1.0/24, which this node or an older one has: nothing is led there",
            "PodRangeRefused: 10.244.1.0/24 overlaps 10.244.1.0/24, which this node or an older one has: nothing is led there",
        ];
        assert_eq!(told(PodNetworkMode::Routes, &nodes), expected);
    }

    const TWO: &str = "IiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiIiI=";
    const THREE: &str = "MzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzMzM=";

    #[test]
    fn wireguard_has_a_peer_for_each_node_with_the_ranges_of_its_pods() {
        let one = with_key(node("one", &["10.244.0.0/24"], &["192.168.0.1"]), THREE);
        let two = with_key(node("two", &["10.244.1.0/24", "fd00:10:244:1::/64"], &["192.168.0.2", "fd00:89::2"]), TWO);
        let routes = ["10.244.1.0/24 via 192.168.0.2", "fd00:10:244:1::/64 via 192.168.0.2"];
        let expected = [&["peer IiIi 192.168.0.2 10.244.1.0/24 fd00:10:244:1::/64"][..], &routes].concat();
        let nodes = [one, two];
        assert_eq!(told(PodNetworkMode::WireGuard, &nodes), expected);
        assert_eq!(told_at("fd00:89::1 192.168.0.1", PodNetworkMode::WireGuard, &nodes), expected);
        let over_ipv6 = told_at("fd00:89::1", PodNetworkMode::WireGuard, &nodes);
        assert_eq!(over_ipv6[0], "peer IiIi fd00:89::2 10.244.1.0/24 fd00:10:244:1::/64");
        assert_eq!(told(PodNetworkMode::WireGuard, &nodes[..1]), Vec::<String>::new());
    }

    #[test]
    fn no_node_has_anothers_key_or_goes_without_one() {
        let one = || with_key(node("one", &["10.244.0.0/24"], &["192.168.0.1"]), THREE);
        let two = || with_key(node("two", &["10.244.1.0/24"], &["192.168.0.2"]), TWO);
        let other = |key: &str| with_key(node("x", &["10.244.2.0/24"], &["192.168.0.3"]), key);
        let reached = ["peer IiIi 192.168.0.2 10.244.1.0/24", "10.244.1.0/24 via 192.168.0.2"];
        for (third, expected) in [
            (
                node("x", &["10.244.2.0/24"], &["192.168.0.3"]),
                "WireGuardKeyMissing: node x has told no WireGuard key: it ",
            ),
            (other("c2hvcnQ="), "WireGuardKeyRefused: what node x tells as its WireGuard key is none: "),
            (other(TWO), "WireGuardKeyRefused: node x tells the WireGuard key of this node or of an older one: "),
            (other(THREE), "WireGuardKeyRefused: node x tells the WireGuard key of this node or of an older one: "),
            (
                with_key(node("x", &["10.244.1.0/25"], &["192.168.0.3"]), "c2hvcnQ="),
                "PodRangeRefused: 10.244.1.0/25 overlaps",
            ),
        ] {
            let said = told(PodNetworkMode::WireGuard, &[one(), two(), third]);
            assert_eq!(said[..2], reached, "{expected}");
            assert!(said.len() == 3 && said[2].starts_with(expected), "{expected}: {said:?}");
        }
        // Of no family that this node has.
        let far =
            with_key(node("x", &["10.244.2.0/24"], &["fd00:89::3"]), "VVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVVU=");
        let said = told(PodNetworkMode::WireGuard, &[one(), two(), far]);
        assert!(said[..2] == reached && said[2].starts_with("PodsUnreachable: node x"), "{said:?}");
        // One that has not been given its range yet is waited for in silence.
        let early = node("x", &[], &["192.168.0.3"]);
        assert_eq!(told(PodNetworkMode::WireGuard, &[one(), two(), early]), reached);
    }
}
