//! Keeps the EndpointSlices of every service that has a selector what its pods say.
//!
//! How endpoints are laid out over slices, with as few writes as can be, is in [`layout`]; which zones they are for where the
//! cluster is to find out, in [`topology`].

pub(crate) mod layout;
mod topology;

use std::time::Duration;

use corten_meta::{Key, ObjectMeta, ObjectReference, Time};
use corten_reconcile::{Actor, Controller, Effect, EventType, Plan, View, Wait, Wake, Watch, Write};

use crate::projections::{
    Endpoint, EndpointConditions, EndpointPort, EndpointSlice, Hint, Hints, NamedPorts, Pod, Service, ServicePort,
    ZonedNode, reference,
};
use layout::{Desired, Layout, Owner, slices_of};
use topology::{Account, Zones};

const MANAGER: &str = "endpointslice-controller.k8s.io";
/// How soon a pod whose node is not there yet is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

pub struct EndpointSlices;

impl Controller for EndpointSlices {
    fn name(&self) -> &'static str {
        "endpointslice"
    }

    fn component(&self) -> String {
        "endpoint-slice-controller".into()
    }

    fn watches(&self) -> Vec<Watch> {
        vec![
            Watch::new::<Service>(Wake::Itself),
            Watch::new::<EndpointSlice>(Wake::With(service_of)),
            Watch::new::<Pod>(Wake::With(services_for)),
            Watch::new::<ZonedNode>(Wake::With(services_by_zone)).telling_changes_of::<ZonedNode>(),
        ]
    }

    fn writes(&self) -> &'static [Write] {
        layout::WRITES
    }

    fn reconcile(&self, view: &View, key: &Key, now: Time) -> Plan {
        let Some(service) = view.get::<Service>(key) else { return Plan::default() };
        if !service.has_selector() {
            return Plan::default();
        }
        let mut plan = Plan::default();
        let owner = Owner::of::<Service>(&service.metadata, MANAGER, &service.metadata.name, labels(service));
        let mut held: Vec<&EndpointSlice> = slices_of(view, &owner).collect();
        // Once for all that is asked of them: there may be thousands.
        let pods: Vec<&Pod> = selected(view, service).collect();
        if let Some(wait) = too_many(service, pods.len()) {
            plan.waits.push(wait);
            return plan;
        }
        let trigger = trigger_time(service, &pods, &held);
        let (placed, homeless) = with_nodes(view, service, &pods);
        if let Some(pod) = homeless {
            let message = format!("pod {} is left out, its node is not there", pod.metadata.name);
            plan.waits.push(Wait::new("NodeMissing", message, Actor::Cluster).on("Node", &pod.spec.node_name));
            plan.wake_at = Some(now.after(LOOK_AGAIN));
        }
        let zones = topology::is_automatic(service).then(|| Zones::of(view));
        let mut account = Account::default();
        for family in service.families() {
            let mut desired = desired(service, &placed, family);
            let (of_family, others): (Vec<_>, _) = held.into_iter().partition(|it| it.address_type == family);
            held = others;
            if zones.is_some() {
                desired.keep_hints(&of_family);
            }
            let mut layout = Layout::of(&owner, of_family, desired);
            if let Some(zones) = &zones {
                account.add(family, topology::hint(&mut layout.slices, zones.as_ref()));
            }
            plan.effects.extend(layout.effects(&owner, family, trigger));
        }
        // Of a family the service no longer has.
        plan.effects.extend(held.into_iter().map(layout::delete));
        plan.effects.extend(account.news(service, view.note(key)));
        if let Some(failure) = view.failure(key) {
            let (namespace, name) = (&service.metadata.namespace, &service.metadata.name);
            let message = format!("Error updating Endpoint Slices for Service {namespace}/{name}: {}", failure.message);
            // First, since it tells of the last time.
            plan.effects.insert(0, event(service, "FailedToUpdateEndpointSlices", message));
        }
        plan.waits.extend(waits(service, &pods));
        plan
    }
}

fn event(service: &Service, reason: &'static str, message: String) -> Effect {
    Effect::Event { about: reference(service), event_type: EventType::Warning, reason, message }
}

