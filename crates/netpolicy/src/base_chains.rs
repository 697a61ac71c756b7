//! What stands in the table before any policy: two base chains, and the ways from them to the policies.
//!
//! ```text
//! forward → egress:  from the Pods' bridge: source → the policies that isolate it → accepted or dropped
//! forward → ingress: to the Pods' bridge: destination → the same
//! ```
//! Destinations are translated before and sources behind this hook, so that both are Pods' own. An address that leads
//! nowhere belongs to a Pod whose policies are not laid yet, or to no Pod: what comes from it or goes to it is dropped. What the
//! node itself sends to its Pods, and they to it, does not come by here: a node reaches its Pods.
//!
//! Where a CNI plug-in of another's plugs Pods in, no interface tells them apart, and what is forwarded may be nobody's Pod: there
//! an address that leads nowhere passes. A Pod's first container waits until its address leads to its policies.

use crate::rules::{Change, Direction, Family, Rule, Set, Term};

/// How packets of Pods are recognized.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodMatch {
    /// The node's own bridge: what comes by it is a Pod's.
    #[default]
    Bridge,
    /// Their addresses alone.
    Addresses,
}

/// Groups (RFC 2710, RFC 3810), and neighbours and routers (RFC 4861), are found by messages of these types, with the hop limit that says
/// that no router has passed them on. Who may say them is checked where a Pod is plugged in. They have room for what they are for, and
/// for little of what two Pods would tell each other past every policy: 24 bytes and two options, or four groups.
const ICMP6_OF_LINKS: [(u8, u8, u8, u16); 3] = [(130, 132, 1, 48), (133, 137, 255, 48), (143, 143, 1, 96)];

pub(crate) fn changes(pod_match: PodMatch) -> Vec<Change> {
    // One transaction that takes an older table away and makes it anew: what it says holds from one moment to the next.
    let mut changes = vec![Change::Table, Change::DropTable, Change::Table];
    changes.extend(Set::fixed().map(Change::Set));
    changes.extend(Direction::BOTH.map(Change::Base));
    for direction in Direction::BOTH {
        changes.extend(rules(direction, pod_match).into_iter().map(|it| Change::Rule(direction.word().to_owned(), it)));
    }
    changes
}

fn rules(direction: Direction, pod_match: PodMatch) -> Vec<Rule> {
    let mut rules = Vec::new();
    if pod_match == PodMatch::Bridge {
        rules.push(vec![Term::NotOnBridge(direction), Term::Accept]);
    }
    rules.push(vec![Term::Reply, Term::Accept]);
    let of_links = |(first, last, hop_limit, payload_max)| {
        vec![Term::Family(Family::V6), Term::Icmp6 { first, last, hop_limit, payload_max }, Term::Accept]
    };
    rules.extend(ICMP6_OF_LINKS.map(of_links));
    for family in Family::BOTH {
        rules.push(vec![Term::Family(family), Term::Itself(Set::Itself(family)), Term::Accept]);
        rules.push(vec![Term::Family(family), Term::Group(direction, family)]);
    }
    if pod_match == PodMatch::Bridge {
        rules.push(vec![Term::Drop]);
    }
    rules
}
