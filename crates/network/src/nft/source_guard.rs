//! What each Pod may send: packets from its own addresses, and nothing that speaks for another.
//!
//! Pods share a bridge. One with CAP_NET_RAW could answer for another's address (ARP, neighbour discovery), send from it, or
//! call itself the network's router. So at the door of each, the interface of this machine that its packets come in by, a chain
//! looks at every frame before the bridge does, which would learn from it.
//!
//! ```text
//! chain veth1234 { type filter hook ingress device veth1234
//!   ether saddr != ITS drop
//!   vlan drop
//!   ip saddr ITS accept
//!   icmpv6 type { router advertisement, redirect } drop, neighbour advertisement of another's address drop
//!   ip6 saddr ITS accept, ip6 saddr :: what asks whether an address is free accept
//!   arp from ITS accept
//!   drop
//! }
//! ```

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use corten_machine::{Layout, MachineError};

use super::{
    blocking,
    expression::{EQUAL, FIRST, List, META_PROTOCOL, NOT_EQUAL},
    message::{Batch, Bytes, CREATE, Message},
    objects::{ACCEPT, APPEND, DEL_CHAIN, DEL_TABLE, DROP, NAME_OF_CHAIN, NEW_CHAIN, NEW_RULE, NEW_TABLE},
    socket::Socket,
};

const NETDEV: u8 = 5;
/// The protocol of a frame, as its header has it.
const META_FRAME: u32 = 1;
const LINK: u32 = 0;
const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;

const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const ARP: [u8; 2] = [0x08, 0x06];
/// Frames of a VLAN: IEEE 802.1Q, 802.1ad, and what came before that.
const TAGGED: [[u8; 2]; 3] = [[0x81, 0x00], [0x88, 0xa8], [0x91, 0x00]];
/// ARP for IPv4 on Ethernet: kind and length of both addresses.
const ARP_OF_IPV4: [u8; 6] = [0, 1, 8, 0, 6, 4];
const ICMPV6: u8 = 58;
const ROUTER_ADVERTISEMENT: u8 = 134;
const NEIGHBOUR_SOLICITATION: u8 = 135;
const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
const REDIRECT: u8 = 137;
/// What says which groups a machine listens to, before it has an address: MLD, both versions.
const GROUP_REPORTS: [u8; 3] = [131, 132, 143];

/// Where a Pod is plugged in, and what it may call itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    pub interface: String,
    pub mac: [u8; 6],
    pub addresses: Vec<IpAddr>,
}

impl Port {
    /// All that it may call itself.
    pub(crate) fn all_addresses(&self) -> Vec<IpAddr> {
        let own4 = self.addresses.iter().filter(|it| it.is_ipv4()).copied();
        own4.chain(self.addresses6().into_iter().map(IpAddr::V6)).collect()
    }

    /// Those of IPv6, with the one that every interface makes for itself from its hardware address.
    fn addresses6(&self) -> Vec<Ipv6Addr> {
        let own: Vec<Ipv6Addr> =
            self.addresses.iter().filter_map(|it| if let IpAddr::V6(it) = it { Some(*it) } else { None }).collect();
        if own.is_empty() {
            return own;
        }
        let [a, b, c, d, e, f] = self.mac;
        let half = |high: u8, low: u8| u16::from_be_bytes([high, low]);
        let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, half(a ^ 2, b), half(c, 0xff), half(0xfe, d), half(e, f));
        own.into_iter().chain([link_local]).collect()
    }
}

/// The chains of all Pods of the node, in a table of their own.
#[derive(Clone, Debug)]
pub struct SourceGuard {
    table: String,
}

impl SourceGuard {
    pub fn new(layout: &Layout) -> Self {
        Self { table: layout.nft_table.clone() }
    }

    /// Has exactly these Pods watched, in one step from what was before.
    ///
    /// # Errors
    /// The kernel does not take it: it may lack the hook.
    pub async fn put(&self, ports: Vec<Port>) -> Result<(), MachineError> {
        let mut messages = vec![self.table(NEW_TABLE), self.table(DEL_TABLE), self.table(NEW_TABLE)];
        messages.extend(ports.iter().flat_map(|it| self.chain(it)));
        self.commit("have Pods' sources checked", messages).await
    }

    /// One Pod more.
    ///
    /// # Errors
    /// The kernel does not take it.
    pub async fn add(&self, port: Port) -> Result<(), MachineError> {
        self.commit("have a Pod's sources checked", self.chain(&port)).await
    }

    /// One Pod less. Harmless where the kernel took the chain away with the interface.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub async fn forget(&self, interface: &str) -> Result<(), MachineError> {
        let gone = self.commit("forget a Pod's sources", vec![self.named(DEL_CHAIN, NAME_OF_CHAIN, interface)]).await;
        match gone {
            Err(MachineError::Io { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other,
        }
    }

    /// Takes all away. Harmless where it is gone.
    ///
    /// # Errors
    /// The kernel refuses.
    pub async fn remove(&self) -> Result<(), MachineError> {
        if !self.is_there().await? {
            return Ok(());
        }
        self.commit("remove the checks of Pods' sources", vec![self.table(DEL_TABLE)]).await
    }

    /// Is the table there? Somebody may have emptied the whole ruleset.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub async fn is_there(&self) -> Result<bool, MachineError> {
        let table = self.table.clone();
        blocking("look for the checks of Pods' sources", move || Socket::open()?.has_table(NETDEV, &table)).await
    }

    async fn commit(&self, doing: &'static str, messages: Vec<Message>) -> Result<(), MachineError> {
        let batch = Batch::of_messages(NETDEV, &messages);
        blocking(doing, move || Socket::open()?.commit(&batch).map_err(|it| it.error)).await
    }

