//! Services: what they route to, where that is not what was meant.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use corten_api::{
    load_balancer::POOL_ADDRESSES,
    resources::{ENDPOINT_SLICES, PODS},
};
use corten_meta::Key;
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::{found::Findings, observed, unheard};
use crate::why::{
    State,
    fields::{condition, items, text, time},
    pod_steps,
    reader::Reader,
};

/// So long after a Service without selector was made nobody misses its EndpointSlice.
const WRITTEN_AFTER: Duration = Duration::from_secs(60);
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MIRRORING: &str = "endpointslicemirroring-controller.k8s.io";
pub(crate) const SERVICE_NAME: &str = "kubernetes.io/service-name";

pub(super) async fn service(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    if object["metadata"]["deletionTimestamp"].is_string() {
        return;
    }
    if object["spec"]["type"] == "ExternalName" {
        let name = text(object, "/spec/externalName");
        found.verdict = Some((State::Fine, format!("it is another name for {name}, and has no endpoints of its own")));
        return;
    }
    let selector: BTreeMap<String, String> =
        serde_json::from_value(object["spec"]["selector"].clone()).unwrap_or_default();
    if selector.is_empty() {
        without_selector(reader, object, found).await;
    } else {
        named_ports(reader, object, &selector, found).await;
        makers(reader, object, &selector, found).await;
        let pods = reader.list(&PODS, text(object, "/metadata/namespace")).await;
        let selected: Vec<&Value> = pods.iter().filter(|it| is_selected(it, &selector)).collect();
        observed::target_ports(reader, object, &selected, found).await;
    }
    observed::node_ports(reader, object, found).await;
    // Where the pool has none for it a condition says so.
    let is_told = condition(object, POOL_ADDRESSES).is_some();
    let is_balancer = object["spec"]["type"] == "LoadBalancer" && !is_told;
    if is_balancer && items(object, "/status/loadBalancer/ingress").is_empty() {
        let message = "nobody has given it an address: that is for a load balancer's own program to do";
        let mut wait = Wait::new("LoadBalancerPending", message, Actor::External);
        wait.since = time(&object["metadata"]["creationTimestamp"]);
        found.wait(wait);
    }
    unheard::service(reader, object, found).await;
}

async fn without_selector(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
    let slices = reader.list(&ENDPOINT_SLICES, namespace).await;
    let own: Vec<&Value> = slices.iter().filter(|it| it["metadata"]["labels"][SERVICE_NAME] == name).collect();
    // Who answers at its addresses says less of it.
    found.explains.push("NoEndpoints");
    if own.iter().flat_map(|it| items(it, "/endpoints")).any(is_ready_endpoint) {
        return;
    }
    if let Some(slice) = own.iter().find(|it| !items(it, "/endpoints").is_empty()) {
        let message = format!(
            "it selects no pods, and no address of {} is ready, as whoever writes that says",
            writer_of(slice).0
        );
        let written = items(slice, "/metadata/managedFields").iter().filter_map(|it| time(&it["time"])).max();
        let since = written.or_else(|| time(&slice["metadata"]["creationTimestamp"]));
        found.wait(Wait { since, ..Wait::new("NoEndpoints", message, Actor::Author) });
    } else {
        let message = "it selects no pods, and no EndpointSlice with an address names it";
        // When one went nobody has written down; when an address was taken from one is its last write.
        let written =
            own.into_iter().flat_map(|it| items(it, "/metadata/managedFields")).filter_map(|it| time(&it["time"]));
        let since = written.chain(time(&object["metadata"]["creationTimestamp"])).max();
        // Whoever makes a Service may be about to write where it leads.
        let is_new = since.is_some_and(|it| it.after(WRITTEN_AFTER) > reader.now);
        let actor = if is_new { Actor::Cluster } else { Actor::Author };
        found.wait(Wait { since, ..Wait::new("NoEndpoints", message, actor) });
    }
}

/// What a person or a program wrote, of which a slice is made, and who that was; the slice itself, unless it mirrors Endpoints.
pub(crate) fn writer_of(slice: &Value) -> (String, &str) {
    let is_mirror = slice["metadata"]["labels"][MANAGED_BY] == MIRRORING;
    let written = if is_mirror {
        format!("endpoints/{}", text(slice, &format!("/metadata/labels/{}", SERVICE_NAME.replace('/', "~1"))))
    } else {
        format!("endpointslice/{}", text(slice, "/metadata/name"))
    };
    let last = items(slice, "/metadata/managedFields").iter().max_by_key(|it| text(it, "/time"));
    (written, last.filter(|_| !is_mirror).map(|it| text(it, "/manager")).unwrap_or_default())
}

/// The workloads of a namespace: kind and object.
pub(crate) async fn workloads(reader: &Reader<'_>, namespace: &str) -> Vec<(&'static str, Value)> {
    let mut workloads = Vec::new();
    for name in ["deployment", "statefulset", "daemonset"] {
        let Some(kind) = corten_kinds::by_name(name) else { continue };
        let objects = reader.list(&kind.resource, namespace).await;
        workloads.extend(objects.iter().map(|it| (name, it.clone())));
    }
    workloads
}

