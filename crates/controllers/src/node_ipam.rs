//! Gives each Node its part of the cluster's Pod network: `spec.podCIDRs`, which the server lets be set once.
//!
//! All nodes are one key: two that are looked at apart, while a write of the first is not seen yet, would get the same range. As
//! upstream's `rangeAllocator` a range that a Node has been given is taken for as long as the Node is there, whoever gave it. One that
//! is wider than a node's part is respected as long as something is left beside it: else one Node would end the allocation for all.

use core::net::IpAddr;
use std::collections::BTreeSet;

use corten_api::{cluster_network::ClusterNetwork, resources};
use corten_meta::{Key, ObjectMeta, Time, address::Cidr};
use corten_reconcile::{Actor, Controller, Plan, Verb, View, Wait, Wake, Watch, Write};
use serde::Deserialize;
use serde_json::json;

use crate::{
    EFFECTS_MAX,
    projections::{or_default, projection},
    status::exact_patch,
};

/// The one key.
const KEY: &str = "nodes";
/// Looked at of one range, whatever its size: as many as one cluster has nodes.
const RANGES_MAX: u128 = 1 << 16;

/// A Node, as far as its ranges go.
#[derive(Deserialize)]
struct RangedNode {
    metadata: ObjectMeta,
    #[serde(default)]
    spec: RangedSpec,
}
projection!(RangedNode, resources::NODES);

#[derive(Default, Deserialize)]
#[serde(default)]
struct RangedSpec {
    #[serde(rename = "podCIDR", deserialize_with = "or_default")]
    pod_cidr: String,
    #[serde(rename = "podCIDRs", deserialize_with = "or_default")]
    pod_cidrs: Vec<String>,
}

impl RangedNode {
    fn ranges(&self) -> impl Iterator<Item = Cidr> {
        self.spec.pod_cidrs.iter().chain([&self.spec.pod_cidr]).filter_map(|it| Cidr::parse(it))
    }
}

/// The range of all Pods of one family, and how long the prefix of a node's part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterRange {
    pub range: Cidr,
    pub node_bits: u8,
}

impl ClusterRange {
    fn parts(&self) -> impl Iterator<Item = Cidr> {
        let ClusterRange { range, node_bits } = *self;
        let width: u8 = if range.address.is_ipv4() { 32 } else { 128 };
        let n_bits = u32::from(node_bits.saturating_sub(range.bits));
        let n = 1_u128.checked_shl(n_bits).unwrap_or(u128::MAX).min(RANGES_MAX);
        let step = u32::from(width.saturating_sub(node_bits));
        (0..n).map(move |index| {
            let offset = index.checked_shl(step).unwrap_or_default();
            let address = match range.address {
                IpAddr::V4(it) => IpAddr::V4((it.to_bits() | u32::try_from(offset).unwrap_or_default()).into()),
                IpAddr::V6(it) => IpAddr::V6((it.to_bits() | offset).into()),
            };
            Cidr::new(address, node_bits)
        })
    }
}

pub struct NodeIpam {
    ranges: Vec<ClusterRange>,
}

impl NodeIpam {
    pub fn new(network: &ClusterNetwork) -> Self {
        let part = |it: &Cidr| ClusterRange { range: *it, node_bits: network.node_bits(it.address.is_ipv4()) };
        Self::of(network.cluster_cidrs.iter().map(part).collect())
    }

    pub fn of(ranges: Vec<ClusterRange>) -> Self {
        Self { ranges }
    }

    /// Is it no larger than what a node is given here?
    fn is_one_part(&self, range: &Cidr) -> bool {
        let overlaps = |it: &&ClusterRange| it.range.contains(range.address) || range.contains(it.range.address);
        self.ranges.iter().filter(overlaps).all(|it| range.bits >= it.node_bits)
    }
}

impl Controller for NodeIpam {
    fn name(&self) -> &'static str {
        "node-ipam"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<RangedNode>(Wake::With(all_together))]
    }

    fn writes(&self) -> &'static [Write] {
        const { &[Write { verb: Verb::Patch, resource: resources::NODES, fields: &["spec.podCIDR", "spec.podCIDRs"] }] }
    }

    fn reconcile(&self, view: &View, _key: &Key, _now: Time) -> Plan {
        let mut taken: BTreeSet<Cidr> = view.list::<RangedNode>().flat_map(RangedNode::ranges).collect();
        let mut parts: BTreeSet<Cidr> = taken.iter().filter(|it| self.is_one_part(it)).copied().collect();
        let is_new = |it: &&RangedNode| it.ranges().next().is_none() && !it.metadata.is_deleting();
        let mut plan = Plan::default();
        for node in view.list::<RangedNode>().filter(is_new).take(EFFECTS_MAX) {
            let free_of = |it: &ClusterRange| free(it, &taken).or_else(|| free(it, &parts));
            let free: Vec<Option<Cidr>> = self.ranges.iter().map(free_of).collect();
            if let Some((range, _)) = self.ranges.iter().zip(&free).find(|it| it.1.is_none()) {
                let message = format!("{} has no range of /{} left for it", range.range, range.node_bits);
                let wait = Wait::new("CIDRNotAvailable", message, Actor::Operator);
                plan.waits.push(wait.on("Node", &node.metadata.name));
                continue;
            }
            let given: Vec<String> = free.iter().flatten().map(ToString::to_string).collect();
            let Some(first) = given.first() else { break };
            let patch = json!({ "spec": { "podCIDR": first, "podCIDRs": given } });
            plan.effects.push(exact_patch(resources::NODES, &node.metadata, patch));
            taken.extend(free.iter().flatten());
            parts.extend(free.into_iter().flatten());
        }
        plan
    }
}

fn all_together(_view: &View, _changed: &ObjectMeta) -> Vec<Key> {
    vec![Key::cluster(KEY)]
}

fn free(range: &ClusterRange, taken: &BTreeSet<Cidr>) -> Option<Cidr> {
    // A range that somebody else gave may be wider or narrower than those that are given here.
    let overlaps = |it: &Cidr| taken.iter().any(|other| other.contains(it.address) || it.contains(other.address));
    // The first is that of the machine which the control plane runs on: its node says so itself, also when its Node is made anew.
    range.parts().skip(1).find(|it| !taken.contains(it) && !overlaps(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_each_other() {
        for (range, bits, expected) in [
            ("10.244.0.0/16", 24, ["10.244.0.0/24", "10.244.1.0/24", "10.244.255.0/24"]),
            ("fd00:10:244::/56", 64, ["fd00:10:244::/64", "fd00:10:244:1::/64", "fd00:10:244:ff::/64"]),
        ] {
            let range = ClusterRange { range: Cidr::parse(range).expect("a range"), node_bits: bits };
            let parts: Vec<String> = range.parts().map(|it| it.to_string()).collect();
            assert_eq!(parts.len(), 256);
            assert_eq!([&*parts[0], &*parts[1], &*parts[255]], expected);
        }
        let narrow = ClusterRange { range: Cidr::parse("10.0.0.0/28").expect("a range"), node_bits: 24 };
        assert_eq!(narrow.parts().count(), 1);
    }
}
