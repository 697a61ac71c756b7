//! Which zones endpoints are for, where a service leaves that to the cluster (`service.kubernetes.io/topology-mode: Auto`).
//!
//! Each zone is to have as large a share of the endpoints as it has of the nodes' CPU. An endpoint is for its own zone, unless
//! another one lacks endpoints. As in upstream's `topologycache`, a slice that need not be written keeps its hints as long as
//! they leave enough to every zone.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use corten_reconcile::{Effect, EventType, View};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::layout::Slice;
use crate::projections::{Endpoint, Hint, Hints, Service, ZonedNode, reference};

const TOPOLOGY_MODE: &str = "service.kubernetes.io/topology-mode";
const TOPOLOGY_AWARE_HINTS: &str = "service.kubernetes.io/topology-aware-hints";

/// The older annotation has precedence (endpointslice.hintsEnabled).
pub(super) fn is_automatic(service: &Service) -> bool {
    let annotations = &service.metadata.annotations;
    let mode = annotations.get(TOPOLOGY_AWARE_HINTS).or_else(|| annotations.get(TOPOLOGY_MODE));
    mode.is_some_and(|it| matches!(&**it, "Auto" | "auto"))
}

/// How much CPU the nodes of each zone have.
pub(super) struct Zones {
    cpu: BTreeMap<String, i128>,
    total: i128,
}

impl Zones {
    /// Nothing where a node does not say what is needed to know, or there are no two zones.
    pub(super) fn of(view: &View) -> Option<Self> {
        let mut cpu: BTreeMap<String, i128> = BTreeMap::new();
        for node in view.list::<ZonedNode>().filter(|it| it.counts()) {
            let of_node = i128::from(node.allocatable_cpu());
            if of_node <= 0 {
                return None;
            }
            *cpu.entry(node.zone()?.to_owned()).or_default() += of_node;
        }
        let total = cpu.values().sum();
        (cpu.len() >= 2).then_some(Self { cpu, total })
    }
}

/// How many endpoints should be for a zone, with no endpoint more than a fifth beyond its share of the traffic.
struct Allocation {
    minimum: i128,
    maximum: i128,
    /// In parts of an endpoint: [`Allocations::parts`] of them are one.
    desired: i128,
}

struct Allocations {
    of: BTreeMap<String, Allocation>,
    parts: i128,
}

/// How many endpoints are for each zone.
type Given = BTreeMap<String, i128>;

fn allocations(zones: Option<&Zones>, n_endpoints: usize) -> Result<Allocations, String> {
    let zones =
        zones.ok_or("Insufficient Node information: allocatable CPU or zone not specified on one or more nodes")?;
    let n_zones = zones.cpu.len();
    let numbers = format!("({n_endpoints} endpoints, {n_zones} zones)");
    if n_zones > n_endpoints {
        return Err(format!("Insufficient number of endpoints {numbers}"));
    }
    let parts = zones.total;
    let n = i128::try_from(n_endpoints).expect("a length is less than 2^64");
    let allocation = |(zone, cpu): (&String, &i128)| {
        let desired = cpu * n;
        // desired / 1.2, rounded up.
        let minimum = (desired * 5 + parts * 6 - 1) / (parts * 6);
        (zone.clone(), Allocation { minimum, maximum: 0, desired: desired.max(minimum * parts) })
    };
    let mut of: BTreeMap<String, Allocation> = zones.cpu.iter().map(allocation).collect();
    let spare = n - of.values().map(|it| it.minimum).sum::<i128>();
    if spare < 0 {
        let message = "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold";
        return Err(format!("{message} {numbers}"));
    }
    of.values_mut().for_each(|it| it.maximum = it.minimum + spare);
    Ok(Allocations { of, parts })
}

