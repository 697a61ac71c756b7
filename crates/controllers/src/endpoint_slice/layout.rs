//! How endpoints are laid out over slices: at most a hundred in each, one set of ports in each, and as few writes as can be.
//!
//! What stays where it is costs nothing. New endpoints go first into slices that must be written anyway, then into one
//! that has room for all of them, then into new slices.

use std::collections::BTreeMap;

use corten_api::resources;
use corten_meta::{ObjectMeta, Time};
use corten_reconcile::{Effect, Projection, Propagation, Verb, View, Write, status::exact_patch};
use serde_json::{Map, Value, json};

use crate::{
    ownership::controller_reference,
    projections::{Endpoint, EndpointPort, EndpointSlice},
};

pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";
pub(crate) const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
pub(crate) const HEADLESS: &str = "service.kubernetes.io/headless";
pub(crate) const TRIGGER_TIME: &str = "endpoints.kubernetes.io/last-change-trigger-time";
const ENDPOINTS_MAX: usize = 100;

pub(crate) const WRITES: &[Write] = &[
    Write { verb: Verb::Create, resource: resources::ENDPOINT_SLICES, fields: &[] },
    Write { verb: Verb::Delete, resource: resources::ENDPOINT_SLICES, fields: &[] },
    Write {
        verb: Verb::Patch,
        resource: resources::ENDPOINT_SLICES,
        fields: &["endpoints", "ports", "metadata.labels", "metadata.annotations"],
    },
];

/// Whose slices these are, and what they carry of it.
pub(crate) struct Owner<'a> {
    meta: &'a ObjectMeta,
    reference: Value,
    labels: BTreeMap<String, String>,
    /// Beside the trigger time, which is every update's own.
    annotations: BTreeMap<String, String>,
}

impl<'a> Owner<'a> {
    pub(crate) fn of<O: Projection>(
        meta: &'a ObjectMeta,
        manager: &str,
        service: &str,
        labels: impl IntoIterator<Item = (String, String)>,
    ) -> Self {
        let mut labels: BTreeMap<String, String> = labels.into_iter().collect();
        labels.insert(SERVICE_NAME.into(), service.into());
        labels.insert(MANAGED_BY.into(), manager.into());
        Self { meta, reference: json!(controller_reference::<O>(meta)), labels, annotations: BTreeMap::new() }
    }

    pub(crate) fn with_annotations(self, annotations: BTreeMap<String, String>) -> Self {
        Self { annotations, ..self }
    }
}

/// The slices that are kept for this owner's service by its manager, in order of names. Those of an owner that is gone are
/// the garbage collector's.
pub(crate) fn slices_of<'a>(view: &'a View, owner: &'a Owner<'_>) -> impl Iterator<Item = &'a EndpointSlice> {
    let slices = view.owned_by::<EndpointSlice>(&owner.meta.uid).filter(|it| !it.metadata.is_deleting());
    slices.filter(|it| {
        [SERVICE_NAME, MANAGED_BY].iter().all(|key| it.metadata.labels.get(*key) == owner.labels.get(*key))
    })
}

/// The endpoints there should be, by their ports. One address stands once among those of the same ports.
#[derive(Default)]
pub(crate) struct Desired(BTreeMap<Vec<EndpointPort>, BTreeMap<Vec<String>, Endpoint>>);

impl Desired {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, mut ports: Vec<EndpointPort>, endpoint: Endpoint) {
        ports.sort();
        self.0.entry(ports).or_default().insert(identity(&endpoint), endpoint);
    }

    /// What is ready stays hinted as it is, until somebody hints it anew.
    pub(crate) fn keep_hints(&mut self, held: &[&EndpointSlice]) {
        for slice in held {
            let mut ports = slice.ports.clone();
            ports.sort();
            let Some(desired) = self.0.get_mut(&ports) else { continue };
            for endpoint in slice.endpoints.iter().filter(|it| it.hints.is_some()) {
                if let Some(kept) = desired.get_mut(&identity(endpoint)).filter(|it| it.is_ready()) {
                    kept.hints.clone_from(&endpoint.hints);
                }
            }
        }
    }
}

