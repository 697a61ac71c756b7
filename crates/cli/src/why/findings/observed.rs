//! What nodes see of processes and no API object says: ports at which nothing listens, or something else does; CPU limits that hold
//! a container back; name servers that do not answer.

use std::time::Duration;

use corten_api::{
    host_ports::{HOST_PORTS, Noted},
    resources::NODES,
};
use corten_kinds::Kind;
use corten_meta::Key;
use corten_reconcile::{Actor, Observation, Throttled};
use serde_json::Value;

use super::found::Findings;
use crate::why::{
    fields::{condition, items, key_of, text, time},
    reader::Reader,
};

/// A node looks every 15 s: what became ready since may listen by now.
const SEEN_AFTER: Duration = Duration::from_secs(30);
/// So many Pods of a Service are asked about, and so many nodes.
const PODS_MAX: usize = 10;
const NODES_MAX: usize = 10;

async fn observation(reader: &Reader<'_>, kind: &str, key: &Key) -> Option<Observation> {
    let kind: &Kind = corten_kinds::by_name(kind)?;
    let decisions = reader.decisions(kind, key).await;
    decisions.into_iter().find_map(|it| it.observed).map(|it| *it)
}

fn is_ready(pod: &Value) -> bool {
    condition(pod, "Ready").is_some_and(|it| it["status"] == "True")
}

pub(super) async fn pod(reader: &Reader<'_>, pod: &Value, found: &mut Findings) {
    if let Some(Observation { throttled, silent_name_servers, .. }) = observation(reader, "pod", &key_of(pod)).await {
        let is_well = is_ready(pod) && !is_unhealthy(reader, pod).await;
        throttled.iter().for_each(|it| held_back(is_well, it, found));
        name_servers(pod, &silent_name_servers, found);
    }
    host_ports(reader, pod, found).await;
}

/// Its liveness may fail while it is ready.
async fn is_unhealthy(reader: &Reader<'_>, pod: &Value) -> bool {
    let Some(kind) = corten_kinds::by_name("pod") else { return false };
    let decisions = reader.decisions(kind, &key_of(pod)).await;
    decisions.iter().flat_map(|it| &it.waits).any(|it| it.reason == "Unhealthy")
}

/// A Pod that is well in spite of it is only slow.
fn held_back(is_well: bool, throttled: &Throttled, found: &mut Findings) {
    let Throttled { container, percent, limit_millis } = throttled;
    let message = format!(
        "container {container} used up its CPU limit of {limit_millis}m in {percent} of the last 100 periods, and waited for \
         the next one each time"
    );
    if is_well { found.notices.push(message) } else { found.add("CPUThrottled", message, Actor::Author) }
}

/// Those it asks for itself; whatever others ask for, its node has from elsewhere, too.
fn name_servers(pod: &Value, silent: &[String], found: &mut Findings) {
    let own: Vec<&str> = items(pod, "/spec/dnsConfig/nameservers").iter().filter_map(Value::as_str).collect();
    let list = silent.join(", ");
    let is_none_left = pod["spec"]["dnsPolicy"] == "None" && own.iter().all(|it| silent.iter().any(|own| own == it));
    match silent {
        [] => {}
        _ if is_none_left => {
            let message = format!(
                "no name server of its dnsConfig answers the node it is on: {list}; with dnsPolicy None it asks no other, and \
                 finds nothing by name"
            );
            found.add("NameServerSilent", message, Actor::Author);
        }
        [_] => {
            found.notices.push(format!("its name server {list} does not answer: names are found late, or not at all"))
        }
        _ => found.notices.push(format!("its name servers {list} do not answer: names are found late, or not at all")),
    }
}

/// Packets for a host port are led to the Pod, whoever listens there. With its node's network the Pod listens there itself: of a
/// container that does not run it is somebody else who does.
async fn host_ports(reader: &Reader<'_>, pod: &Value, found: &mut Findings) {
    let is_host = pod["spec"]["hostNetwork"] == true;
    let containers = items(pod, "/spec/containers").iter().filter(|it| !is_host || !runs(pod, text(it, "/name")));
    let ports = containers.flat_map(|it| items(it, "/ports"));
    let tcp: Vec<u64> = ports.filter(|it| is_tcp(it)).filter_map(|it| it["hostPort"].as_u64()).collect();
    if tcp.is_empty() {
        return;
    }
    let node = text(pod, "/spec/nodeName");
    let Some(taken) = observation(reader, "node", &Key::cluster(node)).await.and_then(|it| it.listening) else {
        return;
    };
    let note = pod.pointer("/metadata/annotations").and_then(|it| it[HOST_PORTS].as_str());
    let chosen: Noted = note.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    for port in tcp.into_iter().filter(|it| taken.iter().any(|taken| u64::from(*taken) == *it)) {
        let is_chosen = chosen.values().any(|it| u64::from(*it) == port);
        let then = if is_chosen {
            "it was chosen for the pod, and is not given to it while the process has it"
        } else if is_host {
            "the pod has that machine's network, and gets no such port while the process has it"
        } else {
            "packets for the host port are led to the pod, and that process gets none"
        };
        let message = format!("a process of the machine of node {node} listens at port {port}, too: {then}");
        // What was chosen nobody wrote.
        found.add("HostPortTaken", message, if is_chosen { Actor::Operator } else { Actor::Author });
    }
}

