//! Services and EndpointSlices in, packet rules out.
//!
//! A step takes a batch of news and gives one transaction, whose size goes with the news and not with the cluster: each
//! Service has chains of its own, reached through maps, and what differs from before is all that is said.

mod announcements;
mod base_chains;
mod claims;
mod compiled;
mod config;
mod desired;
mod endpoints;
mod name_server;
mod node_routes;
pub mod projections;
mod reserved;
pub mod rules;
mod slots;
#[cfg(test)]
mod tests;
mod wireguard;

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use corten_meta::{Key, Time, address::Cidr};
use corten_reconcile::{Actor, Decision, Wait};

pub use announcements::{
    ANNOUNCED_TIMES, ANSWER_LIFETIME, Announcement, Answer, BalancerNode, announcements, answering,
};
use claims::{Before, Claims};
use compiled::{Compiled, Rows};
pub use config::Config;
pub use desired::Frontend;
use desired::{Around, Desired};
pub use node_routes::{LocalNode, PlacedNode, PodNetworkMode, PodRoute, PodRoutes, RefusedWay, TunnelEnd, pod_routes};
use projections::{EndpointSlice, Service, ServiceCidr};
use reserved::PoolOwners;
use rules::{Backend, Change, Element, ElementKey, Family, Map, Protocol};
pub use wireguard::{PeerChange, PresentPeer, PublicKey, WIREGUARD_PORT, WireGuardPeer, WireGuardTunnel, peer_changes};

/// The loop's name in journals.
pub const NAME: &str = "kube-proxy";

#[derive(Clone, Debug)]
pub enum Event {
    Service(Box<Service>),
    ServiceGone(Key),
    Slice(Box<EndpointSlice>),
    SliceGone(Key),
    /// The node's zone; empty where it has none.
    Zone(String),
    /// Where the cluster's Services may have their addresses.
    Range(Box<ServiceCidr>),
    RangeGone(String),
    /// The ports of the node's addresses that processes of the machine listen at.
    Listening(BTreeSet<(Protocol, u16)>),
    /// Where names are answered on this node, once all of them are known there.
    NameServer(Option<Backend>),
}

/// Flows that the kernel must forget: their next packet is to be led anew.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stale {
    pub front: Frontend,
    /// Whom they were led to; `None`: to nobody, there was no Service yet.
    pub backend: Option<Backend>,
}

/// A port at which a load balancer asks whether this node has endpoints.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Health {
    pub port: u16,
    pub service: Key,
    pub local_endpoints: usize,
}

/// What one batch of news leads to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// To be done at once, or not at all.
    pub changes: Vec<Change>,
    pub stale: Vec<Stale>,
    /// All there are, where that changed.
    pub health: Option<Vec<Health>>,
    pub decisions: Vec<(Key, Decision)>,
    pub forgotten: Vec<Key>,
    /// When that began whose consequences the news of endpoints are, by the family of their addresses; for the metrics.
    pub triggers: Vec<(Family, Time)>,
}

/// What the kernel holds in the node's table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Existing {
    pub chains: Vec<String>,
    pub sets: Vec<String>,
}

#[derive(Default)]
struct Entry {
    service: Option<Box<Service>>,
    slices: BTreeMap<String, Box<EndpointSlice>>,
    desired: Desired,
    compiled: Compiled,
    rank: Option<Time>,
}

/// The mind. See the crate's documentation.
#[derive(Default)]
pub struct Proxy {
    config: Config,
    zone: String,
    name_server: Option<Backend>,
    /// By the names of their objects.
    ranges: BTreeMap<String, Vec<Cidr>>,
    pool: PoolOwners,
    entries: BTreeMap<Key, Entry>,
    /// Whose each slice is, by its own key.
    slices: BTreeMap<Key, Key>,
    rows: Rows,
    claims: Claims,
    health: BTreeMap<Key, Health>,
    /// Of the news since the last step.
    triggers: Vec<(Family, Time)>,
}

impl Proxy {
    pub fn new(config: Config) -> Self {
        Self { config, ..Self::default() }
    }

    /// How many Services it knows, and how many elements its maps hold: for `/metrics`.
    pub fn counts(&self) -> (usize, usize) {
        (self.entries.values().filter(|it| it.service.is_some()).count(), self.claims.all().count())
    }