/// Where no Pod is selected there may be a workload whose Pods would be, and it can say why it has none.
async fn makers(reader: &Reader<'_>, object: &Value, selector: &BTreeMap<String, String>, found: &mut Findings) {
    let namespace = text(object, "/metadata/namespace");
    let pods = reader.list(&PODS, namespace).await;
    let mut selected = pods.iter().filter(|it| is_selected(it, selector)).peekable();
    if let Some(first) = selected.peek() {
        // Its endpoints know only of Pods that have an address.
        found.explains.extend(["NoPodsSelected", "NoPodsReady", "NoEndpoints"]);
        let first = text(first, "/metadata/name");
        let is_ready = |it: &&Value| condition(it, "Ready").is_some_and(|it| it["status"] == "True");
        let is_any_ready = selected.clone().any(|it| is_ready(&it));
        if selected.clone().all(pod_steps::is_over) {
            let n_pods = selected.count();
            let all = if n_pods == 1 {
                "the only pod it selects has".into()
            } else {
                format!("all {n_pods} pods it selects have")
            };
            found.add("PodsEnded", format!("{all} ended, and nothing makes others: nobody answers"), Actor::Author);
        } else if !is_any_ready {
            found.wait(Wait::new("NoPodsReady", "none of its pods is ready", Actor::Cluster).on("Pod", first));
        }
        return;
    }
    let makes = |it: &Value| is_selected(&it["spec"]["template"], selector);
    let makers = workloads(reader, namespace).await;
    let Some((kind, maker)) = makers.iter().find(|it| makes(&it.1)) else { return };
    let name = text(maker, "/metadata/name");
    let is_empty = maker["spec"]["replicas"] == 0;
    let why = if is_empty { " and is scaled to 0" } else { "" };
    let actor = if is_empty { Actor::Author } else { Actor::Cluster };
    let message = format!("it selects the pods of {kind}/{name}, which has none{why}");
    let reason = if is_empty { "ScaledToZero" } else { "NoPodsMade" };
    found.explains.push("NoPodsSelected");
    found.wait(Wait::new(reason, message, actor).on(kind, name));
}

/// A target port by name must be the name of a container's port, or the Service leads nowhere.
async fn named_ports(reader: &Reader<'_>, object: &Value, selector: &BTreeMap<String, String>, found: &mut Findings) {
    let protocol = |it: &Value| it["protocol"].as_str().unwrap_or("TCP").to_owned();
    let ports = items(object, "/spec/ports").iter();
    let named: Vec<(&str, String)> = ports.filter_map(|it| Some((it["targetPort"].as_str()?, protocol(it)))).collect();
    if named.is_empty() {
        return;
    }
    let pods = reader.list(&PODS, text(object, "/metadata/namespace")).await;
    let selected: Vec<&Value> = pods.iter().filter(|it| is_selected(it, selector)).collect();
    let names: Vec<&str> = selected.iter().flat_map(|it| port_names(it)).collect();
    for (port, wanted) in named.iter().filter(|it| names.contains(&it.0)) {
        let all = selected.iter().flat_map(|it| items(it, "/spec/containers")).flat_map(|it| items(it, "/ports"));
        let theirs: Vec<String> = all.filter(|it| it["name"] == *port).map(protocol).collect();
        if !theirs.contains(wanted) {
            let theirs = theirs.first().cloned().unwrap_or_default();
            let message = format!("its target port {port:?} is {theirs} at its pods, and {wanted} here");
            found.add("PortProtocolMismatch", message, Actor::Author);
        }
    }
    for (port, _) in named.into_iter().filter(|it| !selected.is_empty() && !names.contains(&it.0)) {
        let there =
            if names.is_empty() { "they name none".to_owned() } else { format!("they have {}", distinct(&names)) };
        let message = format!("its target port {port:?} is the name of no port of its pods: {there}");
        found.add("NamedPortMissing", message, Actor::Author);
    }
}

fn distinct(names: &[&str]) -> String {
    let names: std::collections::BTreeSet<String> = names.iter().map(|it| format!("{it:?}")).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

pub(crate) fn is_selected(pod: &Value, selector: &BTreeMap<String, String>) -> bool {
    selector.iter().all(|(name, value)| pod["metadata"]["labels"][name] == **value)
}

pub(crate) fn port_names(pod: &Value) -> Vec<&str> {
    let ports = items(pod, "/spec/containers").iter().flat_map(|it| items(it, "/ports"));
    ports.map(|it| text(it, "/name")).filter(|it| !it.is_empty()).collect()
}

pub(super) fn is_ready_endpoint(endpoint: &Value) -> bool {
    endpoint["conditions"]["ready"] != false
}

/// The Services with an endpoint that is ready.
pub(crate) fn ready(slices: &[Value]) -> BTreeSet<Key> {
    let is_ready = |it: &&Value| items(it, "/endpoints").iter().any(is_ready_endpoint);
    let name =
        |it: &Value| Some(Key::new(text(it, "/metadata/namespace"), it["metadata"]["labels"][SERVICE_NAME].as_str()?));
    slices.iter().filter(is_ready).filter_map(name).collect()
}

pub(super) fn endpoints(object: &Value, found: &mut Findings) {
    if items(object, "/subsets").iter().all(|it| items(it, "/addresses").is_empty()) {
        let name = text(object, "/metadata/name");
        found.wait(Wait::new("NoEndpoints", "it has no address that is ready", Actor::Cluster).on("Service", name));
    }
}

pub(super) fn endpoint_slice(object: &Value, found: &mut Findings) {
    if !items(object, "/endpoints").iter().any(is_ready_endpoint) {
        let wait = Wait::new("NoEndpoints", "it has no address that is ready", Actor::Cluster);
        found.wait(match object["metadata"]["labels"][SERVICE_NAME].as_str() {
            Some(service) => wait.on("Service", service),
            None => wait,
        });
    }
}
