//! What there is to answer with: an immutable zone to read from, and its keeper, who makes the next one of each change.
//!
//! A change costs what the one Service it is about costs; the rest is shared with the zone before.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
    sync::Arc,
};

use corten_meta::Key;
use imbl::{OrdMap, OrdSet};

use crate::{
    EndpointSlice, Name, Service,
    address::{dashed, undashed},
};

/// What is published of a cluster at one moment. A clone costs nothing.
#[derive(Clone)]
pub struct Zone {
    pub(crate) domain: Name,
    /// Everything has been seen once; before, what is missing here may well be there.
    pub(crate) is_complete: bool,
    namespaces: OrdSet<Arc<str>>,
    /// By `namespace/name`.
    services: OrdMap<Arc<str>, Arc<Entry>>,
    /// What an address is called: the name below the domain.
    names: OrdSet<(IpAddr, Arc<str>)>,
    pub(crate) serial: u32,
}

/// One Service's names.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Entry {
    pub(crate) kind: Arc<Kind>,
    /// The endpoints with hostnames.
    named: BTreeMap<Box<str>, Vec<IpAddr>>,
    /// The others, in order: they are called after their address.
    bare: Box<[IpAddr]>,
}

#[derive(Debug, Default, PartialEq)]
pub(crate) enum Kind {
    /// Nothing has this name, though something below it may.
    #[default]
    Nothing,
    Address {
        addresses: Box<[IpAddr]>,
        ports: Box<[Port]>,
    },
    Headless {
        addresses: Box<[IpAddr]>,
        ports: Box<[(Port, Box<str>)]>,
    },
    Alias(Box<Name>),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Port {
    pub(crate) name: Box<str>,
    /// In lower case.
    pub(crate) protocol: &'static str,
    pub(crate) number: u16,
}

/// What is kept of a slice.
pub(crate) struct Slice {
    name: Box<str>,
    /// Those that are ready, with their hostnames.
    endpoints: Box<[(IpAddr, Option<Box<str>>)]>,
    ports: Box<[Port]>,
}

/// One piece of news.
pub enum Change {
    Namespace(String),
    NamespaceGone(String),
    Service(Service),
    ServiceGone(Key),
    Slice(EndpointSlice),
    SliceGone(Key),
    /// The lists have been delivered.
    Complete,
}

/// Takes changes in and gives zones out.
pub struct Keeper {
    zone: Zone,
    /// Those that are headless without their endpoints.
    services: BTreeMap<Key, Arc<Kind>>,
    slices: BTreeMap<Key, Vec<Slice>>,
    /// Whose each slice is.
    owners: BTreeMap<Key, Key>,
}

impl Keeper {
    /// Of an empty cluster with this domain, usually `cluster.local`.
    pub fn new(domain: Name) -> Self {
        let zone = Zone {
            domain,
            is_complete: false,
            namespaces: OrdSet::new(),
            services: OrdMap::new(),
            names: OrdSet::new(),
            serial: 1,
        };
        Self { zone, services: BTreeMap::new(), slices: BTreeMap::new(), owners: BTreeMap::new() }
    }

    pub(crate) fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.zone.namespaces.iter().map(|it| &**it)
    }

    pub(crate) fn services(&self) -> impl Iterator<Item = (&Key, &Kind)> {
        self.services.iter().map(|(key, kind)| (key, &**kind))
    }

    /// With the Service that each belongs to.
    pub(crate) fn slices(&self) -> impl Iterator<Item = (&Key, &Slice)> {
        self.slices.iter().flat_map(|(service, it)| it.iter().map(move |it| (service, it)))
    }

    /// The zone as it is now.
    pub fn zone(&self) -> Zone {
        self.zone.clone()
    }

    pub fn apply(&mut self, change: Change) {
        self.zone.serial = self.zone.serial.wrapping_add(1).max(1);
        match change {
            Change::Namespace(name) => {
                self.zone.namespaces.insert(name.into());
            }
            Change::NamespaceGone(name) => {
                self.zone.namespaces.remove(&*name);
            }
            Change::Service(service) => {
                let key = service.metadata.key();
                self.services.insert(key.clone(), Arc::new(kind(&service)));
                self.publish(&key);
            }
            Change::ServiceGone(key) => {
                self.services.remove(&key);
                self.publish(&key);
            }
            Change::Slice(slice) => self.take(slice),
            Change::SliceGone(key) => self.drop_slice(&key),
            Change::Complete => self.zone.is_complete = true,
        }
    }