    /// Takes a batch of news in.
    pub fn step(&mut self, events: impl IntoIterator<Item = Event>) -> Step {
        let mut dirty = BTreeSet::new();
        for event in events {
            self.take_in(event, &mut dirty);
        }
        let mut step = Step { triggers: std::mem::take(&mut self.triggers), ..Step::default() };
        let mut before = Before::new();
        let (mut gone, mut bodies) = (Bodies::default(), Bodies::default());
        let mut is_news = false;
        for key in &dirty {
            self.lead(key, &mut before, (&mut gone, &mut bodies), &mut step);
            is_news |= self.note_health(key);
        }
        step.health = is_news.then(|| self.health());
        let (out, put) = self.claims.difference(&before);
        step.changes = [out, bodies.made(), put, gone.taken_away()].concat();
        // Whoever loses a place to another, or gets it, is to hear of it.
        dirty.extend(before.keys().flat_map(|it| self.claims.rivals(it)).cloned());
        for key in dirty {
            match self.entries.get(&key) {
                Some(entry) if entry.service.is_some() => {
                    step.decisions.push((key.clone(), self.decision(&key, entry)))
                }
                Some(entry) if entry.slices.is_empty() => drop(self.entries.remove(&key)),
                _ => {}
            }
        }
        step
    }

    /// Everything, for a kernel that holds this much of it: at the start, and after a transaction that failed. What goes on
    /// is not interrupted: it is one transaction, too, and clients keep their endpoints.
    pub fn whole(&self, existing: &Existing) -> Vec<Change> {
        let is_ours = existing.chains.iter().any(|it| it == base_chains::LAYOUT);
        let nothing = Existing::default();
        let mut changes = Vec::new();
        let existing = if existing.chains.is_empty() || is_ours {
            existing
        } else {
            changes.push(Change::DropTable);
            &nothing
        };
        changes.push(Change::Table);
        changes.extend(base_chains::changes(&self.config));
        changes.extend(Map::all().map(|it| Change::Empty(it.name())));
        let mut bodies = Bodies::default();
        for entry in self.entries.values() {
            bodies.chains.extend(entry.compiled.chains.iter().map(|(name, rules)| (name.clone(), rules.clone())));
            bodies.clients.extend(entry.compiled.clients.iter().map(|(name, clients)| (name.clone(), clients.clone())));
        }
        let known = |it: &&String| !bodies.chains.contains_key(*it) && !base_chains::has_chain(it);
        let old_chains: Vec<&String> = existing.chains.iter().filter(known).collect();
        let is_map = |it: &str| Map::all().any(|map| map.name() == it);
        let old_sets: Vec<&String> =
            existing.sets.iter().filter(|it| !bodies.clients.contains_key(*it) && !is_map(it)).collect();
        let mut last: Vec<Change> = old_chains.iter().map(|it| Change::Chain((*it).clone())).collect();
        last.extend(old_chains.iter().map(|it| Change::DropChain((*it).clone())));
        last.extend(old_sets.iter().map(|it| Change::DropSet((*it).clone())));
        changes.extend(bodies.made());
        changes.extend(self.claims.all());
        changes.extend(last);
        changes
    }

    /// Every front of a protocol without an end: what was led before this proxy began may have to be led anew.
    pub fn bound(&self) -> BTreeMap<Frontend, BTreeSet<Backend>> {
        let mut all: BTreeMap<Frontend, BTreeSet<Backend>> = BTreeMap::new();
        for (front, backends) in self.entries.values().flat_map(|it| &it.desired.bound) {
            all.entry(*front).or_default().extend(backends);
        }
        all
    }

    /// What there is to say of every Service.
    pub fn decisions(&self) -> Vec<(Key, Decision)> {
        let services = self.entries.iter().filter(|(_, entry)| entry.service.is_some());
        services.map(|(key, entry)| (key.clone(), self.decision(key, entry))).collect()
    }

    pub fn health(&self) -> Vec<Health> {
        self.health.values().cloned().collect()
    }

    fn take_in(&mut self, event: Event, dirty: &mut BTreeSet<Key>) {
        match event {
            Event::Service(service) => self.take_service(service, dirty),
            Event::ServiceGone(key) => {
                if let Some(entry) = self.entries.get_mut(&key) {
                    let old = entry.service.take().map(|it| it.pool_addresses()).unwrap_or_default();
                    self.note_pool(&key, old, Vec::new(), dirty);
                    dirty.insert(key);
                }
            }
            Event::Slice(slice) => self.take_slice(slice, dirty),
            Event::SliceGone(id) => self.forget_slice(&id, dirty),
            Event::Listening(ports) if ports == self.config.listening => {}
            Event::Listening(ports) => {
                self.config.listening = ports;
                dirty.extend(self.with_outside_addresses());
            }
            Event::Range(range) => {
                let cidrs = range.cidrs();
                if self.ranges.get(&range.metadata.name) != Some(&cidrs) {
                    self.ranges.insert(range.metadata.name, cidrs);
                    dirty.extend(self.with_outside_addresses());
                }
            }
            Event::RangeGone(name) => {
                if self.ranges.remove(&name).is_some() {
                    dirty.extend(self.with_outside_addresses());
                }
            }
            Event::NameServer(local_node) if local_node == self.name_server => {}
            Event::NameServer(local_node) => {
                self.name_server = local_node;
                dirty.insert(name_server::service());
            }
            Event::Zone(zone) if zone == self.zone => {}
            Event::Zone(zone) => {
                self.zone = zone;
                dirty.extend(self.entries.keys().cloned());
            }
        }
    }

