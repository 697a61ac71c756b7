//! The node's table for NetworkPolicies: its words as netlink messages, in one transaction.

use std::{collections::BTreeSet, io, net::IpAddr};

use corten_machine::{Layout, MachineError};
use corten_netpolicy::rules::{Change, Direction, ElementKey, Family, Set, Term, Value};
use corten_proxy::rules::Lookup;

use super::{
    blocking,
    expression::{EQUAL, FIRST, List, META_PROTOCOL, NOT_EQUAL, VERDICT_REGISTER, family_number},
    flows, is_there,
    message::{Batch, Bytes, CREATE, INET, Message},
    objects::{
        ACCEPT, ADDRESS4, ADDRESS6, APPEND, DEL_CHAIN, DEL_ELEMENT, DEL_RULE, DEL_SET, DEL_TABLE, DROP, GOTO, JUMP,
        LIST_ELEMENT, NAME_OF_CHAIN, NAME_OF_SET, NEW_CHAIN, NEW_ELEMENT, NEW_RULE, NEW_SET, NEW_TABLE, PORT, PROTOCOL,
        SET_IS_MAP, VERDICT, address, data, port, verdict,
    },
    socket::KeptSocket,
};

const SET_OF_RANGES: u32 = 0x4;
/// Behind the end of a range.
const ELEMENT_ENDS_RANGE: u32 = 1;
/// How many elements go into one message: an attribute is at most 64 KiB long.
const ELEMENTS_MAX: usize = 200;
const META_OUTPUT: u32 = 7;
const META_INPUT: u32 = 6;
const META_FAMILY: u32 = 15;
const ICMPV6: u8 = 58;
const NETWORK: u32 = 1;
const TRANSPORT: u32 = 2;
/// In the header of IPv6.
const PAYLOAD_LENGTH_AT: u32 = 4;
const HOP_LIMIT_AT: u32 = 7;
const GREATER_OR_EQUAL: u32 = 5;
const LESS_OR_EQUAL: u32 = 3;
/// Bits of a connection's state: established, related.
const STATE_OF_REPLIES: u32 = 2 | 4;

/// The table of one node. Another's are never touched.
#[derive(Clone, Debug)]
pub struct PolicyRules {
    table: String,
    bridge: String,
    socket: KeptSocket,
}

impl PolicyRules {
    pub fn new(layout: &Layout) -> Self {
        Self { table: layout.policy_table(), bridge: layout.bridge.clone(), socket: KeptSocket::default() }
    }