/// A slice's own service.
pub(crate) fn service_of(_view: &View, slice: &ObjectMeta) -> Vec<Key> {
    let name = slice.labels.get(layout::SERVICE_NAME);
    name.map(|it| Key::new(&*slice.namespace, &**it)).into_iter().collect()
}

/// Every service of the pod's namespace that selects it.
pub(crate) fn services_for(view: &View, pod: &ObjectMeta) -> Vec<Key> {
    let services = view.in_namespace::<Service>(&pod.namespace);
    services.filter(|it| it.selects(&pod.labels)).map(|it| it.metadata.key()).collect()
}

/// Those whose traffic goes by zones: who they are in, and how much there is in each, is read of nodes.
fn services_by_zone(view: &View, _node: &ObjectMeta) -> Vec<Key> {
    let by_zone = |it: &&Service| !it.spec.traffic_distribution.is_empty() || topology::is_automatic(it);
    view.list::<Service>().filter(by_zone).map(|it| it.metadata.key()).collect()
}

/// The pods a service stands for that have an address and have not ended, in order of names.
pub(crate) fn backends<'a>(view: &'a View, service: &'a Service) -> impl Iterator<Item = &'a Pod> {
    selected(view, service).filter(|it| has_address(it))
}

fn has_address(pod: &Pod) -> bool {
    pod.ips().next().is_some()
}

/// The pods it stands for that have not ended.
fn selected<'a>(view: &'a View, service: &'a Service) -> impl Iterator<Item = &'a Pod> {
    let pods = view.in_namespace::<Pod>(&service.metadata.namespace);
    pods.filter(|it| !it.is_finished() && service.selects(&it.metadata.labels) && it.ips().next().is_some())
}

/// Each port of a service is at each of its pods.
const PORTS_OF_PODS_MAX: usize = 2_000_000;

/// What is more than can be kept is not begun with.
pub(crate) fn too_many(service: &Service, n_pods: usize) -> Option<Wait> {
    let n_ports = service.spec.ports.len();
    (n_ports.saturating_mul(n_pods) > PORTS_OF_PODS_MAX).then(|| {
        let message =
            format!("its {n_ports} ports at each of its {n_pods} pods are more than {PORTS_OF_PODS_MAX} endpoints");
        Wait::new("TooManyEndpoints", message, Actor::Author)
    })
}

/// The labels of a service's slices beside those that say whose they are.
fn labels(service: &Service) -> Vec<(String, String)> {
    let mut labels: Vec<_> = service.metadata.labels.clone().into_iter().collect();
    if service.is_headless() {
        labels.push((layout::HEADLESS.into(), String::new()));
    }
    labels
}

/// Each backend with its node. A pod of a node that is not known is left out, unless even unready ones are wanted; one of
/// those is named.
fn with_nodes<'a>(
    view: &'a View,
    service: &Service,
    pods: &[&'a Pod],
) -> (Vec<(&'a Pod, Option<&'a ZonedNode>)>, Option<&'a Pod>) {
    let mut homeless = None;
    let mut placed = Vec::with_capacity(pods.len());
    for pod in pods.iter().copied().filter(|it| has_address(it)) {
        let node = view.get::<ZonedNode>(&Key::cluster(&*pod.spec.node_name));
        if node.is_some() || service.spec.publish_not_ready_addresses {
            placed.push((pod, node));
        } else {
            homeless = Some(pod);
        }
    }
    (placed, homeless)
}

fn desired(service: &Service, placed: &[(&Pod, Option<&ZonedNode>)], family: &str) -> Desired {
    let mut desired = Desired::default();
    for (pod, node) in placed {
        if let Some(endpoint) = endpoint(pod, *node, service, family) {
            desired.add(ports(service, pod), endpoint);
        }
    }
    desired
}