    fn take(&mut self, slice: EndpointSlice) {
        let key = slice.metadata.key();
        let service = slice.service();
        // Its label may have been changed.
        if self.owners.get(&key) != service.as_ref() {
            self.drop_slice(&key);
        }
        let Some(service) = service else { return };
        let slices = self.slices.entry(service.clone()).or_default();
        slices.retain(|it| *it.name != *key.name);
        slices.push(Slice::of(&slice));
        self.owners.insert(key, service.clone());
        self.publish(&service);
    }

    fn drop_slice(&mut self, key: &Key) {
        let Some(service) = self.owners.remove(key) else { return };
        if let Some(slices) = self.slices.get_mut(&service) {
            slices.retain(|it| *it.name != *key.name);
            if slices.is_empty() {
                self.slices.remove(&service);
            }
        }
        self.publish(&service);
    }

    /// Puts one Service's present names in the place of its former ones.
    fn publish(&mut self, key: &Key) {
        let path: Arc<str> = format!("{}/{}", key.namespace, key.name).into();
        let new = self.services.get(key).map(|it| entry(it, self.slices.get(key).map_or(&[], Vec::as_slice)));
        let old = self.zone.services.get(&path);
        if old.map(|it| &**it) == new.as_ref() {
            return;
        }
        for name in old.into_iter().flat_map(|it| reverse(key, it)) {
            self.zone.names.remove(&name);
        }
        match new {
            Some(new) => {
                for name in reverse(key, &new) {
                    self.zone.names.insert(name);
                }
                self.zone.services.insert(path, Arc::new(new));
            }
            None => drop(self.zone.services.remove(&path)),
        }
    }
}

impl Zone {
    /// Is nothing missing here that is there?
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Half of what there is does not take the place of the whole as it was.
    pub fn may_follow(&self, before: &Self) -> bool {
        self.is_complete || !before.is_complete
    }

    #[cfg(test)]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        (&self.namespaces, &self.services, &self.names) == (&other.namespaces, &other.services, &other.names)
    }

    pub(crate) fn has_namespace(&self, name: &[u8]) -> bool {
        std::str::from_utf8(name).is_ok_and(|it| self.namespaces.contains(it))
    }

    pub(crate) fn service(&self, namespace: &[u8], name: &[u8]) -> Option<&Entry> {
        // On the stack: this is asked for each query.
        let mut path = [0; 128];
        let end = namespace.len() + 1 + name.len();
        path[..namespace.len()].copy_from_slice(namespace);
        path[namespace.len()] = b'/';
        path[namespace.len() + 1..end].copy_from_slice(name);
        self.services.get(std::str::from_utf8(&path[..end]).ok()?).map(|it| &**it)
    }

    /// The names of an address, below the domain.
    pub(crate) fn names(&self, address: IpAddr) -> impl Iterator<Item = &str> {
        let from: Arc<str> = "".into();
        self.names.range((address, from)..).take_while(move |it| it.0 == address).map(|it| &*it.1)
    }
}

impl Entry {
    /// The addresses of the endpoint that is called so.
    pub(crate) fn host(&self, name: &str) -> Option<&[IpAddr]> {
        if let Some(addresses) = self.named.get(name) {
            return Some(addresses);
        }
        let address = undashed(name.as_bytes()).filter(|it| dashed(*it) == name)?;
        let idx = self.bare.binary_search(&address).ok()?;
        Some(std::slice::from_ref(&self.bare[idx]))
    }
}

impl Slice {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn endpoints(&self) -> &[(IpAddr, Option<Box<str>>)] {
        &self.endpoints
    }

    pub(crate) fn ports(&self) -> &[Port] {
        &self.ports
    }

    fn of(slice: &EndpointSlice) -> Self {
        let endpoint =
            |(address, name): (IpAddr, Option<&str>)| (address, name.map(|it| it.to_ascii_lowercase().into()));
        let ports = slice.ports.iter().flatten().filter_map(|it| {
            port(it.name.as_deref().unwrap_or_default(), it.protocol.as_deref().unwrap_or_default(), it.port?)
        });
        Self {
            name: slice.metadata.name.as_str().into(),
            endpoints: slice.ready().map(endpoint).collect(),
            ports: ports.collect(),
        }
    }
}

