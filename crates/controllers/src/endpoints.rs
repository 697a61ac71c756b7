//! Keeps the Endpoints of every service that has a selector: the older form of what EndpointSlices say.
//!
//! It is one object for each service, so it is cut off at a thousand addresses, and says so.

mod subsets;

use std::collections::BTreeMap;

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{
    Controller, Effect, EventType, Plan, Propagation, Verb, View, Wake, Watch, Write, status::exact_patch,
};
use serde_json::{Value, json};

use crate::{
    endpoint_slice::{backends, changed_at, is_named_in, layout, port_number, services_for, target, too_many},
    projections::{
        EndpointAddress, EndpointPort, EndpointSubset, Endpoints, NamedPorts, Pod, Service, ServicePort, reference,
    },
};
use subsets::Subsets;

const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const MANAGER: &str = "endpoint-controller";
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

pub struct EndpointsOfServices;

impl Controller for EndpointsOfServices {
    fn name(&self) -> &'static str {
        "endpoint"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::new::<Service>(Wake::Itself),
            Watch::new::<Endpoints>(Wake::With(managed)),
            Watch::new::<Pod>(Wake::With(services_for)),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Create, resource: resources::ENDPOINTS, fields: &[] },
                Write { verb: Verb::Delete, resource: resources::ENDPOINTS, fields: &[] },
                Write {
                    verb: Verb::Patch,
                    resource: resources::ENDPOINTS,
                    fields: &["subsets", "metadata.labels", "metadata.annotations"],
                },
            ]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, _now: Time) -> Plan {
        let held = view.get::<Endpoints>(key);
        let Some(service) = view.get::<Service>(key) else {
            let left = held.filter(|it| !it.is_leader_election() && !it.metadata.is_deleting());
            return Plan { effects: left.map(delete).into_iter().collect(), ..Plan::default() };
        };
        if !service.has_selector() {
            return Plan::default();
        }
        let mut plan = Plan::default();
        if let Some(wait) = too_many(service, backends(view, service).count()) {
            plan.waits.push(wait);
            return plan;
        }
        let wanted = DesiredEndpoints::of(view, service, held);
        plan.effects.extend(match held {
            None if service.metadata.is_deleting() => None,
            None => Some(wanted.create(service)),
            Some(held) => wanted.patch(held),
        });
        if let Some(failure) = view.failure(key) {
            // First, since it tells of the last time.
            plan.effects.insert(0, failed(service, &failure.effect, &failure.message));
        }
        plan
    }
}

/// Endpoints that people made are only looked at when their service changes or goes.
fn managed(_view: &View, endpoints: &ObjectMeta) -> Vec<Key> {
    let is_ours = endpoints.labels.get(MANAGED_BY).is_some_and(|it| it == MANAGER);
    if is_ours { vec![endpoints.key()] } else { Vec::new() }
}

struct DesiredEndpoints {
    subsets: Vec<EndpointSubset>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
}

impl DesiredEndpoints {
    fn of(view: &View, service: &Service, held: Option<&Endpoints>) -> Self {
        let pods: Vec<&Pod> = backends(view, service).collect();
        let (subsets, is_cut) = subsets(service, &pods).cut();
        let mut labels = service.metadata.labels.clone();
        labels.insert(MANAGED_BY.into(), MANAGER.into());
        if service.is_headless() {
            labels.insert(layout::HEADLESS.into(), String::new());
        }
        let mut annotations = held.map(|it| it.metadata.annotations.clone()).unwrap_or_default();
        annotations.remove(OVER_CAPACITY);
        if is_cut {
            annotations.insert(OVER_CAPACITY.into(), "truncated".into());
        }
        if held.is_none_or(|it| it.subsets != subsets) {
            set_trigger_time(&mut annotations, service, &pods);
        }
        Self { subsets, labels, annotations }
    }

