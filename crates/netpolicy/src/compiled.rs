//! A policy as chains: each of its rules accepts, or leaves the packet to the next one.
//!
//! ```text
//! in/shop/db/3:    ip saddr @pods4-7 jump in/shop/db/3/0      a rule with peers and ports
//!                  ip saddr @blocks4-2 accept                 one with peers
//!                  meta l4proto tcp th dport 443 accept       one with ports
//!                  accept                                     one with neither
//! in/shop/db/3/0:  meta l4proto tcp th dport 80-90 accept
//!                  ip daddr . meta l4proto . th dport @port4-1 accept
//! ```

use std::collections::{BTreeMap, BTreeSet};

use corten_meta::{LabelSelector, Selector};

use crate::{
    blocks::{self, Ranges},
    projections::{IntOrString, IpBlock, NetworkPolicy, PolicyPort, PolicyRule},
    rules::{Direction, Family, Protocol, Rule, Set, Term},
};

/// How many packet rules one policy may become. A packet that begins a connection meets them one after the other.
pub(crate) const RULES_MAX: usize = 4096;
/// That packets are led through what a policy allows in one direction costs as much as so many rules: all Pods that it isolates are
/// led anew when a policy comes or goes.
const JUMP_COST: usize = 16;
/// So many ranges of blocks are laid for what one rule costs: 65,536 in one policy.
const RANGES_PER_RULE: usize = 16;
/// A chain's name ends within what the kernel takes; the number behind tells apart what is cut.
const NAME_MAX: usize = 100;

/// Which namespaces a peer is in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    Of(String),
    /// Those that this selector, as text, selects.
    Selected(String),
}

/// Which Pods a peer selects. Peers with the same share a set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Peers {
    pub(crate) namespaces: Scope,
    pub(crate) pods: String,
}

/// The selectors of [`Peers`], made for matching.
pub(crate) struct Selectors {
    /// `None`: the namespace is named.
    pub(crate) namespaces: Option<Selector>,
    pub(crate) pods: Selector,
}

/// A port that Pods give the number of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct NamedPort {
    pub(crate) owners: PortOwners,
    pub(crate) protocol: Protocol,
    pub(crate) name: String,
}

/// Who can be asked at a named port. Only their numbers are looked at: else whoever has a Pod would fill a set of every namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PortOwners {
    /// Of ingress: who is asked is selected by the policy, and so in its namespace.
    Namespace(String),
    /// Of egress to Pods alone: one that any of these select.
    Peers(BTreeSet<Peers>),
    /// Of egress to everybody, or to blocks.
    Anybody,
}

/// What a policy says, with what it names by its content.
#[derive(Default)]
pub(crate) struct Wanted {
    pub(crate) chains: BTreeMap<Direction, Vec<WantedRule>>,
}

#[derive(Default)]
pub(crate) struct WantedRule {
    pub(crate) peers: Option<Vec<WantedPeer>>,
    pub(crate) ports: Option<Vec<WantedPort>>,
}

pub(crate) enum WantedPeer {
    Pods(Peers),
    Blocks(Family, Ranges),
}

pub(crate) enum WantedPort {
    Any(Protocol),
    Range(Protocol, u16, u16),
    Named(NamedPort),
}

/// The directions a policy isolates its Pods in.
pub(crate) fn directions(policy: &NetworkPolicy) -> BTreeSet<Direction> {
    let types = &policy.spec.policy_types;
    // `SetDefaults_NetworkPolicy`
    if types.is_empty() {
        let egress = (!policy.spec.egress.is_empty()).then_some(Direction::Egress);
        return [Direction::Ingress].into_iter().chain(egress).collect();
    }
    let named = |it: &Direction| types.iter().any(|word| word.eq_ignore_ascii_case(it.word()));
    Direction::BOTH.into_iter().filter(named).collect()
}

/// What the policy wants, with the selectors of its peers.
pub(crate) fn wanted(policy: &NetworkPolicy) -> (Wanted, BTreeMap<Peers, Selectors>) {
    let (mut wanted, mut selectors) = (Wanted::default(), BTreeMap::new());
    for direction in directions(policy) {
        let rules = if direction == Direction::Ingress { &policy.spec.ingress } else { &policy.spec.egress };
        let rules = rules.iter().map(|it| rule(it, direction, &policy.metadata.namespace, &mut selectors)).collect();
        wanted.chains.insert(direction, rules);
    }
    (wanted, selectors)
}