/// What an endpoint is the same as itself by, however its conditions change.
fn identity(endpoint: &Endpoint) -> Vec<String> {
    let target = endpoint.target_ref.iter().flat_map(|it| [it.namespace.clone(), it.name.clone(), it.uid.clone()]);
    let mut addresses = endpoint.addresses.clone();
    addresses.sort();
    addresses.extend(target);
    addresses.extend(endpoint.hostname.clone());
    addresses
}

/// A slice as it is to be.
pub(crate) struct Slice<'a> {
    pub(crate) held: Option<&'a EndpointSlice>,
    ports: Vec<EndpointPort>,
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) is_changed: bool,
}

#[cfg(test)]
impl<'a> Slice<'a> {
    pub(super) fn as_it_is(held: &'a EndpointSlice) -> Self {
        let EndpointSlice { ports, endpoints, .. } = held;
        Self { held: Some(held), ports: ports.clone(), endpoints: endpoints.clone(), is_changed: false }
    }
}

/// The slices of one family as they are to be.
pub(crate) struct Layout<'a> {
    pub(crate) slices: Vec<Slice<'a>>,
    surplus: Vec<&'a EndpointSlice>,
}

impl<'a> Layout<'a> {
    /// How the slices `held` of one family come to say what is desired.
    pub(crate) fn of(owner: &Owner<'_>, held: Vec<&'a EndpointSlice>, desired: Desired) -> Self {
        let mut by_ports: BTreeMap<Vec<EndpointPort>, Vec<&EndpointSlice>> = BTreeMap::new();
        for slice in held {
            let mut ports = slice.ports.clone();
            ports.sort();
            by_ports.entry(ports).or_default().push(slice);
        }
        let (mut slices, mut reusable) = (Vec::new(), Vec::new());
        for (ports, endpoints) in desired.0 {
            let held = by_ports.remove(&ports).unwrap_or_default();
            lay_out(owner, ports, held, endpoints, &mut slices, &mut reusable);
        }
        reusable.extend(by_ports.into_values().flatten());
        if slices.is_empty() {
            // A service without backends has one slice that says so.
            slices.push(Slice { held: None, ports: Vec::new(), endpoints: Vec::new(), is_changed: true });
        }
        // A slice that would go becomes one that would be made.
        for slice in slices.iter_mut().rev().filter(|it| it.held.is_none()) {
            let Some(old) = reusable.pop() else { break };
            slice.is_changed =
                has_other_labels(owner, old) || old.endpoints != slice.endpoints || old.ports != slice.ports;
            slice.held = Some(old);
        }
        Self { slices, surplus: reusable }
    }

    pub(crate) fn effects(self, owner: &Owner<'_>, family: &str, trigger: Option<Time>) -> Vec<Effect> {
        let is_going = owner.meta.is_deleting();
        let writes = self.slices.iter().filter(|it| it.is_changed && !(is_going && it.held.is_none()));
        writes.map(|it| write(owner, family, it, trigger)).chain(self.surplus.into_iter().map(delete)).collect()
    }
}