    fn table(&self, kind: u16) -> Message {
        let mut body = Bytes::default();
        body.text(1, &self.table);
        Message { kind, flags: if kind == NEW_TABLE { CREATE } else { 0 }, body }
    }

    fn named(&self, kind: u16, at: u16, name: &str) -> Message {
        let mut message = Message { kind, flags: 0, body: Bytes::default() };
        message.body.text(1, &self.table);
        message.body.text(at, name);
        message
    }

    fn chain(&self, port: &Port) -> Vec<Message> {
        const INGRESS: u32 = 0;
        const PRIORITY: i32 = -500;
        let mut chain = self.named(NEW_CHAIN, NAME_OF_CHAIN, &port.interface);
        chain.flags = CREATE;
        chain.body.nest(4, |it| {
            it.number(1, INGRESS);
            it.attribute(2, &PRIORITY.to_be_bytes());
            it.text(3, &port.interface);
        });
        chain.body.text(7, "filter");
        let rule = |(terms, verdict): (Vec<Term>, i32)| {
            let mut rule = self.named(NEW_RULE, 2, &port.interface);
            rule.flags = CREATE | APPEND;
            rule.body.nest(4, |it| encode(&terms, verdict, it));
            rule
        };
        std::iter::once(chain).chain(rules(port).into_iter().map(rule)).collect()
    }
}

/// A comparison of a part of the frame. All of a rule's must hold.
#[derive(Clone, Debug)]
enum Term {
    Frame([u8; 2]),
    Protocol(u8),
    Is { base: u32, offset: u32, value: Vec<u8> },
    IsNot { base: u32, offset: u32, value: Vec<u8> },
}

fn ether_source(mac: [u8; 6]) -> Term {
    Term::IsNot { base: LINK, offset: 6, value: mac.to_vec() }
}

fn source4(address: Ipv4Addr) -> Term {
    Term::Is { base: NETWORK, offset: 12, value: address.octets().to_vec() }
}

fn source6(address: Ipv6Addr) -> Term {
    Term::Is { base: NETWORK, offset: 8, value: address.octets().to_vec() }
}

fn message6(kind: u8) -> [Term; 3] {
    [Term::Frame(IPV6), Term::Protocol(ICMPV6), Term::Is { base: TRANSPORT, offset: 0, value: vec![kind] }]
}

/// Whose address a message of neighbour discovery is about.
const TARGET_AT: u32 = 8;

fn rules(port: &Port) -> Vec<(Vec<Term>, i32)> {
    let own4 = || port.addresses.iter().filter_map(|it| if let IpAddr::V4(it) = it { Some(*it) } else { None });
    let own6 = port.addresses6();
    let mut rules = vec![(vec![ether_source(port.mac)], DROP)];
    // The kernel has taken the tag off by now, and shows it here alone: a frame with one would pass the filters of bridges unseen.
    rules.extend(TAGGED.map(|it| (vec![Term::Is { base: LINK, offset: 12, value: it.to_vec() }], DROP)));
    rules.extend(own4().map(|it| (vec![Term::Frame(IPV4), source4(it)], ACCEPT)));
    if !own6.is_empty() {
        rules.extend([ROUTER_ADVERTISEMENT, REDIRECT].map(|it| (message6(it).to_vec(), DROP)));
        let mut of_another = message6(NEIGHBOUR_ADVERTISEMENT).to_vec();
        of_another.extend(own6.iter().map(|it| Term::IsNot {
            base: TRANSPORT,
            offset: TARGET_AT,
            value: it.octets().to_vec(),
        }));
        rules.push((of_another, DROP));
        for own in &own6 {
            rules.push((vec![Term::Frame(IPV6), source6(*own)], ACCEPT));
            let target = Term::Is { base: TRANSPORT, offset: TARGET_AT, value: own.octets().to_vec() };
            let is_free = [&message6(NEIGHBOUR_SOLICITATION)[..], &[source6(Ipv6Addr::UNSPECIFIED), target]].concat();
            rules.push((is_free, ACCEPT));
        }
        let report = |it: u8| [&message6(it)[..], &[source6(Ipv6Addr::UNSPECIFIED)]].concat();
        rules.extend(GROUP_REPORTS.map(|it| (report(it), ACCEPT)));
    }
    // Who asks whether an address is free sends from none.
    for sender in own4().chain(own4().next().map(|_| Ipv4Addr::UNSPECIFIED)) {
        let parts = [(0, ARP_OF_IPV4.to_vec()), (8, port.mac.to_vec()), (14, sender.octets().to_vec())];
        let parts = parts.map(|(offset, value)| Term::Is { base: NETWORK, offset, value });
        rules.push(([&[Term::Frame(ARP)], &parts[..]].concat(), ACCEPT));
    }
    rules.push((Vec::new(), DROP));
    rules
}

fn encode(terms: &[Term], verdict: i32, bytes: &mut Bytes) {
    let mut list = List(bytes);
    for term in terms {
        match term {
            Term::Frame(kind) => {
                list.load_meta(META_FRAME, FIRST);
                list.compare(EQUAL, kind);
            }
            Term::Protocol(number) => {
                list.load_meta(META_PROTOCOL, FIRST);
                list.compare(EQUAL, &[*number]);
            }
            Term::Is { base, offset, value } | Term::IsNot { base, offset, value } => {
                let length = u32::try_from(value.len()).expect("at most an address");
                list.load_packet(*base, *offset, length, FIRST);
                list.compare(if matches!(term, Term::Is { .. }) { EQUAL } else { NOT_EQUAL }, value);
            }
        }
    }
    if verdict == DROP {
        list.count();
    }
    list.end(verdict, None);
}

#[cfg(test)]
mod tests;