    /// Is the table there? Somebody may have emptied the whole ruleset.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub async fn is_there(&self) -> Result<bool, MachineError> {
        is_there(&self.table).await
    }

    /// Does all of it at once, or nothing.
    ///
    /// # Errors
    /// The kernel refuses; the error names the first change that it did not take.
    pub async fn apply(&self, changes: Vec<Change>) -> Result<(), MachineError> {
        if changes.is_empty() {
            return Ok(());
        }
        let this = self.clone();
        blocking("change the packet rules of policies", move || this.commit(&changes)).await
    }

    /// Makes the kernel forget flows of addresses that are free again: who is given one has let nothing through yet. Gives how many.
    ///
    /// # Errors
    /// The kernel does not answer.
    pub async fn forget(&self, addresses: BTreeSet<IpAddr>) -> Result<usize, MachineError> {
        if addresses.is_empty() {
            return Ok(0);
        }
        blocking("forget flows", move || flows::forget(&flows::Ends(addresses))).await
    }

    /// Takes the table away. Harmless where it is gone.
    ///
    /// # Errors
    /// The kernel refuses.
    pub async fn remove(&self) -> Result<(), MachineError> {
        self.apply(vec![Change::Table, Change::DropTable]).await
    }

    pub(super) fn commit(&self, changes: &[Change]) -> io::Result<()> {
        let (messages, of) = self.messages(changes);
        self.socket.commit(&Batch::of_messages(INET, &messages)).map_err(|refusal| {
            let change = refusal.at.and_then(|it| of.get(it.checked_sub(1)?)).and_then(|it| changes.get(*it));
            let what = change.map(|it| format!(" at \"{it}\"")).unwrap_or_default();
            io::Error::new(refusal.error.kind(), format!("{}{what}", refusal.error))
        })
    }

    /// With the number of the change behind each.
    fn messages(&self, changes: &[Change]) -> (Vec<Message>, Vec<usize>) {
        let (mut messages, mut of) = (Vec::new(), Vec::new());
        let mut at = 0;
        while at < changes.len() {
            let n = together(&changes[at..]);
            for message in self.encode(&changes[at..at + n]) {
                messages.push(message);
                of.push(at);
            }
            at += n;
        }
        (messages, of)
    }

    /// One change, or several of the elements of one set.
    fn encode(&self, changes: &[Change]) -> Vec<Message> {
        match &changes[0] {
            Change::Table => vec![self.message(NEW_TABLE, CREATE, |_| {})],
            Change::DropTable => vec![self.message(DEL_TABLE, 0, |_| {})],
            Change::Set(set) => vec![self.message(NEW_SET, CREATE, |it| describe(it, *set))],
            Change::DropSet(set) => vec![self.message(DEL_SET, 0, |it| it.text(NAME_OF_SET, &set.name()))],
            Change::Base(direction) => vec![self.message(NEW_CHAIN, CREATE, |it| base(it, *direction))],
            // Made, if it is not there, and emptied.
            Change::Chain(name) => vec![
                self.message(NEW_CHAIN, CREATE, |it| it.text(NAME_OF_CHAIN, name)),
                self.message(DEL_RULE, 0, |it| it.text(2, name)),
            ],
            Change::DropChain(name) => vec![self.message(DEL_CHAIN, 0, |it| it.text(NAME_OF_CHAIN, name))],
            Change::Rule(chain, rule) => vec![self.message(NEW_RULE, CREATE | APPEND, |it| {
                it.text(2, chain);
                it.nest(4, |it| rule.iter().for_each(|term| self.term(term, &mut List(it))));
            })],
            Change::Add(set, ..) => vec![self.message(NEW_ELEMENT, CREATE, |it| elements(it, *set, changes))],
            Change::Remove(set, _) => vec![self.message(DEL_ELEMENT, 0, |it| elements(it, *set, changes))],
        }
    }

    /// The table's name is the first attribute of everything.
    fn message(&self, kind: u16, flags: u16, fill: impl FnOnce(&mut Bytes)) -> Message {
        let mut body = Bytes::default();
        body.text(1, &self.table);
        fill(&mut body);
        Message { kind, flags, body }
    }

    fn term(&self, term: &Term, list: &mut List<'_>) {
        match term {
            Term::Family(family) => {
                list.load_meta(META_FAMILY, FIRST);
                list.compare(EQUAL, &[family_number(*family)]);
            }
            Term::NotOnBridge(direction) => {
                let mut padded = self.bridge.as_bytes().to_vec();
                padded.resize(16, 0);
                list.load_meta(if *direction == Direction::Egress { META_INPUT } else { META_OUTPUT }, FIRST);
                list.compare(NOT_EQUAL, &padded);
            }
            Term::Reply => list.connection_is(STATE_OF_REPLIES),
            Term::Icmp6 { first, last, hop_limit, payload_max } => {
                list.load_packet(NETWORK, HOP_LIMIT_AT, 1, FIRST);
                list.compare(EQUAL, &[*hop_limit]);
                list.load_packet(NETWORK, PAYLOAD_LENGTH_AT, 2, FIRST);
                list.compare(LESS_OR_EQUAL, &payload_max.to_be_bytes());
                list.load_meta(META_PROTOCOL, FIRST);
                list.compare(EQUAL, &[ICMPV6]);
                list.load_packet(TRANSPORT, 0, 1, FIRST);
                list.compare(GREATER_OR_EQUAL, &[*first]);
                list.compare(LESS_OR_EQUAL, &[*last]);
            }
            Term::Protocol(protocol) => {
                list.load_meta(META_PROTOCOL, FIRST);
                list.compare(EQUAL, &[protocol.number()]);
            }
            Term::Ports { first, last } => {
                list.load_packet(TRANSPORT, 2, 2, FIRST);
                if first == last {
                    list.compare(EQUAL, &first.to_be_bytes());
                } else {
                    list.compare(GREATER_OR_EQUAL, &first.to_be_bytes());
                    list.compare(LESS_OR_EQUAL, &last.to_be_bytes());
                }
            }
            Term::In(side, set) => {
                list.load_address(*side, set.family(), FIRST);
                list.look_up(&set.name(), None);
            }
            Term::NamedPort(set) => {
                list.load(Lookup::Frontend, set.family());
                list.look_up(&set.name(), None);
            }
            Term::Itself(set) => {
                list.load(Lookup::Pair, set.family());
                list.look_up(&set.name(), None);
            }
            Term::Group(direction, family) => {
                list.load_address(direction.own_side(), *family, FIRST);
                list.look_up(&Set::Groups(*direction, *family).name(), Some(VERDICT_REGISTER));
            }
            Term::Accept => list.end(ACCEPT, None),
            Term::Drop => {
                list.count();
                list.end(DROP, None);
            }
            Term::Jump(chain) => list.end(JUMP, Some(chain)),
        }
    }
}