    fn take_service(&mut self, service: Box<Service>, dirty: &mut BTreeSet<Key>) {
        let key = service.metadata.key();
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.service.as_ref() != Some(&service) {
            let new = service.pool_addresses();
            let old = entry.service.replace(service).map(|it| it.pool_addresses()).unwrap_or_default();
            self.note_pool(&key, old, new, dirty);
            dirty.insert(key);
        }
    }

    fn take_slice(&mut self, slice: Box<EndpointSlice>, dirty: &mut BTreeSet<Key>) {
        let id = slice.metadata.key();
        let owner = slice.service();
        if self.slices.get(&id) != owner.as_ref() {
            self.forget_slice(&id, dirty);
        }
        let Some(owner) = owner else { return };
        let held = &mut self.entries.entry(owner.clone()).or_default().slices;
        let known = held.get(&id.name);
        if known != Some(&slice) {
            let triggered_at = slice.metadata.triggered_at;
            // Each trigger has one change of the slice; what else is changed in it was triggered by nothing that is told.
            if known.and_then(|it| it.metadata.triggered_at) != triggered_at {
                self.triggers.extend(slice.family().zip(triggered_at));
            }
            held.insert(id.name.clone(), slice);
            self.slices.insert(id, owner.clone());
            dirty.insert(owner);
        }
    }

    /// Whoever calls an address external that a Service now has from the pool, or has no longer, is led otherwise.
    fn note_pool(&mut self, key: &Key, old: Vec<IpAddr>, new: Vec<IpAddr>, dirty: &mut BTreeSet<Key>) {
        let changed = self.pool.change(key, old, new);
        if changed.is_empty() {
            return;
        }
        let names = |it: &Entry| {
            it.service.as_ref().is_some_and(|it| it.external_addresses().iter().any(|it| changed.contains(it)))
        };
        dirty.extend(self.entries.iter().filter(|(_, it)| names(it)).map(|(key, _)| key.clone()));
    }

    /// The Services of which not all addresses are the cluster's to give.
    fn with_outside_addresses(&self) -> impl Iterator<Item = Key> {
        let has_outside = |it: &Entry| it.service.as_ref().is_some_and(|it| it.has_outside_addresses());
        self.entries.iter().filter(move |(_, it)| has_outside(it)).map(|(key, _)| key.clone())
    }

    fn forget_slice(&mut self, id: &Key, dirty: &mut BTreeSet<Key>) {
        if let Some(owner) = self.slices.remove(id)
            && let Some(entry) = self.entries.get_mut(&owner)
        {
            entry.slices.remove(&id.name);
            dirty.insert(owner);
        }
    }

    /// Finds what one Service wants now, and how that differs from before.
    fn lead(&mut self, key: &Key, before: &mut Before, (gone, bodies): (&mut Bodies, &mut Bodies), step: &mut Step) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let around = Around { config: &self.config, zone: &self.zone, ranges: &self.ranges, pool: &self.pool };
        let here = |it| name_server::led_here(it, self.name_server, &self.config.node_name);
        let slices: Vec<_> = entry.slices.values().map(|it| here(&**it)).collect();
        let slices: Vec<&EndpointSlice> = slices.iter().map(|it| &**it).collect();
        let service = entry.service.as_deref();
        let desired = service.map(|it| desired::desired(it, &slices, &around)).unwrap_or_default();
        let compiled = self.rows.lay(&desired, &entry.compiled);
        // A Service that is made anew under its name is as old as it says.
        let rank = service.map_or(entry.rank, |it| it.metadata.creation_timestamp);
        let old = std::mem::replace(&mut entry.compiled, compiled);
        let none = BTreeMap::new();
        if rank != entry.rank {
            self.claims.change(&(entry.rank, key.clone()), &[], &old.elements, &none, before);
        }
        let held = if rank == entry.rank { &old.elements } else { &none };
        let own = service.map(|it| [it.addresses(), it.pool_addresses()].concat()).unwrap_or_default();
        self.claims.change(&(rank, key.clone()), &own, held, &entry.compiled.elements, before);
        entry.rank = rank;
        step.stale.extend(stale(&entry.desired, &desired));
        entry.desired = desired;
        bodies.differ(&old, &entry.compiled);
        gone.lack(&old, &entry.compiled);
        if service.is_none() {
            step.forgotten.push(key.clone());
        }
    }

    /// Is there anything new to answer to load balancers?
    fn note_health(&mut self, key: &Key) -> bool {
        let health = self.entries.get(key).and_then(|it| it.desired.health);
        let health = health.map(|(port, local_endpoints)| Health { port, service: key.clone(), local_endpoints });
        if self.health.get(key) == health.as_ref() {
            return false;
        }
        match health {
            Some(health) => drop(self.health.insert(key.clone(), health)),
            None => drop(self.health.remove(key)),
        }
        true
    }

    fn decision(&self, key: &Key, entry: &Entry) -> Decision {
        let mut waits = entry.desired.waits.clone();
        for element in entry.desired.elements.keys() {
            if let Some(other) = self.claims.taken(element, key) {
                waits.push(taken_by(element, other, key));
            }
        }
        Decision { by: NAME.to_owned(), effects: entry.desired.says.clone(), waits, ..Decision::default() }
    }
}

