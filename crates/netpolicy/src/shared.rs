//! What policies share: sets of peers, of blocks and of named ports, each by its content, with the number in its name.

use std::collections::{BTreeMap, BTreeSet};

use corten_meta::Key;

use crate::{
    blocks::Ranges,
    compiled::{NamedPort, Peers, PortOwners, Scope, Selectors, SetsOf, Wanted, WantedPeer},
    elements::Elements,
    numbers::Numbers,
    projections::Pod,
    room::Rooms,
    rules::{Direction, ElementKey, Family, Set, Value},
};

/// The policies that isolate a Pod in one direction, by their chains.
pub(crate) type Group = (Direction, BTreeSet<String>);

#[derive(Default)]
pub(crate) struct Shared {
    peers: Numbers<Peers>,
    /// By the number of the peers.
    selectors: BTreeMap<u32, Selectors>,
    ports: Numbers<NamedPort>,
    blocks: Numbers<(Family, Ranges)>,
    pub(crate) policies: Numbers<Key>,
    pub(crate) groups: Numbers<Group>,
    pub(crate) rooms: Rooms,
}

/// What one policy makes new of it.
#[derive(Default)]
pub(crate) struct Fresh {
    pub(crate) sets: BTreeSet<Set>,
    peers: BTreeMap<u32, Peers>,
    ports: BTreeMap<u32, NamedPort>,
}

impl Fresh {
    /// Has nothing in it where Pods stand.
    pub(crate) fn is_empty(&self) -> bool {
        self.peers.is_empty() && self.ports.is_empty()
    }
}

/// A Pod as peers see it.
pub(crate) struct Member<'a> {
    pub(crate) pod: &'a Pod,
    pub(crate) addresses: &'a [std::net::IpAddr],
    /// The labels of all namespaces that are known.
    pub(crate) namespaces: &'a BTreeMap<String, BTreeMap<String, String>>,
}

pub(crate) type Places = BTreeSet<(Set, ElementKey)>;

impl Shared {
    /// Gives all that a policy of a namespace names a number.
    pub(crate) fn acquire(
        &mut self,
        namespace: &str,
        wanted: &Wanted,
        mut selectors: BTreeMap<Peers, Selectors>,
        elements: &mut Elements,
    ) -> Fresh {
        let mut fresh = Fresh::default();
        self.rooms.add_rules(namespace, wanted.rule_cost());
        for peer in wanted.peers() {
            match peer {
                WantedPeer::Pods(peers) => {
                    let (number, is_new) = self.peers.acquire(peers);
                    if is_new {
                        fresh.peers.insert(number, peers.clone());
                        self.selectors.extend(selectors.remove(peers).map(|it| (number, it)));
                    }
                    self.enter(namespace, both(number, Set::Pods), is_new, &mut fresh);
                }
                WantedPeer::Blocks(family, ranges) => {
                    let (number, is_new) = self.blocks.acquire(&(*family, ranges.clone()));
                    let set = Set::Blocks(*family, number);
                    self.rooms.enter(namespace, set, ranges.len());
                    if is_new {
                        fresh.sets.insert(set);
                        for (first, last) in ranges {
                            elements.claim(set, ElementKey::Range { first: *first, last: *last }, Value::Nothing);
                        }
                    }
                }
            }
        }
        for port in wanted.named_ports() {
            let (number, is_new) = self.ports.acquire(port);
            if is_new {
                fresh.ports.insert(number, port.clone());
            }
            self.enter(namespace, both(number, Set::NamedPort), is_new, &mut fresh);
        }
        fresh
    }

    fn enter(&mut self, namespace: &str, sets: [Set; 2], is_new: bool, fresh: &mut Fresh) {
        for set in sets {
            self.rooms.enter(namespace, set, 0);
            fresh.sets.extend(is_new.then_some(set));
        }
    }

    pub(crate) fn release(&mut self, namespace: &str, wanted: &Wanted, elements: &mut Elements) {
        self.rooms.remove_rules(namespace, wanted.rule_cost());
        for set in self.sets_of(wanted).collect::<Vec<_>>() {
            self.rooms.leave(namespace, set);
        }
        for peer in wanted.peers() {
            match peer {
                WantedPeer::Pods(peers) => self.peers.release(peers),
                WantedPeer::Blocks(family, ranges) => {
                    let key = (*family, ranges.clone());
                    let number = self.blocks.number(&key);
                    self.blocks.release(&key);
                    if let Some(number) = number.filter(|_| self.blocks.number(&key).is_none()) {
                        let set = Set::Blocks(*family, number);
                        for (first, last) in ranges {
                            elements.release(set, ElementKey::Range { first: *first, last: *last });
                        }
                    }
                }
            }
        }
        wanted.named_ports().for_each(|it| self.ports.release(it));
    }