    fn create(&self, service: &Service) -> Effect {
        let mut metadata = json!({
            "name": service.metadata.name,
            "namespace": service.metadata.namespace,
            "labels": self.labels,
        });
        if !self.annotations.is_empty() {
            metadata["annotations"] = json!(self.annotations);
        }
        let mut object = json!({ "apiVersion": "v1", "kind": "Endpoints", "metadata": metadata });
        if !self.subsets.is_empty() {
            object["subsets"] = json!(self.subsets);
        }
        Effect::Create { resource: resources::ENDPOINTS, object }
    }

    fn patch(&self, held: &Endpoints) -> Option<Effect> {
        let mut patch = json!({});
        if held.subsets != self.subsets {
            patch["subsets"] = if self.subsets.is_empty() { Value::Null } else { json!(self.subsets) };
        }
        for (field, held, wanted) in [
            ("labels", &held.metadata.labels, &self.labels),
            ("annotations", &held.metadata.annotations, &self.annotations),
        ] {
            let changes = layout::changes(held, wanted);
            if !changes.is_empty() {
                patch["metadata"][field] = Value::Object(changes);
            }
        }
        let is_empty = patch.as_object().is_none_or(serde_json::Map::is_empty);
        (!is_empty).then(|| exact_patch(resources::ENDPOINTS, &held.metadata, patch))
    }
}

/// As for slices: the earliest change that is not said yet.
fn set_trigger_time(annotations: &mut BTreeMap<String, String>, service: &Service, pods: &[&Pod]) {
    let said = annotations.get(layout::TRIGGER_TIME).and_then(|it| it.parse::<Time>().ok());
    let changes = pods.iter().filter_map(|it| changed_at(it)).chain(service.metadata.creation_timestamp);
    if let Some(at) = changes.filter(|it| said.is_none_or(|said| *it > said)).min() {
        annotations.insert(layout::TRIGGER_TIME.into(), at.to_string());
    }
}

fn subsets(service: &Service, pods: &[&Pod]) -> Subsets {
    let mut subsets = Subsets::default();
    let is_unready_fine = service.spec.publish_not_ready_addresses;
    let is_v6 = service.families().first().is_some_and(|it| *it == "IPv6");
    for pod in pods.iter().filter(|it| is_unready_fine || !it.metadata.is_deleting()) {
        let Some(ip) = pod.ips().find(|it| it.contains(':') == is_v6) else { continue };
        let address = EndpointAddress {
            ip: ip.to_owned(),
            hostname: is_named_in(pod, service).then(|| pod.spec.hostname.to_string()),
            node_name: (!pod.spec.node_name.is_empty()).then(|| pod.spec.node_name.clone()),
            target_ref: Some(target(pod)),
        };
        let is_ready = is_unready_fine || pod.is_ready();
        if service.spec.ports.is_empty() && service.is_headless() {
            subsets.add(address.clone(), is_ready, None);
        }
        let named = pod.named_ports();
        for port in service.spec.ports.iter().filter_map(|it| port(it, &named)) {
            subsets.add(address.clone(), is_ready, Some(port));
        }
    }
    subsets
}

fn port(port: &ServicePort, of_pod: &NamedPorts<'_>) -> Option<EndpointPort> {
    Some(EndpointPort {
        name: (!port.name.is_empty()).then(|| port.name.clone()),
        port: Some(port_number(port, of_pod)?),
        protocol: Some(port.protocol.clone()),
        app_protocol: port.app_protocol.clone(),
    })
}

fn delete(endpoints: &Endpoints) -> Effect {
    Effect::Delete {
        resource: resources::ENDPOINTS,
        key: endpoints.metadata.key(),
        uid: endpoints.metadata.uid.clone(),
        propagation: Propagation::Background,
        grace_seconds: None,
    }
}

fn failed(service: &Service, effect: &Effect, error: &str) -> Effect {
    let (namespace, name) = (&service.metadata.namespace, &service.metadata.name);
    let (reason, message) = match effect {
        Effect::Create { .. } => {
            ("FailedToCreateEndpoint", format!("Failed to create endpoint for service {namespace}/{name}: {error}"))
        }
        _ => ("FailedToUpdateEndpoint", format!("Failed to update endpoint {namespace}/{name}: {error}")),
    };
    Effect::Event { about: reference(service), event_type: EventType::Warning, reason, message }
}
