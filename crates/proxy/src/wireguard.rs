//! The peers of this node's WireGuard device: those that are wanted and those that the kernel has in, what differs out.
//!
//! A peer is its public key. The kernel takes a packet out of the tunnel only where its source is in a range of the peer whose key
//! it was encrypted with, and sends a packet only to the peer whose range holds its destination.

use core::{fmt, net::IpAddr, net::SocketAddr};
use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine, engine::general_purpose::STANDARD};
use corten_meta::address::Cidr;

/// The port of UDP that every node listens at: the one that WireGuard's own tools are shown with.
pub const WIREGUARD_PORT: u16 = 51820;

/// What others encrypt by; as text it is what `wg` shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    /// Only the one way to write it: two texts are never the same key.
    pub fn parse(text: &str) -> Option<Self> {
        STANDARD.decode(text).ok()?.try_into().ok().map(Self)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Another node's end of the tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireGuardPeer {
    /// Where it listens.
    pub node: IpAddr,
    /// Those of its Pods, and nothing else.
    pub ranges: BTreeSet<Cidr>,
}

/// What this node's device is to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WireGuardTunnel {
    /// This node's own address, by whose link packets leave.
    pub node: Option<IpAddr>,
    pub peers: BTreeMap<PublicKey, WireGuardPeer>,
    /// Those of all Pods: what is from there or goes there passes between machines in the tunnel, or not at all.
    pub cluster_cidrs: Vec<Cidr>,
}

impl WireGuardTunnel {
    /// What a packet grows by: WireGuard's own 32 bytes, UDP, and the outer header.
    pub fn overhead(&self) -> u32 {
        let is_ipv4 = self.node.iter().chain(self.peers.values().map(|it| &it.node)).all(IpAddr::is_ipv4);
        if is_ipv4 { 60 } else { 80 }
    }
}

/// A peer, as the kernel has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PresentPeer {
    /// Where the last packet came from that was encrypted with its key; until one came, what was told.
    pub endpoint: Option<SocketAddr>,
    pub ranges: BTreeSet<Cidr>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerChange {
    Remove(PublicKey),
    /// What is `None` stays as it is.
    Set {
        key: PublicKey,
        endpoint: Option<SocketAddr>,
        ranges: Option<BTreeSet<Cidr>>,
    },
}