fn lay_out<'a>(
    owner: &Owner<'_>,
    ports: Vec<EndpointPort>,
    held: Vec<&'a EndpointSlice>,
    mut desired: BTreeMap<Vec<String>, Endpoint>,
    slices: &mut Vec<Slice<'a>>,
    reusable: &mut Vec<&'a EndpointSlice>,
) {
    let first = slices.len();
    for slice in held {
        let mut is_changed = has_other_labels(owner, slice);
        let keep = |it: &Endpoint| {
            let kept = desired.remove(&identity(it));
            is_changed |= kept.as_ref() != Some(it);
            kept
        };
        let endpoints: Vec<Endpoint> = slice.endpoints.iter().filter_map(keep).collect();
        if endpoints.is_empty() {
            reusable.push(slice);
        } else {
            slices.push(Slice { held: Some(slice), ports: ports.clone(), endpoints, is_changed });
        }
    }
    let mut new = desired.into_values();
    // The fullest first, of those that are written anyway.
    let mut changed: Vec<&mut Slice<'a>> = slices[first..].iter_mut().filter(|it| it.is_changed).collect();
    changed.sort_by_key(|it| std::cmp::Reverse(it.endpoints.len()));
    for slice in changed {
        let room = ENDPOINTS_MAX.saturating_sub(slice.endpoints.len());
        slice.endpoints.extend(new.by_ref().take(room));
    }
    while new.len() > 0 {
        let fits = |it: &&mut Slice<'a>| !it.is_changed && it.endpoints.len() + new.len() <= ENDPOINTS_MAX;
        let best = slices[first..].iter_mut().filter(fits).max_by_key(|it| it.endpoints.len());
        match best {
            Some(slice) => {
                slice.is_changed = true;
                slice.endpoints.extend(new.by_ref());
            }
            None => {
                let endpoints = new.by_ref().take(ENDPOINTS_MAX).collect();
                slices.push(Slice { held: None, ports: ports.clone(), endpoints, is_changed: true });
            }
        }
    }
}

fn has_other_labels(owner: &Owner<'_>, slice: &EndpointSlice) -> bool {
    slice.metadata.labels != owner.labels || annotations_of(slice) != owner.annotations
}

/// Those that follow the owner's.
fn annotations_of(slice: &EndpointSlice) -> BTreeMap<String, String> {
    let mut annotations = slice.metadata.annotations.clone();
    annotations.remove(TRIGGER_TIME);
    annotations
}

fn write(owner: &Owner<'_>, family: &str, slice: &Slice<'_>, trigger: Option<Time>) -> Effect {
    let mut annotations = owner.annotations.clone();
    annotations.extend(trigger.map(|it| (TRIGGER_TIME.to_owned(), it.to_string())));
    let Some(held) = slice.held else {
        let mut metadata = json!({
            "generateName": format!("{}-", owner.labels[SERVICE_NAME]),
            "namespace": owner.meta.namespace,
            "labels": owner.labels,
            "ownerReferences": [owner.reference],
        });
        if !annotations.is_empty() {
            metadata["annotations"] = json!(annotations);
        }
        let object = json!({
            "apiVersion": resources::ENDPOINT_SLICES.api_version(),
            "kind": "EndpointSlice",
            "metadata": metadata,
            "addressType": family,
            "endpoints": slice.endpoints,
            "ports": slice.ports,
        });
        return Effect::Create { resource: resources::ENDPOINT_SLICES, object };
    };
    let mut patch = json!({ "endpoints": slice.endpoints });
    if held.ports != slice.ports {
        patch["ports"] = json!(slice.ports);
    }
    for (field, held, wanted) in
        [("labels", &held.metadata.labels, &owner.labels), ("annotations", &held.metadata.annotations, &annotations)]
    {
        let changes = changes(held, wanted);
        if !changes.is_empty() {
            patch["metadata"][field] = Value::Object(changes);
        }
    }
    exact_patch(resources::ENDPOINT_SLICES, &held.metadata, patch)
}

/// What a merge patch must say to make one map the other.
pub(crate) fn changes(held: &BTreeMap<String, String>, wanted: &BTreeMap<String, String>) -> Map<String, Value> {
    let gone = held.keys().filter(|it| !wanted.contains_key(*it)).map(|it| (it.clone(), Value::Null));
    let new = wanted.iter().filter(|(key, value)| held.get(*key) != Some(value));
    gone.chain(new.map(|(key, value)| (key.clone(), json!(value)))).collect()
}

pub(crate) fn delete(slice: &EndpointSlice) -> Effect {
    Effect::Delete {
        resource: resources::ENDPOINT_SLICES,
        key: slice.metadata.key(),
        uid: slice.metadata.uid.clone(),
        propagation: Propagation::Background,
        grace_seconds: None,
    }
}
