//! The words of packet rules: what the mind says and the hand writes into the kernel.
//!
//! They are nftables' own, as few of them as Services need; shown, they read as `nft` would write them.

use std::{fmt, net::IpAddr};

use corten_meta::address::Cidr;

/// The bit of a packet's mark that says: it needs this node's address to come back. Upstream's, too.
pub const MARK: u32 = 0x4000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    V4,
    V6,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    Tcp,
    Udp,
    Sctp,
}

/// Where a connection is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Backend {
    pub address: IpAddr,
    pub port: u16,
}

/// The sets and maps every table has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Map {
    /// Addresses of Services in the cluster.
    ClusterIps(Family),
    /// Addresses of Services out of the pool of load balancers' addresses.
    PoolIps(Family),
    /// address, protocol, port → where to
    Services(Family),
    /// protocol, port → where to
    NodePorts(Family),
    /// address, protocol, port that lead nowhere → refuse or drop
    Refused(Family),
    RefusedPorts(Family),
    /// An address, twice: a Pod that reaches itself through a Service.
    Hairpins(Family),
    /// number → address, port: who stands behind Services, a row of numbers for each. One of [`SHARDS`] maps
    Endpoints(Family, u8),
    /// number → where to: the same, for those with session affinity
    Spread(Family, u8),
}

/// Among how many maps the rows are shared out. For each rule that names a map the kernel goes through all of the map, and
/// through all rules that name it.
pub const SHARDS: u8 = 16;

/// What an element is found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ElementKey {
    Address(IpAddr),
    Frontend { address: IpAddr, protocol: Protocol, port: u16 },
    Port { protocol: Protocol, port: u16 },
    Number(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Element {
    pub map: Map,
    pub key: ElementKey,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// A set's elements have none.
    Nothing,
    Goto(String),
    Drop,
    To(Backend),
}

/// A set that packets fill: clients and, for a time, where they were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    pub name: String,
    pub family: Family,
    pub seconds: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// Before connections are looked up.
    Raw,
    Prerouting,
    Input,
    Forward,
    Output,
    /// Behind the translation of what the node itself sends.
    OutputTranslated,
    Postrouting,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Source,
    Destination,
}

/// What is looked up in a set or map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    Source,
    Destination,
    /// Destination, protocol, port.
    Frontend,
    /// Protocol, port.
    Port,
    /// Source, destination.
    Pair,
}

/// A part of a rule. The parts are gone through in order; one that does not match ends the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    Family(Family),
    Protocol(Protocol),
    Within(Side, Cidr),
    NotWithin(Side, Cidr),
    /// Is it an address of this node?
    Local(Side, Family),
    /// Came through another interface than this one.
    NotThrough(&'static str),
    NewConnection,
    Marked,
    In(Lookup, Family, String),
    Mark,
    Unmark,
    /// Remembers the client in a set.
    Remember(Family, String),
    // What follows ends the rule.
    Vmap(Lookup, Family, String),
    /// Draws a number below `count`, adds `first`, and goes where the map says.
    DrawVmap {
        count: u32,
        first: u32,
        map: String,
    },
    DrawDnat {
        family: Family,
        count: u32,
        first: u32,
        map: String,
    },
    Dnat(Backend),
    Masquerade,
    Refuse,
    Drop,
    Goto(String),
    Jump(String),
}

pub type Rule = Vec<Term>;

/// One step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    DropTable,
    Table,
    Map(Map),
    Clients(Clients),
    /// Empties a set or map.
    Empty(String),
    DropSet(String),
    Base(String, Hook),
    /// A chain, new or emptied.
    Chain(String),
    Rule(String, Rule),
    DropChain(String),
    Add(Element, Value),
    Remove(Element),
}

impl Family {
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    pub(crate) fn digit(self) -> char {
        match self {
            Self::V4 => '4',
            Self::V6 => '6',
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::V4 => "ip",
            Self::V6 => "ip6",
        }
    }
}

impl Protocol {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "TCP" | "" => Some(Self::Tcp),
            "UDP" => Some(Self::Udp),
            "SCTP" => Some(Self::Sctp),
            _ => None,
        }
    }

    /// Its number in packets.
    pub fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
            Self::Sctp => 132,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }
}

impl Map {
    pub fn name(self) -> String {
        let (word, family) = match self {
            Self::Endpoints(family, shard) => return format!("endpoints{}-{shard}", family.digit()),
            Self::Spread(family, shard) => return format!("spread{}-{shard}", family.digit()),
            Self::ClusterIps(it) => ("cluster-ips", it),
            Self::PoolIps(it) => ("pool-ips", it),
            Self::Services(it) => ("services", it),
            Self::NodePorts(it) => ("node-ports", it),
            Self::Refused(it) => ("refused", it),
            Self::RefusedPorts(it) => ("refused-ports", it),
            Self::Hairpins(it) => ("hairpins", it),
        };
        format!("{word}{}", family.digit())
    }

