//! Which endpoints a Service's connections may go to, from this node.
//!
//! As in `CategorizeEndpoints`: ready ones; where there is none, those that end but still serve. Hints for this node or its
//! zone narrow them down, where every ready endpoint has one and some are for here.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use corten_meta::address::is_reachable;

use crate::{
    Config,
    projections::{Endpoint, EndpointSlice, Hints},
    rules::{Backend, Family, Protocol},
};

/// One endpoint of one port.
struct Candidate<'a> {
    backend: Backend,
    ready: bool,
    /// Ends, and still serves.
    leaving: bool,
    local: bool,
    hints: Option<&'a Hints>,
}

/// Where connections to one port go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) cluster: BTreeSet<Backend>,
    /// Those on this node, for traffic that must not leave it.
    pub(crate) local: BTreeSet<Backend>,
    /// Every endpoint on this node, whatever its state: connections that go on may be its own.
    pub(crate) here: BTreeSet<IpAddr>,
}

/// Slices by the names and protocols of their ports, with the numbers that they give them: a Service may have thousands of
/// ports, and its slices as many.
pub(crate) struct ByPort<'a>(BTreeMap<(&'a str, Protocol), Vec<(&'a EndpointSlice, u16)>>);

impl<'a> ByPort<'a> {
    pub(crate) fn of(slices: &[&'a EndpointSlice]) -> Self {
        let mut by_port: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for slice in slices {
            for port in &slice.ports {
                let Some(protocol) = Protocol::parse(port.protocol.as_deref().unwrap_or_default()) else { continue };
                let Some(number) = port.port.filter(|it| *it != 0) else { continue };
                by_port.entry((port.name.as_deref().unwrap_or_default(), protocol)).or_default().push((*slice, number));
            }
        }
        Self(by_port)
    }

    fn with(&self, port: (&'a str, Protocol)) -> &[(&'a EndpointSlice, u16)] {
        self.0.get(&port).map_or(&[], Vec::as_slice)
    }

    /// How many endpoints there are to choose from for a port, however many of them are the same.
    pub(crate) fn n_endpoints(&self, port: (&'a str, Protocol)) -> usize {
        self.with(port).iter().map(|it| it.0.endpoints.len()).sum()
    }
}

pub(crate) fn choose<'a>(
    slices: &ByPort<'a>,
    port: (&'a str, Protocol),
    family: Family,
    config: &Config,
    zone: &str,
) -> Chosen {
    let address_type = if family == Family::V4 { "IPv4" } else { "IPv6" };
    let mut candidates = Vec::new();
    for (slice, number) in slices.with(port).iter().filter(|it| it.0.address_type == address_type) {
        candidates.extend(slice.endpoints.iter().filter_map(|it| candidate(it, *number, family, config)));
    }
    let mut chosen = Chosen { here: here(&candidates, config), ..Chosen::default() };
    let narrow = narrowing(&candidates, config, zone);
    chosen.cluster = usable(candidates.iter().filter(|it| !it.ready || narrow(it)));
    chosen.local = usable(candidates.iter().filter(|it| it.local));
    chosen
}

fn candidate<'a>(endpoint: &'a Endpoint, port: u16, family: Family, config: &Config) -> Option<Candidate<'a>> {
    // kube-proxy uses the first address of an endpoint, too (`EndpointSliceCache.addEndpoints`).
    let address: IpAddr = endpoint.addresses.first()?.parse().ok()?;
    // The server refuses such endpoints, too: they would open what listens for this machine alone.
    if Family::of(address) != family || !is_reachable(address) {
        return None;
    }
    let conditions = &endpoint.conditions;
    let ready = conditions.ready.unwrap_or(true);
    let terminating = conditions.terminating.unwrap_or(false);
    let serving = conditions.serving.unwrap_or(ready);
    Some(Candidate {
        backend: Backend { address, port },
        ready,
        leaving: serving && terminating,
        local: endpoint.node_name.as_deref().is_some_and(|it| it == config.node_name),
        hints: endpoint.hints.as_ref(),
    })
}

fn usable<'a>(candidates: impl Iterator<Item = &'a Candidate<'a>> + Clone) -> BTreeSet<Backend> {
    let ready: BTreeSet<Backend> = candidates.clone().filter(|it| it.ready).map(|it| it.backend).collect();
    if ready.is_empty() { candidates.filter(|it| it.leaving).map(|it| it.backend).collect() } else { ready }
}

/// Of whom it is not known where he is, he may be here.
fn here(candidates: &[Candidate<'_>], config: &Config) -> BTreeSet<IpAddr> {
    let addresses = candidates.iter().map(|it| it.backend.address);
    addresses.filter(|it| config.pod_cidrs.iter().any(|cidr| cidr.contains(*it))).collect()
}

fn narrowing<'a>(
    candidates: &[Candidate<'a>],
    config: &'a Config,
    zone: &'a str,
) -> Box<dyn Fn(&Candidate<'a>) -> bool + 'a> {
    let ready = || candidates.iter().filter(|it| it.ready);
    let for_node = |it: &Candidate<'a>| names(it, |hints| &hints.for_nodes).any(|it| it == config.node_name);
    let for_zone = move |it: &Candidate<'a>| names(it, |hints| &hints.for_zones).any(|it| it == zone);
    let all_have =
        |of: fn(&Hints) -> &Vec<crate::projections::EndpointHint>| ready().all(|it| names(it, of).next().is_some());
    if all_have(|it| &it.for_nodes) && ready().any(for_node) {
        Box::new(for_node)
    } else if !zone.is_empty() && all_have(|it| &it.for_zones) && ready().any(for_zone) {
        Box::new(for_zone)
    } else {
        Box::new(|_| true)
    }
}

fn names<'a>(
    candidate: &Candidate<'a>,
    of: fn(&Hints) -> &Vec<crate::projections::EndpointHint>,
) -> impl Iterator<Item = &'a str> + use<'a> {
    candidate.hints.map(of).into_iter().flatten().map(|it| &*it.name)
}
