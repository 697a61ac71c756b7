//! Where a proxied request goes: read from `[SCHEME:]NAME[:PORT]` and the caches.
//!
//! A Pod's status is written by its node, a slice's addresses by whoever may: an address that is not a Pod's own, or leads
//! into this machine itself, is not asked.

use std::{
    net::IpAddr,
    sync::atomic::{AtomicUsize, Ordering},
};

use corten_api::resources::{PODS, SERVICES};
use corten_cacher::watch_cache::Caches;
use corten_meta::{Status, address::is_reachable};
use corten_webhook::{Endpoint, each_ready, port_name};
use serde::Deserialize;

use crate::node::{Node, cached};

/// Where a proxied request goes.
pub enum Location {
    /// One of the cluster's own, which is shown who asks.
    Kubelet(Node),
    /// Anything else.
    Stranger { authority: String, is_https: bool },
}

const NOT_ALLOWED: &str = "address not allowed";

/// What a path names.
struct SchemeNamePort<'a> {
    is_https: bool,
    name: &'a str,
    /// Empty: the usual one.
    port: &'a str,
}

fn named(text: &str) -> Option<SchemeNamePort<'_>> {
    let (scheme, name, port) = match text.split(':').collect::<Vec<_>>()[..] {
        [name] => ("", name, ""),
        [name, port] => ("", name, port),
        [scheme, name, port] => (scheme, name, port),
        _ => return None,
    };
    let is_known = matches!(scheme, "" | "http" | "https") && !name.is_empty();
    is_known.then_some(SchemeNamePort { is_https: scheme == "https", name, port })
}

impl Location {
    /// Of a request for the proxy of `nodes`, `pods` or `services`.
    ///
    /// # Errors
    /// 400 for a name that is none or an address that may not be asked, 404 where there is no such object, 503 where nobody answers there.
    pub fn of(caches: &Caches, plural: &str, namespace: &str, name: &str) -> Result<Self, Status> {
        let what = plural.trim_end_matches('s');
        let invalid = || Status::bad_request(format!("invalid {what} request {name:?}"));
        let named = named(name).ok_or_else(invalid)?;
        match what {
            "node" => node(caches, &named),
            "pod" => pod(caches, namespace, &named),
            _ => service(caches, namespace, name, &named),
        }
    }

    pub fn authority(&self) -> String {
        match self {
            Self::Kubelet(node) => node.authority(),
            Self::Stranger { authority, .. } => authority.clone(),
        }
    }
}

fn node(caches: &Caches, named: &SchemeNamePort<'_>) -> Result<Location, Status> {
    let mut node = Node::find(caches, named.name)?;
    let address: IpAddr = node.address.parse().map_err(|_| Status::bad_request(NOT_ALLOWED))?;
    if !is_reachable(address) {
        return Err(Status::bad_request(NOT_ALLOWED));
    }
    if named.port.is_empty() || named.port == node.port.to_string() {
        return Ok(Location::Kubelet(node));
    }
    node.port = number(named.port)?;
    Ok(Location::Stranger { authority: node.authority(), is_https: named.is_https })
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Pod {
    spec: PodSpec,
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PodSpec {
    containers: Vec<Container>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Container {
    ports: Vec<ContainerPort>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerPort {
    container_port: u16,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodStatus {
    #[serde(rename = "podIP")]
    pod_ip: String,
    #[serde(rename = "podIPs")]
    pod_ips: Vec<PodIp>,
}

#[derive(Deserialize)]
struct PodIp {
    #[serde(default)]
    ip: String,
}

fn pod(caches: &Caches, namespace: &str, named: &SchemeNamePort<'_>) -> Result<Location, Status> {
    let pod: Pod = cached(caches, &PODS, namespace, named.name)?;
    let PodStatus { pod_ip, pod_ips } = &pod.status;
    let address = pod_ips.first().map_or(pod_ip, |it| &it.ip);
    let address: Option<IpAddr> = address.parse().ok().filter(|it| is_reachable(*it));
    let address = address.ok_or_else(|| Status::bad_request(NOT_ALLOWED))?;
    let first = pod.spec.containers.iter().find_map(|it| it.ports.first()).map(|it| it.container_port);
    let port = match (named.port, first) {
        ("", Some(first)) => first,
        ("", None) if named.is_https => 443,
        ("", None) => 80,
        (port, _) => number(port)?,
    };
    Ok(Location::Stranger { authority: authority(address, port), is_https: named.is_https })
}

/// Which endpoint is asked first: another one for each request.
static TURN: AtomicUsize = AtomicUsize::new(0);

fn service(caches: &Caches, namespace: &str, asked: &str, named: &SchemeNamePort<'_>) -> Result<Location, Status> {
    cached::<serde::de::IgnoredAny>(caches, &SERVICES, namespace, named.name)?;
    let by_number = named.port.parse::<i64>().ok().map(|number| {
        let none = || format!("no service port {number} found for service {:?}", named.name);
        port_name(caches, namespace, named.name, number).ok_or_else(|| Status::unavailable(none()))
    });
    let port = by_number.unwrap_or_else(|| Ok(named.port.to_owned()))?;
    let mut found: Vec<(IpAddr, u16)> = Vec::new();
    each_ready(caches, namespace, named.name, &port, |endpoint, port| {
        found.extend(own_address(caches, endpoint).map(|it| (it, port)));
    });
    if found.is_empty() {
        return Err(Status::unavailable(format!("no endpoints available for service {asked:?}")));
    }
    let (address, port) = found.swap_remove(TURN.fetch_add(1, Ordering::Relaxed) % found.len());
    Ok(Location::Stranger { authority: authority(address, port), is_https: named.is_https })
}

/// The endpoint's address, where it is that of the Pod it says it is.
fn own_address(caches: &Caches, endpoint: &Endpoint) -> Option<IpAddr> {
    let target = endpoint.target_ref.as_ref().filter(|it| it.kind == "Pod")?;
    let pod: Pod = cached(caches, &PODS, &target.namespace, &target.name).ok()?;
    let address = endpoint.addresses.first()?;
    let PodStatus { pod_ip, pod_ips } = &pod.status;
    let is_its_own = pod_ip == address || pod_ips.iter().any(|it| it.ip == *address);
    address.parse().ok().filter(|it| is_its_own && is_reachable(*it))
}

/// As Go's `net.LookupPort`, which looks a port's name up among the well-known ones.
fn number(port: &str) -> Result<u16, Status> {
    let known = match port {
        "http" => Some(80),
        "https" => Some(443),
        _ => port.parse().ok(),
    };
    let unknown = || format!("error trying to reach service: dial tcp: lookup tcp/{port}: unknown port");
    known.filter(|it| *it > 0).ok_or_else(|| Status::unavailable(unknown()))
}

fn authority(address: IpAddr, port: u16) -> String {
    std::net::SocketAddr::new(address, port).to_string()
}