    /// The sets that a policy names, each as often as it names it.
    pub(crate) fn sets_of(&self, wanted: &Wanted) -> impl Iterator<Item = Set> {
        let of_peer = |it: &WantedPeer| match it {
            WantedPeer::Pods(peers) => both(self.pods(peers), Set::Pods).to_vec(),
            WantedPeer::Blocks(family, ranges) => vec![Set::Blocks(*family, self.blocks(*family, ranges))],
        };
        let ports = wanted.named_ports().flat_map(|it| both(self.named_port(it), Set::NamedPort));
        wanted.peers().flat_map(of_peer).chain(ports)
    }

    /// The sets that nobody names any more.
    pub(crate) fn settle(&mut self) -> BTreeSet<Set> {
        let peers = self.peers.settle();
        self.selectors.retain(|number, _| !peers.contains_key(number));
        let mut gone: BTreeSet<Set> = peers.into_keys().flat_map(|it| both(it, Set::Pods)).collect();
        gone.extend(self.ports.settle().into_keys().flat_map(|it| both(it, Set::NamedPort)));
        gone.extend(self.blocks.settle().into_iter().map(|(number, (family, _))| Set::Blocks(family, number)));
        gone
    }

    /// All sets that policies name now.
    pub(crate) fn sets(&self) -> BTreeSet<Set> {
        let peers = self.peers.iter().flat_map(|(_, it)| both(it, Set::Pods));
        let ports = self.ports.iter().flat_map(|(_, it)| both(it, Set::NamedPort));
        let blocks = self.blocks.iter().map(|((family, _), it)| Set::Blocks(*family, it));
        peers.chain(ports).chain(blocks).collect()
    }

    /// Where a Pod stands in all sets.
    pub(crate) fn places(&self, member: &Member<'_>) -> Places {
        let peers = self.peers.iter().filter(|(peers, number)| self.selects(peers, *number, member));
        let mut places: Places = peers.flat_map(|(_, number)| member.in_pods(number)).collect();
        places.extend(self.ports.iter().flat_map(|(port, number)| self.in_ports(port, number, member)));
        places
    }

    /// Where a Pod stands in what is new.
    pub(crate) fn fresh_places(&self, fresh: &Fresh, member: &Member<'_>) -> Places {
        let peers = fresh.peers.iter().filter(|(number, peers)| self.selects(peers, **number, member));
        let mut places: Places = peers.flat_map(|(number, _)| member.in_pods(*number)).collect();
        places.extend(fresh.ports.iter().flat_map(|(number, port)| self.in_ports(port, *number, member)));
        places
    }

    fn in_ports(&self, port: &NamedPort, number: u32, member: &Member<'_>) -> Places {
        let places = member.in_ports(port, number);
        let is_selected = |it: &Peers| self.peers.number(it).is_some_and(|number| self.selects(it, number, member));
        let is_owner = match &port.owners {
            _ if places.is_empty() => false,
            PortOwners::Namespace(it) => *it == member.pod.metadata.namespace,
            PortOwners::Peers(peers) => peers.iter().any(is_selected),
            PortOwners::Anybody => true,
        };
        if is_owner { places } else { Places::new() }
    }

    fn selects(&self, peers: &Peers, number: u32, member: &Member<'_>) -> bool {
        if member.addresses.is_empty() {
            return false;
        }
        if let Scope::Of(namespace) = &peers.namespaces
            && *namespace != member.pod.metadata.namespace
        {
            return false;
        }
        let Some(selectors) = self.selectors.get(&number) else { return false };
        let is_in_namespace = match &selectors.namespaces {
            None => true,
            Some(selector) => {
                let labels = member.namespaces.get(&member.pod.metadata.namespace);
                labels.is_some_and(|it| selector.matches(it))
            }
        };
        is_in_namespace && selectors.pods.matches(&member.pod.metadata.labels)
    }
}

fn both(number: u32, make: fn(Family, u32) -> Set) -> [Set; 2] {
    Family::BOTH.map(|it| make(it, number))
}

impl Member<'_> {
    fn in_pods(&self, number: u32) -> impl Iterator<Item = (Set, ElementKey)> {
        self.addresses.iter().map(move |it| (Set::Pods(Family::of(*it), number), ElementKey::Address(*it)))
    }

    fn in_ports(&self, port: &NamedPort, number: u32) -> Places {
        let numbers = self.pod.numbers_of(&port.name, port.protocol);
        let places = numbers.into_iter().flat_map(|it| {
            self.addresses.iter().map(move |address| {
                let key = ElementKey::Port { address: *address, protocol: port.protocol, port: it };
                (Set::NamedPort(Family::of(*address), number), key)
            })
        });
        places.collect()
    }
}

impl SetsOf for Shared {
    fn pods(&self, peers: &Peers) -> u32 {
        self.peers.number(peers).expect("a policy's peers have a number while it is there")
    }

    fn blocks(&self, family: Family, ranges: &Ranges) -> u32 {
        self.blocks.number(&(family, ranges.clone())).expect("a policy's blocks have a number while it is there")
    }

    fn named_port(&self, port: &NamedPort) -> u32 {
        self.ports.number(port).expect("a policy's ports have a number while it is there")
    }
}