/// Hints every endpoint that is ready, or none, and says why none.
pub(super) fn hint(slices: &mut [Slice<'_>], zones: Option<&Zones>) -> Result<(), String> {
    let outcome = try_hint(slices, zones);
    if outcome.is_err() {
        for slice in slices {
            let mut hinted = slice.endpoints.iter_mut().filter(|it| it.hints.is_some()).peekable();
            slice.is_changed |= hinted.peek().is_some();
            hinted.for_each(|it| it.hints = None);
        }
    }
    outcome
}

/// What it refuses it has not touched.
fn try_hint(slices: &mut [Slice<'_>], zones: Option<&Zones>) -> Result<(), String> {
    let n_ready = slices.iter().flat_map(|it| &it.endpoints).filter(|it| it.is_ready()).count();
    let allocations = allocations(zones, n_ready)?;
    let mut ready = slices.iter().flat_map(|it| &it.endpoints).filter(|it| it.is_ready());
    if ready.any(|it| it.zone.is_none()) {
        return Err("One or more endpoints do not have a zone specified".into());
    }
    let mut given = Given::new();
    let mut all_kept = true;
    for slice in slices.iter().filter(|it| !it.is_changed) {
        match kept(slice, &given, &allocations) {
            Some(kept) => kept.into_iter().for_each(|(zone, n)| *given.entry(zone).or_default() += n),
            None => all_kept = false,
        }
    }
    if !all_kept {
        // Where one must be hinted anew all are: it comes to the same each time, and no two are written to and fro.
        given.clear();
    }
    let mut open: Vec<&mut Slice<'_>> = slices.iter_mut().filter(|it| it.is_changed || !all_kept).collect();
    for endpoint in ready_in(&mut open) {
        let zone = endpoint.zone.clone().unwrap_or_default();
        *given.entry(zone.clone()).or_default() += 1;
        endpoint.hints = Some(for_zone(zone));
    }
    redistribute(&mut open, moves(&allocations, &given));
    for slice in open {
        // What is hinted as before needs no write.
        slice.is_changed |= slice.held.is_none_or(|it| it.endpoints != slice.endpoints);
    }
    Ok(())
}

fn ready_in<'a>(slices: &'a mut [&mut Slice<'_>]) -> impl Iterator<Item = &'a mut Endpoint> {
    slices.iter_mut().flat_map(|it| &mut it.endpoints).filter(|it| it.is_ready())
}

fn for_zone(name: String) -> Hints {
    Hints { for_zones: vec![Hint { name }], for_nodes: Vec::new() }
}

/// How many endpoints of a slice are for which zone; nothing where it must be hinted anew (topologycache.getHintsByZone).
fn kept(slice: &Slice<'_>, given: &Given, allocations: &Allocations) -> Option<Given> {
    let mut kept = Given::new();
    for endpoint in slice.endpoints.iter().filter(|it| it.is_ready()) {
        let hints = endpoint.hints.as_ref().filter(|it| !it.for_zones.is_empty() && it.for_nodes.is_empty())?;
        for zone in &hints.for_zones {
            *kept.entry(zone.name.clone()).or_default() += 1;
        }
    }
    let fits = |(zone, n): (&String, &i128)| {
        let given = given.get(zone).copied().unwrap_or_default();
        allocations.of.get(zone).is_some_and(|it| n + given <= it.maximum)
    };
    kept.iter().all(fits).then_some(kept)
}

/// How many endpoints zones give away, and how many they receive.
#[derive(Default)]
struct Moves {
    giving: Given,
    receiving: Given,
}

/// From where there is most to where most is lacking, until nobody has or lacks a whole one, or somebody less than a half
/// (topologycache.getGivingAndReceivingZones).
fn moves(allocations: &Allocations, given: &Given) -> Moves {
    let parts = allocations.parts;
    let (mut surplus, mut lack) = (Given::new(), Given::new());
    for (zone, allocation) in &allocations.of {
        let over = given.get(zone).copied().unwrap_or_default() * parts - allocation.desired;
        let side = if over > 0 { &mut surplus } else { &mut lack };
        side.insert(zone.clone(), over.abs());
    }
    let mut moves = Moves::default();
    while let (Some((giver, has)), Some((receiver, lacks))) = (most(&mut surplus), most(&mut lack)) {
        if (*has < parts && *lacks < parts) || *has * 2 < parts || *lacks * 2 < parts {
            break;
        }
        *has -= parts;
        *lacks -= parts;
        *moves.giving.entry(giver.clone()).or_default() += 1;
        *moves.receiving.entry(receiver.clone()).or_default() += 1;
    }
    moves
}

/// The first of those with the most.
fn most(zones: &mut Given) -> Option<(&String, &mut i128)> {
    zones.iter_mut().rev().max_by_key(|it| *it.1)
}

fn redistribute(slices: &mut [&mut Slice<'_>], Moves { mut giving, mut receiving }: Moves) {
    for endpoint in ready_in(slices) {
        let Some(left) = endpoint.zone.as_ref().and_then(|it| giving.get_mut(it)).filter(|it| **it > 0) else {
            continue;
        };
        let Some((zone, room)) = receiving.iter_mut().find(|it| *it.1 > 0) else { return };
        *left -= 1;
        *room -= 1;
        endpoint.hints = Some(for_zone(zone.clone()));
    }
}

/// What became of a service's hints, by family: nothing where endpoints have them, else why they have none.
#[derive(Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Account(BTreeMap<String, Option<String>>);

impl Account {
    pub(super) fn add(&mut self, family: &str, outcome: Result<(), String>) {
        self.0.insert(family.to_owned(), outcome.err());
    }

    fn has_hints(&self) -> bool {
        self.0.values().any(Option::is_none)
    }

    /// Tells users what is not so any more, and remembers it. Upstream tells it at every look.
    pub(super) fn news(&self, service: &Service, note: Option<&Value>) -> Vec<Effect> {
        let before: Self = note.and_then(|it| Self::deserialize(it).ok()).unwrap_or_default();
        if *self == before {
            return Vec::new();
        }
        let mut effects = Vec::new();
        let mut tell = |event_type, reason, message: &str, family: &str| {
            let message = format!("{message}, addressType: {family}");
            effects.push(Effect::Event { about: reference(service), event_type, reason, message });
        };
        for (family, refusal) in self.0.iter().filter(|it| before.0.get(it.0) != Some(it.1)) {
            match refusal {
                Some(refusal) => tell(EventType::Warning, DISABLED, refusal, family),
                None if before.has_hints() => {}
                None => tell(
                    EventType::Normal,
                    "TopologyAwareHintsEnabled",
                    "Topology Aware Hints has been enabled",
                    family,
                ),
            }
        }
        if self.0.is_empty() {
            for family in before.0.iter().filter(|it| it.1.is_none()).map(|it| it.0) {
                tell(EventType::Warning, DISABLED, "Topology Aware Hints has been disabled", family);
            }
        }
        effects.push(Effect::Remember { note: json!(self) });
        effects
    }
}

const DISABLED: &str = "TopologyAwareHintsDisabled";
