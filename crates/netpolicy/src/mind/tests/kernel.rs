//! A kernel that takes only what the real one would (nothing named that is not there, nothing taken away that is named), and does
//! with packets what it was told.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use crate::rules::{Change, Direction, ElementKey, Family, Protocol, Rule, Set, Side, Term, Value};

#[derive(Debug, Default, PartialEq, Clone)]
pub(super) struct Kernel {
    has_table: bool,
    chains: BTreeMap<String, Vec<Rule>>,
    sets: BTreeSet<Set>,
    elements: BTreeMap<(Set, ElementKey), Value>,
}

/// The first packet of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) from: IpAddr,
    pub(super) to: IpAddr,
    pub(super) protocol: Protocol,
    pub(super) port: u16,
    pub(super) from_bridge: bool,
    pub(super) to_bridge: bool,
}

enum Verdict {
    Accept,
    Drop,
}

impl Kernel {
    pub(super) fn apply(&mut self, changes: &[Change]) {
        changes.iter().for_each(|it| self.change(it));
    }

    fn change(&mut self, change: &Change) {
        match change {
            Change::DropTable => *self = Self::default(),
            Change::Table => self.has_table = true,
            Change::Set(set) => assert!(self.has_table && self.sets.insert(*set), "{change}: there is one"),
            Change::DropSet(set) => {
                assert!(
                    !self.chains.values().flatten().flatten().any(|it| sets_of(it).contains(set)),
                    "{change}: used"
                );
                assert!(self.sets.remove(set), "{change}: not there");
                self.elements.retain(|it, _| it.0 != *set);
            }
            Change::Base(direction) => drop(self.chains.insert(direction.word().to_owned(), Vec::new())),
            Change::Chain(name) => drop(self.chains.insert(name.clone(), Vec::new())),
            Change::Rule(chain, rule) => {
                for term in rule {
                    assert!(sets_of(term).is_subset(&self.sets), "{change}");
                    assert!(!matches!(term, Term::Jump(it) if !self.chains.contains_key(it)), "{change}");
                }
                self.chains.get_mut(chain).expect("a chain").push(rule.clone());
            }
            Change::DropChain(name) => {
                assert!(!self.elements.values().any(|it| *it == Value::Goto(name.clone())), "{change}: in a map");
                let mut terms = self.chains.values().flatten().flatten();
                assert!(!terms.any(|it| *it == Term::Jump(name.clone())), "{change}: used");
                assert!(self.chains.remove(name).expect("a chain").is_empty(), "{change}: not empty");
            }
            Change::Add(set, key, value) => {
                assert!(self.sets.contains(set), "{change}");
                assert!(!matches!(value, Value::Goto(it) if !self.chains.contains_key(it)), "{change}");
                assert!(self.elements.insert((*set, *key), value.clone()).is_none(), "{change}: there is one");
            }
            Change::Remove(set, key) => {
                assert!(self.elements.remove(&(*set, *key)).is_some(), "{change}: not there");
            }
        }
    }

    /// Is the packet let through?
    pub(super) fn lets_through(&self, packet: &Packet) -> bool {
        Direction::BOTH.iter().all(|it| !matches!(self.walk(it.word(), packet), Some(Verdict::Drop)))
    }

    /// `None`: the chain's caller goes on.
    fn walk(&self, chain: &str, packet: &Packet) -> Option<Verdict> {
        self.chains[chain].iter().find_map(|rule| self.rule(rule, packet))
    }

    fn rule(&self, rule: &Rule, packet: &Packet) -> Option<Verdict> {
        for term in rule {
            let matches = match term {
                Term::Accept => return Some(Verdict::Accept),
                Term::Drop => return Some(Verdict::Drop),
                Term::Jump(chain) => return self.walk(chain, packet),
                Term::Group(direction, family) => {
                    let address = ElementKey::Address(packet.at(direction.own_side()));
                    return match self.elements.get(&(Set::Groups(*direction, *family), address))? {
                        Value::Accept => Some(Verdict::Accept),
                        // What comes to the end of a chain that was gone to leaves the base chain: it is accepted.
                        Value::Goto(chain) => self.walk(chain, packet).or(Some(Verdict::Accept)),
                        Value::Nothing => panic!("a verdict is looked up"),
                    };
                }
                Term::Family(family) => Family::of(packet.from) == *family,
                Term::NotOnBridge(Direction::Egress) => !packet.from_bridge,
                Term::NotOnBridge(Direction::Ingress) => !packet.to_bridge,
                Term::Reply | Term::Icmp6 { .. } => false,
                Term::Protocol(it) => packet.protocol == *it,
                Term::Ports { first, last } => (*first..=*last).contains(&packet.port),
                Term::In(side, set) => self.holds(*set, packet.at(*side)),
                Term::NamedPort(set) => {
                    let key = ElementKey::Port { address: packet.to, protocol: packet.protocol, port: packet.port };
                    self.elements.contains_key(&(*set, key))
                }
                Term::Itself(set) => {
                    packet.from == packet.to && self.elements.contains_key(&(*set, ElementKey::Pair(packet.to)))
                }
            };
            if !matches {
                return None;
            }
        }
        panic!("a rule ends with what becomes of the packet: {rule:?}")
    }

    fn holds(&self, set: Set, address: IpAddr) -> bool {
        assert_eq!(set.family(), Family::of(address), "a rule asks for the family before");
        self.elements.keys().filter(|it| it.0 == set).any(|it| match it.1 {
            ElementKey::Address(it) => it == address,
            ElementKey::Range { first, last } => (first..=last).contains(&address),
            _ => false,
        })
    }

    pub(super) fn n_of(&self, is_counted: impl Fn(&Set) -> bool) -> usize {
        self.sets.iter().filter(|it| is_counted(it)).count()
    }

    pub(super) fn chains(&self) -> impl Iterator<Item = &String> {
        self.chains.keys()
    }
}

impl Packet {
    fn at(&self, side: Side) -> IpAddr {
        if side == Side::Source { self.from } else { self.to }
    }
}

fn sets_of(term: &Term) -> BTreeSet<Set> {
    match term {
        Term::In(_, set) | Term::NamedPort(set) | Term::Itself(set) => [*set].into(),
        Term::Group(direction, family) => [Set::Groups(*direction, *family)].into(),
        _ => BTreeSet::new(),
    }
}
