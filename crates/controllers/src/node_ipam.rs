//! Gives each Node its part of the cluster's Pod network: `spec.podCIDRs`, which the server lets be set once.
//!
//! All nodes are one key: two that are looked at apart, while a write of the first is not seen yet, would get the same range. As
//! upstream's `rangeAllocator` a range that a Node has been given is taken for as long as the Node is there, whoever gave it. One that
//! is wider than a node's part is respected as long as something is left beside it: else one Node would end the allocation for all.

use core::net::IpAddr;
use std::collections::BTreeSet;

use corten_api::{cluster_network::ClusterNetwork, resources};
use corten_meta::{Key, ObjectMeta, Time, address::Cidr};
use corten_reconcile::{
    Actor, Controller, EFFECTS_MAX, Plan, Verb, View, Wait, Wake, Watch, Write, status::exact_patch,
};
use serde::{Deserialize, Deserializer};
use serde_json::json;

use crate::projections::{or_default, projection};

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

#[derive(Default, PartialEq, Deserialize)]
#[serde(default)]
struct RangedSpec {
    #[serde(rename = "podCIDR", deserialize_with = "range")]
    pod_cidr: Option<Cidr>,
    #[serde(rename = "podCIDRs", deserialize_with = "ranges")]
    pod_cidrs: Vec<Cidr>,
}

fn range<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cidr>, D::Error> {
    Ok(Cidr::parse(&or_default::<_, String>(deserializer)?))
}

fn ranges<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Cidr>, D::Error> {
    let all: Vec<String> = or_default(deserializer)?;
    Ok(all.iter().filter_map(|it| Cidr::parse(it)).collect())
}

impl RangedNode {
    fn ranges(&self) -> impl Iterator<Item = Cidr> {
        self.spec.pod_cidrs.iter().copied().chain(self.spec.pod_cidr)
    }
}

/// A heartbeat changes no range.
impl PartialEq for RangedNode {
    fn eq(&self, other: &Self) -> bool {
        let (mine, theirs) = (&self.metadata, &other.metadata);
        (&mine.uid, mine.is_deleting()) == (&theirs.uid, theirs.is_deleting()) && self.spec == other.spec
    }
}

/// The range of all Pods of one family, and how long the prefix of a node's part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterRange {
    pub range: Cidr,
    pub node_bits: u8,
}

impl ClusterRange {
    fn parts(self) -> impl Iterator<Item = Cidr> {
        let ClusterRange { range, node_bits } = self;
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
        let overlaps = |it: &&ClusterRange| it.range.meets(range);
        self.ranges.iter().filter(overlaps).all(|it| range.bits >= it.node_bits)
    }
}

impl Controller for NodeIpam {
    fn name(&self) -> &'static str {
        "node-ipam"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<RangedNode>(Wake::With(all_together)).telling_changes_of::<RangedNode>()]
    }

    fn writes(&self) -> &'static [Write] {
        const { &[Write { verb: Verb::Patch, resource: resources::NODES, fields: &["spec.podCIDR", "spec.podCIDRs"] }] }
    }

    fn reconcile(&self, view: &View, _key: &Key, _now: Time) -> Plan {
        let mut taken: TakenRanges = view.list::<RangedNode>().flat_map(RangedNode::ranges).collect();
        let mut parts: TakenRanges = taken.iter().filter(|it| self.is_one_part(it)).collect();
        let mut left: Vec<LeftParts> = self.ranges.iter().map(LeftParts::of).collect();
        let is_new = |it: &&RangedNode| it.ranges().next().is_none() && !it.metadata.is_deleting();
        let mut plan = Plan::default();
        for node in view.list::<RangedNode>().filter(is_new).take(EFFECTS_MAX) {
            let free: Vec<Option<Cidr>> = left.iter_mut().map(|it| it.next_free(&taken, &parts)).collect();
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
            taken.extend(free.iter().copied().flatten());
            parts.extend(free.into_iter().flatten());
        }
        plan
    }
}

fn all_together(_view: &View, _changed: &ObjectMeta) -> Vec<Key> {
    vec![Key::cluster(KEY)]
}

/// Ranges that somebody has. Whether another overlaps one of them is found without a look at each.
#[derive(Default)]
struct TakenRanges {
    /// In the order of their first addresses.
    ranges: BTreeSet<Cidr>,
    /// How long their prefixes are.
    lengths: BTreeSet<u8>,
}

impl TakenRanges {
    fn iter(&self) -> impl Iterator<Item = Cidr> {
        self.ranges.iter().copied()
    }

    /// A range that somebody else gave may be wider or narrower than those that are given here.
    fn overlap(&self, range: &Cidr) -> bool {
        let is_within_one = || {
            let wider = self.lengths.range(..=range.bits).map(|bits| Cidr::new(range.address, *bits));
            wider.into_iter().any(|it| self.ranges.contains(&it))
        };
        // The first of those that begin in it, where there are any.
        let holds_one = || self.ranges.range(*range..).next().is_some_and(|it| range.contains(it.address));
        is_within_one() || holds_one()
    }
}

impl Extend<Cidr> for TakenRanges {
    fn extend<T: IntoIterator<Item = Cidr>>(&mut self, ranges: T) {
        for range in ranges {
            self.lengths.insert(range.bits);
            self.ranges.insert(range);
        }
    }
}

impl FromIterator<Cidr> for TakenRanges {
    fn from_iter<T: IntoIterator<Item = Cidr>>(ranges: T) -> Self {
        let mut all = Self::default();
        all.extend(ranges);
        all
    }
}

/// The parts of a range, in their order: what was not free stays so while one plan is made.
struct LeftParts<'a> {
    range: &'a ClusterRange,
    parts: Box<dyn Iterator<Item = Cidr>>,
    /// There is none beside all that is taken.
    is_amid_wide: bool,
}

impl<'a> LeftParts<'a> {
    fn of(range: &'a ClusterRange) -> Self {
        Self { range, parts: Self::begin(*range), is_amid_wide: false }
    }

    /// The first part is that of the machine which the control plane runs on: its node says so itself, also when its Node is made anew.
    fn begin(range: ClusterRange) -> Box<dyn Iterator<Item = Cidr>> {
        Box::new(range.parts().skip(1))
    }

    /// One beside all that is taken; where there is none, one that only ranges wider than a part overlap.
    fn next_free(&mut self, taken: &TakenRanges, parts: &TakenRanges) -> Option<Cidr> {
        if !self.is_amid_wide {
            if let Some(free) = self.parts.find(|it| !taken.overlap(it)) {
                return Some(free);
            }
            (self.parts, self.is_amid_wide) = (Self::begin(*self.range), true);
        }
        self.parts.find(|it| !parts.overlap(it))
    }
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

    #[test]
    fn ranges_overlap_where_one_holds_the_other() {
        let range = |it| Cidr::parse(it).expect("a range");
        let taken = ["10.1.0.0/16", "10.2.3.0/24", "10.2.4.128/25", "fd00::/64"];
        let taken: TakenRanges = taken.into_iter().map(range).collect();
        for (asked, expected) in [
            ("10.1.0.0/16", true),
            ("10.1.255.0/24", true),
            ("10.0.0.0/15", true),
            ("10.2.3.0/24", true),
            ("10.2.4.0/24", true),
            ("10.2.4.0/25", false),
            ("10.2.5.0/24", false),
            ("10.2.2.0/24", false),
            ("10.3.0.0/16", false),
            ("0.0.0.0/0", true),
            ("fd00:0:0:1::/64", false),
            ("fd00::/48", true),
        ] {
            assert_eq!(taken.overlap(&range(asked)), expected, "{asked}");
        }
    }
}
