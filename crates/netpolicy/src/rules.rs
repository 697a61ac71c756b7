//! The words of policies' packet rules: what the mind says and the hand writes into the kernel.
//!
//! They are nftables' own, as few of them as policies need; shown, they read as `nft` would write them.

use std::{fmt, net::IpAddr};

pub use corten_proxy::rules::{Family, Protocol, Side};

/// Which end of a connection a policy isolates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    Ingress,
    Egress,
}

/// A set or map of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Set {
    /// address of a Pod of this node → the policies that isolate it, or nothing that does
    Groups(Direction, Family),
    /// The address of a Pod of this node, twice: a Pod reaches itself.
    Itself(Family),
    /// The addresses of all Pods that a peer's selectors select.
    Pods(Family, u32),
    /// The addresses of a peer's `ipBlock`s, as ranges.
    Blocks(Family, u32),
    /// address, protocol, port: where Pods have a port of one name
    NamedPort(Family, u32),
}

/// What an element is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ElementKey {
    Address(IpAddr),
    /// The address, twice.
    Pair(IpAddr),
    Port {
        address: IpAddr,
        protocol: Protocol,
        port: u16,
    },
    /// Both ends are in it.
    Range {
        first: IpAddr,
        last: IpAddr,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// A set's elements have none.
    Nothing,
    Accept,
    Goto(String),
}

/// A part of a rule. The parts are gone through in order; one that does not match ends the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    Family(Family),
    /// Comes from the Pods' bridge (egress) or leaves by it (ingress).
    NotOnBridge(Direction),
    /// Belongs to a connection that was let through.
    Reply,
    /// A message of ICMPv6 whose type is among these, which comes from the same link, as no router has passed it on, and which is no
    /// longer than such a message has to be.
    Icmp6 {
        first: u8,
        last: u8,
        hop_limit: u8,
        /// Of what follows the header of IPv6, in bytes.
        payload_max: u16,
    },
    Protocol(Protocol),
    /// The port it is sent to.
    Ports {
        first: u16,
        last: u16,
    },
    In(Side, Set),
    /// Destination, protocol, port.
    NamedPort(Set),
    /// Source, destination.
    Itself(Set),
    // What follows ends the rule.
    /// Goes where the Pod's address leads.
    Group(Direction, Family),
    Accept,
    Drop,
    Jump(String),
}

pub type Rule = Vec<Term>;

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    DropTable,
    Table,
    Set(Set),
    DropSet(Set),
    Base(Direction),
    /// A chain, new or emptied.
    Chain(String),
    Rule(String, Rule),
    DropChain(String),
    Add(Set, ElementKey, Value),
    Remove(Set, ElementKey),
}

impl Direction {
    pub const BOTH: [Self; 2] = [Self::Ingress, Self::Egress];

    /// The name of its base chain.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }

    /// The side of a packet where the isolated Pod is.
    pub fn own_side(self) -> Side {
        match self {
            Self::Ingress => Side::Destination,
            Self::Egress => Side::Source,
        }
    }

    pub fn peer_side(self) -> Side {
        match self {
            Self::Ingress => Side::Source,
            Self::Egress => Side::Destination,
        }
    }
}

impl Set {
    pub fn name(self) -> String {
        match self {
            Self::Groups(direction, family) => format!("{}{}", direction.word(), digit(family)),
            Self::Itself(family) => format!("itself{}", digit(family)),
            Self::Pods(family, number) => format!("pods{}-{number}", digit(family)),
            Self::Blocks(family, number) => format!("blocks{}-{number}", digit(family)),
            Self::NamedPort(family, number) => format!("port{}-{number}", digit(family)),
        }
    }

    pub fn family(self) -> Family {
        match self {
            Self::Groups(_, it)
            | Self::Itself(it)
            | Self::Pods(it, _)
            | Self::Blocks(it, _)
            | Self::NamedPort(it, _) => it,
        }
    }

    /// Those that every table has.
    pub fn fixed() -> impl Iterator<Item = Self> {
        let of_family =
            |it| [Self::Groups(Direction::Ingress, it), Self::Groups(Direction::Egress, it), Self::Itself(it)];
        Family::BOTH.into_iter().flat_map(of_family)
    }
}

fn digit(family: Family) -> char {
    if family == Family::V4 { '4' } else { '6' }
}

fn ip(family: Family) -> &'static str {
    if family == Family::V4 { "ip" } else { "ip6" }
}

fn side(side: Side) -> &'static str {
    if side == Side::Source { "saddr" } else { "daddr" }
}

fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "tcp",
        Protocol::Udp => "udp",
        Protocol::Sctp => "sctp",
    }
}

impl fmt::Display for ElementKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(it) => write!(f, "{it}"),
            Self::Pair(it) => write!(f, "{it} . {it}"),
            Self::Port { address, protocol: it, port } => write!(f, "{address} . {} . {port}", protocol(*it)),
            Self::Range { first, last } => write!(f, "{first}-{last}"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::Accept => write!(f, " : accept"),
            Self::Goto(chain) => write!(f, " : goto {chain}"),
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |set: &Set| ip(set.family());
        match self {
            Self::Family(Family::V4) => write!(f, "meta nfproto ipv4"),
            Self::Family(Family::V6) => write!(f, "meta nfproto ipv6"),
            Self::NotOnBridge(Direction::Ingress) => write!(f, "oifname != bridge"),
            Self::NotOnBridge(Direction::Egress) => write!(f, "iifname != bridge"),
            Self::Reply => write!(f, "ct state established,related"),
            Self::Icmp6 { first, last, hop_limit, payload_max } => {
                write!(f, "ip6 hoplimit {hop_limit} ip6 length <= {payload_max} icmpv6 type {first}-{last}")
            }
            Self::Protocol(it) => write!(f, "meta l4proto {}", protocol(*it)),
            Self::Ports { first, last } if first == last => write!(f, "th dport {first}"),
            Self::Ports { first, last } => write!(f, "th dport {first}-{last}"),
            Self::In(at, set) => write!(f, "{} {} @{}", of(set), side(*at), set.name()),
            Self::NamedPort(set) => write!(f, "{} daddr . meta l4proto . th dport @{}", of(set), set.name()),
            Self::Itself(set) => write!(f, "{0} saddr . {0} daddr @{1}", of(set), set.name()),
            Self::Group(direction, family) => {
                let map = Set::Groups(*direction, *family).name();
                write!(f, "{} {} vmap @{map}", ip(*family), side(direction.own_side()))
            }
            Self::Accept => write!(f, "accept"),
            Self::Drop => write!(f, "drop"),
            Self::Jump(chain) => write!(f, "jump {chain}"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropTable => write!(f, "delete table"),
            Self::Table => write!(f, "add table"),
            Self::Set(it) => write!(f, "add set {}", it.name()),
            Self::DropSet(it) => write!(f, "delete set {}", it.name()),
            Self::Base(it) => write!(f, "add chain {}", it.word()),
            Self::Chain(name) => write!(f, "chain {name}"),
            Self::Rule(chain, terms) => {
                write!(f, "rule {chain}")?;
                terms.iter().try_for_each(|it| write!(f, " {it}"))
            }
            Self::DropChain(name) => write!(f, "delete chain {name}"),
            Self::Add(set, key, value) => write!(f, "add element {} {{ {key}{value} }}", set.name()),
            Self::Remove(set, key) => write!(f, "delete element {} {{ {key} }}", set.name()),
        }
    }
}