fn rule(
    rule: &PolicyRule,
    direction: Direction,
    namespace: &str,
    selectors: &mut BTreeMap<Peers, Selectors>,
) -> WantedRule {
    let mut peers: Vec<WantedPeer> = Vec::new();
    let mut blocks: Vec<&IpBlock> = Vec::new();
    let mut seen = BTreeSet::new();
    for peer in &rule.peers {
        if let Some(block) = &peer.ip_block {
            blocks.push(block);
            continue;
        }
        let everything = LabelSelector::default();
        let pods = peer.pod_selector.as_ref().unwrap_or(&everything);
        let namespaces = match &peer.namespace_selector {
            None if peer.pod_selector.is_none() => continue,
            None => Scope::Of(namespace.to_owned()),
            Some(it) => Scope::Selected(text(it)),
        };
        let key = Peers { namespaces, pods: text(pods) };
        let made = || Selectors {
            namespaces: peer.namespace_selector.as_ref().map(LabelSelector::selector),
            pods: pods.selector(),
        };
        selectors.entry(key.clone()).or_insert_with(made);
        if seen.insert(key.clone()) {
            peers.push(WantedPeer::Pods(key));
        }
    }
    let owners = match direction {
        Direction::Ingress => PortOwners::Namespace(namespace.to_owned()),
        Direction::Egress if rule.peers.is_empty() || !blocks.is_empty() => PortOwners::Anybody,
        Direction::Egress => PortOwners::Peers(seen),
    };
    for family in Family::BOTH {
        let ranges = blocks::ranges(&blocks, family);
        if !ranges.is_empty() {
            peers.push(WantedPeer::Blocks(family, ranges));
        }
    }
    WantedRule {
        peers: (!rule.peers.is_empty()).then_some(peers),
        ports: (!rule.ports.is_empty()).then(|| rule.ports.iter().filter_map(|it| port(it, &owners)).collect()),
    }
}

fn port(port: &PolicyPort, owners: &PortOwners) -> Option<WantedPort> {
    let protocol = Protocol::parse(&port.protocol)?;
    Some(match &port.port {
        None => WantedPort::Any(protocol),
        Some(IntOrString::Int(it)) => WantedPort::Range(protocol, *it, port.end_port.unwrap_or(*it)),
        Some(IntOrString::String(name)) => {
            WantedPort::Named(NamedPort { owners: owners.clone(), protocol, name: name.clone() })
        }
    })
}

/// A selector as text: the same for all that are written alike.
fn text(selector: &LabelSelector) -> String {
    let labels = selector.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
    let expression = |it: &corten_meta::LabelSelectorRequirement| {
        let mut values = it.values.clone();
        values.sort_unstable();
        format!("{} {} ({})", it.key, it.operator, values.join(","))
    };
    labels.chain(selector.match_expressions.iter().map(expression)).collect::<Vec<_>>().join(";")
}

impl Wanted {
    /// How many packet rules it becomes.
    pub(crate) fn n_rules(&self) -> usize {
        // Who looks at an address does it for both families.
        let peer = |it: &WantedPeer| if matches!(it, WantedPeer::Pods(_)) { 2 } else { 1 };
        let n_ranges = |it: &WantedPeer| if let WantedPeer::Blocks(_, ranges) = it { ranges.len() } else { 0 };
        let port = |it: &WantedPort| if matches!(it, WantedPort::Named(_)) { 2 } else { 1 };
        // A packet that a peer is asked about meets all ports.
        let of_rule = |it: &WantedRule| {
            let peers: usize = it.peers.iter().flatten().map(peer).sum();
            let ports: usize = it.ports.iter().flatten().map(port).sum();
            // No packet goes through the ranges of a block one by one, but all of them are laid.
            let ranges: usize = it.peers.iter().flatten().map(n_ranges).sum();
            1 + peers + ports.saturating_mul(peers.max(1)) + ranges / RANGES_PER_RULE
        };
        self.chains.values().flatten().map(of_rule).sum()
    }