/// What makes the kernel's peers those that are wanted. `told` is where the kernel was told before that each is: a peer that has
/// since been heard from elsewhere, behind a router that translates addresses, is left there.
pub fn peer_changes(
    wanted: &BTreeMap<PublicKey, WireGuardPeer>,
    told: &BTreeMap<PublicKey, IpAddr>,
    present: &BTreeMap<PublicKey, PresentPeer>,
) -> Vec<PeerChange> {
    // First those that go: a node with another key has the same ranges.
    let gone = present.keys().filter(|it| !wanted.contains_key(it)).map(|it| PeerChange::Remove(*it));
    let set = wanted.iter().filter_map(|(key, WireGuardPeer { node, ranges })| {
        let there = present.get(key);
        let endpoint = SocketAddr::new(*node, WIREGUARD_PORT);
        let is_reached =
            there.and_then(|it| it.endpoint).is_some_and(|it| it == endpoint || told.get(key) == Some(node));
        let endpoint = (!is_reached).then_some(endpoint);
        let ranges = there.is_none_or(|it| it.ranges != *ranges).then(|| ranges.clone());
        let is_same = endpoint.is_none() && ranges.is_none();
        (!is_same).then_some(PeerChange::Set { key: *key, endpoint, ranges })
    });
    gone.chain(set).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(first: u8) -> PublicKey {
        let mut bytes = [0; 32];
        bytes[0] = first;
        PublicKey(bytes)
    }

    fn ranges(text: &str) -> BTreeSet<Cidr> {
        text.split(' ').filter_map(Cidr::parse).collect()
    }

    /// `1 192.0.2.1 10.244.1.0/24`: key, address, ranges.
    fn wanted(lines: &[&str]) -> BTreeMap<PublicKey, WireGuardPeer> {
        let peer = |line: &&str| {
            let [number, node, rest] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("three words") };
            let node = node.parse().expect("an address");
            (key(number.parse().expect("a number")), WireGuardPeer { node, ranges: ranges(rest) })
        };
        lines.iter().map(peer).collect()
    }

    /// `1 192.0.2.1:51820 10.244.1.0/24`; `-` is no endpoint.
    fn present(lines: &[&str]) -> BTreeMap<PublicKey, PresentPeer> {
        let peer = |line: &&str| {
            let [number, endpoint, rest] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else { panic!("three words") };
            let peer = PresentPeer { endpoint: endpoint.parse().ok(), ranges: ranges(rest) };
            (key(number.parse().expect("a number")), peer)
        };
        lines.iter().map(peer).collect()
    }

    fn said(change: &PeerChange) -> String {
        match change {
            PeerChange::Remove(key) => format!("{} goes", key.0[0]),
            PeerChange::Set { key, endpoint, ranges } => {
                let endpoint = endpoint.map(|it| format!(" at {it}")).unwrap_or_default();
                let ranges = ranges.iter().flatten().map(|it| format!(" {it}")).collect::<String>();
                format!("{}{endpoint}{ranges}", key.0[0])
            }
        }
    }

    #[test]
    fn only_what_differs_is_told() {
        const DUAL: &str = "1 192.0.2.1 10.244.1.0/24 fd00:10:244:1::/64";
        for (name, wants, told, has, expected) in [
            (
                "one that is new",
                &[DUAL][..],
                &[][..],
                &[][..],
                &["1 at 192.0.2.1:51820 10.244.1.0/24 fd00:10:244:1::/64"][..],
            ),
            ("over IPv6", &["1 fd00::1 10.244.1.0/24"], &[], &[], &["1 at [fd00::1]:51820 10.244.1.0/24"]),
            ("one that is there", &[DUAL], &[], &["1 192.0.2.1:51820 fd00:10:244:1::/64 10.244.1.0/24"], &[]),
            ("one that has gone", &[], &[DUAL], &["1 192.0.2.1:51820 10.244.1.0/24"], &["1 goes"]),
            (
                "another key of the same node",
                &["2 192.0.2.1 10.244.1.0/24"],
                &["1 192.0.2.1 10.244.1.0/24"],
                &["1 192.0.2.1:51820 10.244.1.0/24"],
                &["1 goes", "2 at 192.0.2.1:51820 10.244.1.0/24"],
            ),
            (
                "a range that was added by somebody else",
                &["1 192.0.2.1 10.244.1.0/24"],
                &["1 192.0.2.1 10.244.1.0/24"],
                &["1 192.0.2.1:51820 10.244.1.0/24 10.244.2.0/24"],
                &["1 10.244.1.0/24"],
            ),
            (
                "a range that another has taken",
                &["1 192.0.2.1 10.244.1.0/24"],
                &["1 192.0.2.1 10.244.1.0/24"],
                &["1 192.0.2.1:51820 -"],
                &["1 10.244.1.0/24"],
            ),
            (
                "one that is heard from behind a router",
                &["1 192.0.2.1 10.244.1.0/24"],
                &["1 192.0.2.1 10.244.1.0/24"],
                &["1 203.0.113.1:40000 10.244.1.0/24"],
                &[],
            ),
            (
                "one whose Node has moved",
                &["1 192.0.2.9 10.244.1.0/24"],
                &["1 192.0.2.1 10.244.1.0/24"],
                &["1 192.0.2.1:51820 10.244.1.0/24"],
                &["1 at 192.0.2.9:51820"],
            ),
            (
                "after a start it is told once where each is",
                &["1 192.0.2.1 10.244.1.0/24"],
                &[],
                &["1 203.0.113.1:40000 10.244.1.0/24"],
                &["1 at 192.0.2.1:51820"],
            ),
            (
                "one that is nowhere",
                &["1 192.0.2.1 10.244.1.0/24"],
                &["1 192.0.2.1 10.244.1.0/24"],
                &["1 - 10.244.1.0/24"],
                &["1 at 192.0.2.1:51820"],
            ),
        ] {
            let told = wanted(told).into_iter().map(|it| (it.0, it.1.node)).collect();
            let changes = peer_changes(&wanted(wants), &told, &present(has));
            assert_eq!(changes.iter().map(said).collect::<Vec<_>>(), expected, "{name}");
        }
    }

    #[test]
    fn a_packet_has_room_for_what_is_around_it() {
        for (own, peers, expected) in [
            ("192.0.2.1", &[][..], 60),
            ("192.0.2.1", &["1 192.0.2.2 10.244.1.0/24"], 60),
            ("192.0.2.1", &["1 192.0.2.2 10.244.1.0/24", "2 fd00::2 10.244.2.0/24"], 80),
            ("fd00::1", &[], 80),
        ] {
            let tunnel = WireGuardTunnel { node: own.parse().ok(), peers: wanted(peers), ..WireGuardTunnel::default() };
            assert_eq!(tunnel.overhead(), expected, "{own} {peers:?}");
        }
    }

    #[test]
    fn a_key_is_written_in_one_way() {
        let text = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=";
        let key = PublicKey::parse(text).expect("a key");
        assert_eq!((key.0[0], key.0[31], key.to_string()), (1, 32, text.to_owned()));
        for other in [
            "",
            "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyB=",
            "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA",
            "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHw==",
            " AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA=",
        ] {
            assert_eq!(PublicKey::parse(other), None, "{other:?}");
        }
    }
}
