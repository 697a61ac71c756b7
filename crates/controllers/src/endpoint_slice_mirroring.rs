//! Mirrors Endpoints that people keep themselves, for services without a selector, into EndpointSlices.

use core::net::IpAddr;
use std::collections::BTreeMap;

use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Controller, Effect, EventType, Plan, View, Wake, Watch, Write};

use crate::{
    endpoint_slice::{
        layout::{self, Desired, Layout, Owner, slices_of},
        service_of,
    },
    projections::{
        Endpoint, EndpointAddress, EndpointConditions, EndpointPort, EndpointSlice, EndpointSubset, Endpoints, Service,
        reference,
    },
};

const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Of one subset, as many are mirrored.
const ADDRESSES_MAX: usize = 1000;

pub struct EndpointSliceMirroring;

impl Controller for EndpointSliceMirroring {
    fn name(&self) -> &'static str {
        "endpointslicemirroring"
    }

    fn component(&self) -> String {
        "endpoint-slice-mirroring-controller".into()
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::new::<Endpoints>(Wake::Itself),
            Watch::new::<Service>(Wake::With(|_, service| vec![service.key()])),
            Watch::new::<EndpointSlice>(Wake::With(mirrored)),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        layout::WRITES
    }

    fn reconcile(&self, view: &View, key: &Key, _now: Time) -> Plan {
        let Some(endpoints) = view.get::<Endpoints>(key) else { return Plan::default() };
        if !is_mirrored(view, endpoints) {
            return Plan { effects: unmirror(view, endpoints), ..Plan::default() };
        }
        let meta = &endpoints.metadata;
        let owner = Owner::of::<Endpoints>(meta, MANAGER, &meta.name, meta.labels.clone());
        let owner = owner.with_annotations(annotations(meta));
        let mut plan = Plan::default();
        let (v4, v6) = desired(endpoints, &mut plan);
        let held: Vec<&EndpointSlice> = slices_of(view, &owner).collect();
        for (family, desired) in [("IPv4", v4), ("IPv6", v6)] {
            let held: Vec<&EndpointSlice> = held.iter().copied().filter(|it| it.address_type == family).collect();
            if desired.is_empty() {
                // Unlike a service's own, mirrored slices are never empty.
                plan.effects.extend(held.into_iter().map(layout::delete));
            } else {
                plan.effects.extend(Layout::of(&owner, held, desired).effects(&owner, family, None));
            }
        }
        if plan.effects.iter().all(|it| matches!(it, Effect::Event { .. })) {
            // What cannot be mirrored was said when it was left out.
            plan.effects.clear();
        }
        if let Some(failure) = view.failure(key) {
            let (namespace, name) = (&meta.namespace, &meta.name);
            let message =
                format!("Error updating Endpoint Slices for Endpoints {namespace}/{name}: {}", failure.message);
            // First, since it tells of the last time.
            plan.effects.insert(0, event(endpoints, "FailedToUpdateEndpointSlices", message));
        }
        plan
    }
}

fn mirrored(view: &View, slice: &ObjectMeta) -> Vec<Key> {
    let is_ours = slice.labels.get(layout::MANAGED_BY).is_some_and(|it| it == MANAGER);
    if is_ours { service_of(view, slice) } else { Vec::new() }
}

/// Only what belongs to a service whose backends nobody else looks for.
fn is_mirrored(view: &View, endpoints: &Endpoints) -> bool {
    let is_skipped = endpoints.metadata.labels.get(SKIP).is_some_and(|it| it == "true");
    let service = view.get::<Service>(&endpoints.metadata.key());
    !is_skipped
        && !endpoints.is_leader_election()
        && service.is_some_and(|it| it.spec.selector.as_ref().is_none_or(BTreeMap::is_empty))
}

fn unmirror(view: &View, endpoints: &Endpoints) -> Vec<Effect> {
    let slices = view.owned_by::<EndpointSlice>(&endpoints.metadata.uid);
    let mirrors = slices.filter(|it| !mirrored(view, &it.metadata).is_empty() && !it.metadata.is_deleting());
    mirrors.map(layout::delete).collect()
}

fn annotations(endpoints: &ObjectMeta) -> BTreeMap<String, String> {
    let own = endpoints.annotations.iter().filter(|it| !matches!(&**it.0, layout::TRIGGER_TIME | LAST_APPLIED));
    own.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn desired(endpoints: &Endpoints, plan: &mut Plan) -> (Desired, Desired) {
    let (mut v4, mut v6) = (Desired::default(), Desired::default());
    let (mut n_invalid, mut n_surplus) = (0, 0);
    for subset in &endpoints.subsets {
        let ready = subset.addresses.iter().map(|it| (it, true));
        let all = ready.chain(subset.not_ready_addresses.iter().map(|it| (it, false)));
        let mut n_taken = 0;
        for (address, is_ready) in all {
            if n_taken == ADDRESSES_MAX {
                n_surplus += 1;
                continue;
            }
            let list = match address.ip.parse::<IpAddr>() {
                Ok(IpAddr::V4(_)) => &mut v4,
                Ok(IpAddr::V6(_)) => &mut v6,
                Err(_) => {
                    n_invalid += 1;
                    continue;
                }
            };
            n_taken += 1;
            list.add(ports(subset), mirror(address, is_ready));
        }
    }
    if n_invalid > 0 {
        let message = format!("Skipped {n_invalid} invalid IP addresses when mirroring to EndpointSlices");
        plan.effects.push(event(endpoints, "InvalidIPAddress", message));
    }
    if n_surplus > 0 {
        let message = format!(
            "A max of {ADDRESSES_MAX} addresses can be mirrored to EndpointSlices per Endpoints subset. {n_surplus} addresses were skipped"
        );
        plan.effects.push(event(endpoints, "TooManyAddressesToMirror", message));
    }
    (v4, v6)
}

fn ports(subset: &EndpointSubset) -> Vec<EndpointPort> {
    let named = |it: &EndpointPort| EndpointPort { name: Some(it.name.clone().unwrap_or_default()), ..it.clone() };
    subset.ports.iter().map(named).collect()
}

fn mirror(address: &EndpointAddress, is_ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![address.ip.clone()],
        conditions: EndpointConditions { ready: Some(is_ready), ..EndpointConditions::default() },
        hostname: address.hostname.clone(),
        node_name: address.node_name.clone(),
        target_ref: address.target_ref.clone(),
        ..Endpoint::default()
    }
}

fn event(endpoints: &Endpoints, reason: &'static str, message: String) -> Effect {
    Effect::Event { about: reference(endpoints), event_type: EventType::Warning, reason, message }
}