/// How many of the first changes are elements for the same set, and go together.
fn together(changes: &[Change]) -> usize {
    let same = changes.iter().zip(&changes[1..]).take_while(|pair| match pair {
        (Change::Add(a, ..), Change::Add(b, ..)) | (Change::Remove(a, _), Change::Remove(b, _)) => a == b,
        _ => false,
    });
    (same.count() + 1).min(ELEMENTS_MAX)
}

fn base(bytes: &mut Bytes, direction: Direction) {
    const FORWARD: u32 = 2;
    // Behind the filters of Services. What one chain accepts the other still sees.
    let priority: i32 = if direction == Direction::Egress { 5 } else { 6 };
    bytes.text(NAME_OF_CHAIN, direction.word());
    bytes.nest(4, |it| {
        it.number(1, FORWARD);
        it.attribute(2, &priority.to_be_bytes());
    });
    bytes.number(5, u32::try_from(ACCEPT).expect("1"));
    bytes.text(7, "filter");
}

fn describe(bytes: &mut Bytes, set: Set) {
    let of = |family| if family == Family::V4 { (ADDRESS4, 4) } else { (ADDRESS6, 16) };
    let row = |parts: &[(u32, u32)]| parts.iter().fold((0, 0), |(kind, length), it| (kind << 6 | it.0, length + it.1));
    let (key, value, flags) = match set {
        Set::Groups(_, family) => (of(family), Some((VERDICT, 0)), SET_IS_MAP),
        Set::Itself(family) => (row(&[of(family), of(family)]), None, 0),
        Set::Pods(family, _) => (of(family), None, 0),
        Set::Blocks(family, _) => (of(family), None, SET_OF_RANGES),
        Set::NamedPort(family, _) => (row(&[of(family), (PROTOCOL, 4), (PORT, 4)]), None, 0),
    };
    bytes.text(NAME_OF_SET, &set.name());
    bytes.number(3, flags);
    bytes.number(4, key.0);
    bytes.number(5, key.1);
    if let Some((kind, length)) = value {
        bytes.number(6, kind);
        bytes.number(7, length);
    }
    // Asked for, and of use only to whoever names sets by number within a batch.
    bytes.number(10, 1);
}

fn elements(bytes: &mut Bytes, set: Set, changes: &[Change]) {
    bytes.text(2, &set.name());
    bytes.nest(3, |bytes| {
        for change in changes {
            let (key, value) = match change {
                Change::Add(_, key, value) => (key, Some(value)),
                Change::Remove(_, key) => (key, None),
                _ => continue,
            };
            for (key, flags) in encoded(key) {
                bytes.nest(LIST_ELEMENT, |bytes| {
                    bytes.nest(1, |it| data(it, &key));
                    match value {
                        None | Some(Value::Nothing) => {}
                        Some(Value::Accept) => bytes.nest(2, |it| verdict(it, ACCEPT, None)),
                        Some(Value::Goto(chain)) => bytes.nest(2, |it| verdict(it, GOTO, Some(chain))),
                    }
                    if flags != 0 {
                        bytes.number(3, flags);
                    }
                });
            }
        }
    });
}

/// The key as the kernel has it, with the flags of its element. A range is its first address, and the one behind its last.
fn encoded(key: &ElementKey) -> Vec<(Vec<u8>, u32)> {
    match *key {
        ElementKey::Address(it) => vec![(address(it), 0)],
        ElementKey::Pair(it) => vec![([address(it), address(it)].concat(), 0)],
        ElementKey::Port { address: it, protocol, port: number } => {
            vec![([address(it), vec![protocol.number(), 0, 0, 0], port(number)].concat(), 0)]
        }
        ElementKey::Range { first, last } => {
            let mut bounds = vec![(address(first), 0)];
            bounds.extend(behind(address(last)).map(|it| (it, ELEMENT_ENDS_RANGE)));
            bounds
        }
    }
}

/// Nothing behind the last address there is.
fn behind(mut address: Vec<u8>) -> Option<Vec<u8>> {
    for byte in address.iter_mut().rev() {
        let (next, is_over) = byte.overflowing_add(1);
        *byte = next;
        if !is_over {
            return Some(address);
        }
    }
    None
}

#[cfg(test)]
mod tests;