fn runs(pod: &Value, container: &str) -> bool {
    let mut statuses = items(pod, "/status/containerStatuses").iter();
    statuses.any(|it| it["name"] == container && it["state"]["running"].is_object())
}

fn is_tcp(port: &Value) -> bool {
    matches!(port["protocol"].as_str(), None | Some("TCP"))
}

/// Does anything listen at a Service's target ports?
pub(super) async fn target_ports(reader: &Reader<'_>, service: &Value, selected: &[&Value], found: &mut Findings) {
    let since = |it: &Value| condition(it, "Ready").and_then(|it| time(&it["lastTransitionTime"]));
    let is_seen = |it: &Value| since(it).is_some_and(|it| it.after(SEEN_AFTER) < reader.now);
    let pods = selected.iter().filter(|it| is_ready(it) && is_seen(it) && it["spec"]["hostNetwork"] != true);
    let mut listening: Vec<(&Value, Vec<u16>)> = Vec::new();
    for pod in pods.take(PODS_MAX) {
        let ports = observation(reader, "pod", &key_of(pod)).await.and_then(|it| it.listening);
        listening.extend(ports.map(|it| (*pod, it)));
    }
    for port in items(service, "/spec/ports").iter().filter(|it| is_tcp(it)) {
        let is_closed = |(pod, ports): &&(&Value, Vec<u16>)| {
            target(port, pod).is_some_and(|it| !ports.iter().any(|open| u64::from(*open) == it))
        };
        let closed: Vec<_> = listening.iter().filter(is_closed).collect();
        let Some((pod, open)) = closed.first() else { continue };
        let number = target(port, pod).unwrap_or_default();
        let name = text(pod, "/metadata/name");
        let there = match &open[..] {
            [] => "at no port but on its own loopback".to_owned(),
            open => format!("at {}", open.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")),
        };
        let of = match (closed.len(), listening.len()) {
            (1, 1) => String::new(),
            (n, of) => format!(" in {n} of {of} pods"),
        };
        let message = format!("nothing listens at its target port {number}{of}: pod/{name} listens {there}");
        found.add("TargetPortClosed", message, Actor::Author);
    }
}

/// The number at a Pod of a Service's port; `None` where its name is no port's.
fn target(port: &Value, pod: &Value) -> Option<u64> {
    match &port["targetPort"] {
        Value::String(name) => {
            let ports = items(pod, "/spec/containers").iter().flat_map(|it| items(it, "/ports"));
            ports.filter(|it| it["name"] == **name).find_map(|it| it["containerPort"].as_u64())
        }
        Value::Null => port["port"].as_u64(),
        number => number.as_u64(),
    }
}

/// Packets for a node port are led to the Service, whoever listens there.
pub(super) async fn node_ports(reader: &Reader<'_>, service: &Value, found: &mut Findings) {
    let ports = items(service, "/spec/ports").iter().filter(|it| is_tcp(it));
    let ports: Vec<u64> = ports.filter_map(|it| it["nodePort"].as_u64()).collect();
    if ports.is_empty() {
        return;
    }
    let nodes = reader.list(&NODES, "").await;
    for node in nodes.iter().take(NODES_MAX) {
        let name = text(node, "/metadata/name");
        let taken =
            observation(reader, "node", &Key::cluster(name)).await.and_then(|it| it.listening).unwrap_or_default();
        for port in ports.iter().filter(|it| taken.iter().any(|taken| u64::from(*taken) == **it)) {
            let message = format!(
                "a process of the machine of node {name} listens at port {port}, too: packets for the node port are led to the \
                 Service, and that process gets none but those for the loopback"
            );
            found.add("NodePortTaken", message, Actor::Author);
        }
    }
}