fn endpoint(pod: &Pod, node: Option<&ZonedNode>, service: &Service, family: &str) -> Option<Endpoint> {
    let is_of_family = |ip: &&str| ip.contains(':') == (family == "IPv6");
    let addresses: Vec<String> = pod.ips().filter(is_of_family).map(str::to_owned).collect();
    if addresses.is_empty() {
        return None;
    }
    let (serving, terminating) = (pod.is_ready(), pod.metadata.is_deleting());
    let ready = service.spec.publish_not_ready_addresses || (serving && !terminating);
    let zone = node.and_then(ZonedNode::zone).map(str::to_owned);
    let node_name = (!pod.spec.node_name.is_empty()).then(|| pod.spec.node_name.clone());
    let hints = if ready { hints(service, zone.as_deref(), node_name.as_deref()) } else { None };
    Some(Endpoint {
        addresses,
        conditions: EndpointConditions { ready: Some(ready), serving: Some(serving), terminating: Some(terminating) },
        hostname: is_named_in(pod, service).then(|| pod.spec.hostname.to_string()),
        node_name,
        target_ref: Some(target(pod)),
        zone,
        hints,
    })
}

/// Where traffic to an endpoint should best come from, if the service itself says so. The annotation has precedence.
fn hints(service: &Service, zone: Option<&str>, node: Option<&str>) -> Option<Hints> {
    let to_node = match &*service.spec.traffic_distribution {
        "PreferClose" | "PreferSameZone" => false,
        "PreferSameNode" => true,
        _ => return None,
    };
    if topology::is_automatic(service) {
        return None;
    }
    let hint = |it: &str| Hint { name: it.to_owned() };
    let for_zones: Vec<Hint> = zone.map(hint).into_iter().collect();
    let for_nodes: Vec<Hint> = node.filter(|_| to_node).map(hint).into_iter().collect();
    (!for_zones.is_empty() || !for_nodes.is_empty()).then_some(Hints { for_zones, for_nodes })
}

/// Has the pod a name of its own beneath the service's?
pub(crate) fn is_named_in(pod: &Pod, service: &Service) -> bool {
    !pod.spec.hostname.is_empty() && *pod.spec.subdomain == *service.metadata.name
}

pub(crate) fn target(pod: &Pod) -> ObjectReference {
    ObjectReference {
        kind: "Pod".into(),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// The service's ports as this pod has them; one it does not have is left out.
fn ports(service: &Service, pod: &Pod) -> Vec<EndpointPort> {
    let named = pod.named_ports();
    let port = |it: &ServicePort| {
        Some(EndpointPort {
            name: Some(it.name.clone()),
            port: Some(port_number(it, &named)?),
            protocol: Some(it.protocol.clone()),
            app_protocol: it.app_protocol.clone(),
        })
    };
    service.spec.ports.iter().filter_map(port).collect()
}

pub(crate) fn port_number(port: &ServicePort, of_pod: &NamedPorts<'_>) -> Option<i64> {
    match &port.target_port {
        serde_json::Value::String(name) => of_pod.number(name, &port.protocol),
        number => Some(number.as_i64().filter(|it| *it != 0).unwrap_or(port.port)),
    }
}

/// When what the slices are to say next came about: the earliest change that they do not say yet. Measuring the time from
/// there to a proxy's rules is what it is for.
fn trigger_time(service: &Service, pods: &[&Pod], held: &[&EndpointSlice]) -> Option<Time> {
    let times = held.iter().filter_map(|it| it.metadata.annotations.get(layout::TRIGGER_TIME)?.parse::<Time>().ok());
    let said = times.max();
    let backends = pods.iter().filter(|it| has_address(it));
    let changes = backends.filter_map(|it| changed_at(it)).chain(service.metadata.creation_timestamp);
    changes.filter(|it| said.is_none_or(|said| *it > said)).min().or(said)
}

/// When a pod began, or ceased, to be a backend.
pub(crate) fn changed_at(pod: &Pod) -> Option<Time> {
    pod.condition("Ready").and_then(|it| it.last_transition_time).or(pod.metadata.creation_timestamp)
}

/// What keeps a service from having a backend.
fn waits(service: &Service, pods: &[&Pod]) -> Option<Wait> {
    if service.metadata.is_deleting() {
        return None;
    }
    let Some(first) = pods.first() else {
        return Some(Wait::new("NoPodsSelected", "no pod has the labels it selects", Actor::Author));
    };
    if service.spec.publish_not_ready_addresses || pods.iter().any(|it| it.is_ready()) {
        return None;
    }
    Some(Wait::new("NoPodsReady", "none of its pods is ready", Actor::Cluster).on("Pod", &first.metadata.name))
}