    pub fn family(self) -> Family {
        match self {
            Self::ClusterIps(it)
            | Self::PoolIps(it)
            | Self::Services(it)
            | Self::NodePorts(it)
            | Self::Refused(it)
            | Self::RefusedPorts(it)
            | Self::Hairpins(it)
            | Self::Endpoints(it, _)
            | Self::Spread(it, _) => it,
        }
    }

    pub fn all() -> impl Iterator<Item = Self> {
        [Family::V4, Family::V6].into_iter().flat_map(|it| {
            let single = [
                Self::ClusterIps(it),
                Self::PoolIps(it),
                Self::Services(it),
                Self::NodePorts(it),
                Self::Refused(it),
                Self::RefusedPorts(it),
                Self::Hairpins(it),
            ];
            let shared = (0..SHARDS).flat_map(move |shard| [Self::Endpoints(it, shard), Self::Spread(it, shard)]);
            single.into_iter().chain(shared)
        })
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            IpAddr::V4(it) => write!(f, "{it}:{}", self.port),
            IpAddr::V6(it) => write!(f, "[{it}]:{}", self.port),
        }
    }
}

impl fmt::Display for ElementKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(it) => write!(f, "{it}"),
            Self::Frontend { address, protocol, port } => write!(f, "{address} . {} . {port}", protocol.word()),
            Self::Port { protocol, port } => write!(f, "{} . {port}", protocol.word()),
            Self::Number(it) => write!(f, "{it}"),
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => Ok(()),
            Self::Goto(chain) => write!(f, " : goto {chain}"),
            Self::Drop => write!(f, " : drop"),
            Self::To(Backend { address, port }) => write!(f, " : {address} . {port}"),
        }
    }
}

impl Lookup {
    fn text(self, family: Family) -> String {
        let ip = family.word();
        match self {
            Self::Source => format!("{ip} saddr"),
            Self::Destination => format!("{ip} daddr"),
            Self::Frontend => format!("{ip} daddr . meta l4proto . th dport"),
            Self::Port => "meta l4proto . th dport".to_owned(),
            Self::Pair => format!("{ip} saddr . {ip} daddr"),
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = |it: &Side| if *it == Side::Source { "saddr" } else { "daddr" };
        match self {
            Self::Family(Family::V4) => write!(f, "meta nfproto ipv4"),
            Self::Family(Family::V6) => write!(f, "meta nfproto ipv6"),
            Self::Protocol(it) => write!(f, "meta l4proto {}", it.word()),
            Self::Within(at, it) => write!(f, "{} {} {it}", Family::of(it.address).word(), side(at)),
            Self::NotWithin(at, it) => write!(f, "{} {} != {it}", Family::of(it.address).word(), side(at)),
            Self::Local(at, _) => write!(f, "fib {} type local", side(at)),
            Self::NotThrough(it) => write!(f, "iifname != \"{it}\""),
            Self::NewConnection => write!(f, "ct state new"),
            Self::Marked => write!(f, "meta mark & {MARK:#x} != 0"),
            Self::In(what, family, set) => write!(f, "{} @{set}", what.text(*family)),
            Self::Mark => write!(f, "meta mark set meta mark | {MARK:#x}"),
            Self::Unmark => write!(f, "meta mark set meta mark & {:#x}", !MARK),
            Self::Remember(family, set) => write!(f, "update @{set} {{ {} saddr }}", family.word()),
            Self::Vmap(what, family, map) => write!(f, "{} vmap @{map}", what.text(*family)),
            Self::DrawVmap { count, first, map } => write!(f, "numgen random mod {count} offset {first} vmap @{map}"),
            Self::DrawDnat { family, count, first, map } => {
                write!(f, "dnat {} to numgen random mod {count} offset {first} map @{map}", family.word())
            }
            Self::Dnat(to) => write!(f, "dnat {} to {to}", Family::of(to.address).word()),
            Self::Masquerade => write!(f, "masquerade fully-random"),
            Self::Refuse => write!(f, "reject"),
            Self::Drop => write!(f, "drop"),
            Self::Goto(chain) => write!(f, "goto {chain}"),
            Self::Jump(chain) => write!(f, "jump {chain}"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropTable => write!(f, "delete table"),
            Self::Table => write!(f, "add table"),
            Self::Map(it) => write!(f, "add map {}", it.name()),
            Self::Clients(it) => write!(f, "add set {} timeout {}s", it.name, it.seconds),
            Self::Empty(name) => write!(f, "flush map {name}"),
            Self::DropSet(name) => write!(f, "delete set {name}"),
            Self::Base(name, hook) => write!(f, "add chain {name} {hook:?}"),
            Self::Chain(name) => write!(f, "chain {name}"),
            Self::Rule(chain, terms) => {
                write!(f, "rule {chain}")?;
                terms.iter().try_for_each(|it| write!(f, " {it}"))
            }
            Self::DropChain(name) => write!(f, "delete chain {name}"),
            Self::Add(it, value) => write!(f, "add element {} {{ {}{value} }}", it.map.name(), it.key),
            Self::Remove(it) => write!(f, "delete element {} {{ {} }}", it.map.name(), it.key),
        }
    }
}