fn kind(service: &Service) -> Kind {
    let spec = &service.spec;
    if spec.kind == "ExternalName" {
        // As in CoreDNS: what looks like an address is none, and no name either.
        let is_address = spec.external_name.parse::<IpAddr>().is_ok();
        let target = Name::parse(&spec.external_name).filter(|it| !is_address && *it != Name::ROOT);
        return target.map_or(Kind::Nothing, |it| Kind::Alias(Box::new(it)));
    }
    if spec.cluster_ip == "None" {
        return Kind::Headless { addresses: Box::default(), ports: Box::default() };
    }
    let listed = spec.cluster_ips.iter().chain([&spec.cluster_ip].into_iter().filter(|_| spec.cluster_ips.is_empty()));
    let addresses: Box<[IpAddr]> = listed.filter_map(|it| it.parse().ok()).collect();
    let ports = spec.ports.iter().filter_map(|it| port(&it.name, &it.protocol, it.port)).collect();
    if addresses.is_empty() { Kind::Nothing } else { Kind::Address { addresses, ports } }
}

fn entry(kind: &Arc<Kind>, slices: &[Slice]) -> Entry {
    if matches!(**kind, Kind::Alias(_)) {
        return Entry { kind: kind.clone(), ..Entry::default() };
    }
    let mut named: BTreeMap<Box<str>, BTreeSet<IpAddr>> = BTreeMap::new();
    let mut bare = BTreeSet::new();
    for (address, name) in slices.iter().flat_map(|it| &it.endpoints) {
        let Some(name) = name else {
            bare.insert(*address);
            continue;
        };
        named.entry(name.clone()).or_default().insert(*address);
    }
    // Whatever order the slices came in.
    let named = named.into_iter().map(|(name, it)| (name, it.into_iter().collect())).collect();
    let kind = match &**kind {
        Kind::Headless { .. } => Arc::new(headless(slices)),
        _ => kind.clone(),
    };
    Entry { kind, named, bare: bare.into_iter().collect() }
}

/// Of one Service: each of its ports is at each of its endpoints. No answer holds more than a few thousand.
const SERVICE_RECORDS_MAX: usize = 100_000;

fn headless(slices: &[Slice]) -> Kind {
    let addresses: BTreeSet<IpAddr> = slices.iter().flat_map(|it| &it.endpoints).map(|it| it.0).collect();
    if addresses.is_empty() {
        return Kind::Nothing;
    }
    let (mut ports, mut room) = (BTreeSet::new(), SERVICE_RECORDS_MAX);
    for slice in slices {
        let host =
            |(address, name): &(IpAddr, Option<Box<str>>)| name.clone().unwrap_or_else(|| dashed(*address).into());
        let hosts: BTreeSet<Box<str>> = slice.endpoints.iter().map(host).collect();
        for port in &slice.ports {
            ports.extend(hosts.iter().take(room).map(|it| (port.clone(), it.clone())));
            room = room.saturating_sub(hosts.len());
        }
    }
    Kind::Headless { addresses: addresses.into_iter().collect(), ports: ports.into_iter().collect() }
}

fn port(name: &str, protocol: &str, number: u16) -> Option<Port> {
    let protocol = match protocol {
        "" | "TCP" => "tcp",
        "UDP" => "udp",
        "SCTP" => "sctp",
        _ => return None,
    };
    Some(Port { name: name.to_ascii_lowercase().into(), protocol, number })
}

/// The reverse names of a Service: of its addresses, and of endpoints that have a name of their own.
fn reverse(key: &Key, entry: &Entry) -> Vec<(IpAddr, Arc<str>)> {
    let service = format!("{}.{}.svc", key.name, key.namespace);
    let mut names = Vec::new();
    if let Kind::Address { addresses, .. } = &*entry.kind {
        let name: Arc<str> = service.as_str().into();
        names.extend(addresses.iter().map(|it| (*it, name.clone())));
    }
    for (host, addresses) in &entry.named {
        let name: Arc<str> = format!("{host}.{service}").into();
        names.extend(addresses.iter().map(|it| (*it, name.clone())));
    }
    names
}