/// Who may not read another namespace is not told what is in it.
fn taken_by(element: &Element, other: &Key, key: &Key) -> Wait {
    let is_known = other.namespace == key.namespace;
    let who = if is_known { format!("service {other}") } else { "a service of another namespace".to_owned() };
    let message = format!("{} is led to {who}, which comes first", local_node(element));
    let wait = Wait::new("AddressTaken", message, Actor::Author);
    if is_known { wait.on("service", &other.to_string()) } else { wait }
}

/// `10.0.0.1 . tcp . 80` as people write it.
fn local_node(element: &Element) -> String {
    match element.key {
        ElementKey::Frontend { address, protocol, port } => {
            format!("{}/{}", Backend { address, port }, protocol.word().to_uppercase())
        }
        ElementKey::Port { protocol, port } => format!("node port {port}/{}", protocol.word().to_uppercase()),
        other => other.to_string(),
    }
}

/// Flows of fronts that are new, and those to endpoints that went.
fn stale(old: &Desired, new: &Desired) -> BTreeSet<Stale> {
    let mut stale = BTreeSet::new();
    let none = BTreeSet::new();
    for (front, backends) in &old.bound {
        let now = new.bound.get(front).unwrap_or(&none);
        stale.extend(backends.difference(now).map(|it| Stale { front: *front, backend: Some(*it) }));
    }
    for front in new.bound.iter().filter(|(_, backends)| !backends.is_empty()).map(|it| it.0) {
        if old.bound.get(front).is_none_or(BTreeSet::is_empty) {
            stale.insert(Stale { front: *front, backend: None });
        }
    }
    stale
}

/// Chains and sets of a batch.
#[derive(Default)]
struct Bodies {
    chains: BTreeMap<String, Vec<rules::Rule>>,
    clients: BTreeMap<String, rules::Clients>,
}

impl Bodies {
    fn differ(&mut self, old: &Compiled, new: &Compiled) {
        let chains = new.chains.iter().filter(|(name, rules)| old.chains.get(*name) != Some(rules));
        self.chains.extend(chains.map(|(name, rules)| (name.clone(), rules.clone())));
        let clients = new.clients.iter().filter(|(name, _)| !old.clients.contains_key(*name));
        self.clients.extend(clients.map(|(name, it)| (name.clone(), it.clone())));
    }

    fn lack(&mut self, old: &Compiled, new: &Compiled) {
        let chains = old.chains.keys().filter(|it| !new.chains.contains_key(*it));
        self.chains.extend(chains.map(|it| (it.clone(), Vec::new())));
        let clients = old.clients.iter().filter(|(name, _)| !new.clients.contains_key(*name));
        self.clients.extend(clients.map(|(name, it)| (name.clone(), it.clone())));
    }

    /// First all that others name, then what names it.
    fn made(&self) -> Vec<Change> {
        let clients = self.clients.values().cloned().map(Change::Clients);
        let chains = self.chains.keys().cloned().map(Change::Chain);
        let rules =
            self.chains.iter().flat_map(|(name, rules)| rules.iter().map(|it| Change::Rule(name.clone(), it.clone())));
        clients.chain(chains).chain(rules).collect()
    }

    /// First emptied, since they name each other.
    fn taken_away(&self) -> Vec<Change> {
        let emptied = self.chains.keys().cloned().map(Change::Chain);
        let chains = self.chains.keys().cloned().map(Change::DropChain);
        emptied.chain(chains).chain(self.clients.keys().cloned().map(Change::DropSet)).collect()
    }
}