    /// What it counts as among the packet rules of its namespace.
    pub(crate) fn rule_cost(&self) -> usize {
        self.n_rules() + JUMP_COST * self.chains.values().filter(|it| !it.is_empty()).count()
    }

    /// Leaves its isolation and takes all that it allows away.
    pub(crate) fn closed(&mut self) {
        self.chains.values_mut().for_each(Vec::clear);
    }

    pub(crate) fn peers(&self) -> impl Iterator<Item = &WantedPeer> {
        self.chains.values().flatten().flat_map(|it| it.peers.iter().flatten())
    }

    pub(crate) fn named_ports(&self) -> impl Iterator<Item = &NamedPort> {
        let ports = self.chains.values().flatten().flat_map(|it| it.ports.iter().flatten());
        ports.filter_map(|it| if let WantedPort::Named(name) = it { Some(name) } else { None })
    }

    /// Its chains, once what they name has numbers.
    pub(crate) fn chains(&self, policy: &Named<'_>, sets: &impl SetsOf) -> BTreeMap<String, Vec<Rule>> {
        let mut chains = BTreeMap::new();
        for (direction, rules) in &self.chains {
            let name = policy.chain(*direction);
            let mut body = Vec::new();
            for (at, rule) in rules.iter().enumerate() {
                let peers: Option<Vec<Rule>> = rule.peers.as_ref().map(|it| peer_rules(it, *direction, sets));
                let ports: Option<Vec<Rule>> = rule.ports.as_ref().map(|it| port_rules(it, sets));
                match (peers, ports) {
                    (None, None) => body.push(vec![Term::Accept]),
                    (Some(one), None) | (None, Some(one)) => body.extend(ended(one, &Term::Accept)),
                    (Some(peers), Some(ports)) => {
                        let inner = format!("{name}/{at}");
                        body.extend(ended(peers, &Term::Jump(inner.clone())));
                        chains.insert(inner, ended(ports, &Term::Accept));
                    }
                }
            }
            chains.insert(name, body);
        }
        chains
    }
}

/// The numbers of what policies name.
pub(crate) trait SetsOf {
    fn pods(&self, peers: &Peers) -> u32;
    fn blocks(&self, family: Family, ranges: &Ranges) -> u32;
    fn named_port(&self, port: &NamedPort) -> u32;
}

/// A policy by its name, and the number that is its own.
pub(crate) struct Named<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) number: u32,
}

impl Named<'_> {
    pub(crate) fn chain(&self, direction: Direction) -> String {
        let word = if direction == Direction::Ingress { "in" } else { "out" };
        let name = self.name.get(..NAME_MAX).unwrap_or(self.name);
        format!("{word}/{}/{name}/{}", self.namespace, self.number)
    }
}

fn ended(rules: Vec<Rule>, end: &Term) -> Vec<Rule> {
    rules.into_iter().map(|rule| rule.into_iter().chain([end.clone()]).collect()).collect()
}

fn peer_rules(peers: &[WantedPeer], direction: Direction, sets: &impl SetsOf) -> Vec<Rule> {
    let within = |family, set| vec![Term::Family(family), Term::In(direction.peer_side(), set)];
    let of_peer = |peer: &WantedPeer| match peer {
        WantedPeer::Pods(it) => {
            let number = sets.pods(it);
            Family::BOTH.map(|it| within(it, Set::Pods(it, number))).to_vec()
        }
        WantedPeer::Blocks(family, ranges) => {
            vec![within(*family, Set::Blocks(*family, sets.blocks(*family, ranges)))]
        }
    };
    peers.iter().flat_map(of_peer).collect()
}

fn port_rules(ports: &[WantedPort], sets: &impl SetsOf) -> Vec<Rule> {
    let of_port = |port: &WantedPort| match port {
        WantedPort::Any(protocol) => vec![vec![Term::Protocol(*protocol)]],
        WantedPort::Range(protocol, first, last) => {
            vec![vec![Term::Protocol(*protocol), Term::Ports { first: *first, last: *last }]]
        }
        WantedPort::Named(name) => {
            let number = sets.named_port(name);
            Family::BOTH.map(|it| vec![Term::Family(it), Term::NamedPort(Set::NamedPort(it, number))]).to_vec()
        }
    };
    ports.iter().flat_map(of_port).collect()
}
