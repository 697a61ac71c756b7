//! The Service by which Pods find the name server, kept as it has to be: `kube-system/kube-dns`, and the slice that leads
//! to this node.
//!
//! A Service with a selector is somebody's own name server, and is left alone.

use std::net::IpAddr;

use corten_api::cluster_network::{NAME_SERVER_MANAGER, NAME_SERVER_SERVICE};
use corten_meta::Key;
use corten_reconcile::{Actor, Wait};
use serde_json::{Value, json};

use crate::{EndpointSlice, Service};

const NAMESPACE: &str = NAME_SERVER_SERVICE.0;
const NAME: &str = NAME_SERVER_SERVICE.1;
/// Where clients ask.
const PORT: u16 = 53;

/// Where the name server is.
#[derive(Clone, Debug)]
pub struct ServerLocation {
    /// What Pods' resolv.conf says.
    pub cluster_ip: IpAddr,
    pub node_name: String,
    pub node_ip: IpAddr,
    pub port: u16,
}

/// A write that mends something.
#[derive(Clone, Debug, PartialEq)]
pub enum Upkeep {
    CreateService(Value),
    /// A merge patch.
    PatchService(Value),
    CreateSlice(Value),
    PatchSlice(Value),
    DeleteSlice,
}

/// The Service's key, and the slice's.
pub fn key() -> Key {
    Key::new(NAMESPACE, NAME)
}

/// What is to be written, in order, and what cannot be mended from here.
pub fn upkeep(
    service: Option<&Service>,
    slice: Option<&EndpointSlice>,
    place: &ServerLocation,
) -> (Vec<Upkeep>, Option<Wait>) {
    let Some(service) = service else {
        // The slice comes when the Service is seen.
        return (vec![Upkeep::CreateService(wanted_service(place))], None);
    };
    let spec = &service.spec;
    if !spec.selector.is_empty() {
        return (slice.map(|_| Upkeep::DeleteSlice).into_iter().collect(), None);
    }
    let mut all = Vec::new();
    let ports = |it: &Service| -> Vec<(String, String, u16)> {
        it.spec.ports.iter().map(|it| (it.name.clone(), it.protocol.clone(), it.port)).collect()
    };
    let missing = wanted_ports(PORT).iter().any(|wanted| {
        !ports(service).iter().any(|it| wanted["name"] == it.0 && wanted["protocol"] == it.1 && wanted["port"] == it.2)
    });
    if missing {
        all.push(Upkeep::PatchService(json!({ "spec": { "ports": wanted_ports(PORT) } })));
    }
    all.extend(mend_slice(slice, place));
    let is_elsewhere = spec.cluster_ip.parse() != Ok(place.cluster_ip);
    let wait = is_elsewhere.then(|| {
        let message = format!(
            "pods ask {} for names, and the service kube-dns has the address {:?}: delete it, and it comes back where it is asked",
            place.cluster_ip, spec.cluster_ip
        );
        Wait::new("ClusterDNSElsewhere", message, Actor::Operator)
    });
    (all, wait)
}

fn mend_slice(slice: Option<&EndpointSlice>, place: &ServerLocation) -> Vec<Upkeep> {
    let wanted = wanted_slice(place);
    let Some(slice) = slice else { return vec![Upkeep::CreateSlice(wanted)] };
    if wanted["addressType"] != slice.address_type {
        return vec![Upkeep::DeleteSlice, Upkeep::CreateSlice(wanted)];
    }
    let addresses: Vec<_> = slice.ready().collect();
    let ports: Vec<_> =
        slice.ports.iter().flatten().map(|it| (it.name.as_deref(), it.protocol.as_deref(), it.port)).collect();
    let port = Some(place.port);
    let is_right = slice.service() == Some(key())
        && addresses == [(place.node_ip, None)]
        && ports == [(Some("dns"), Some("UDP"), port), (Some("dns-tcp"), Some("TCP"), port)];
    if is_right {
        return Vec::new();
    }
    let labels = &wanted["metadata"]["labels"];
    vec![Upkeep::PatchSlice(
        json!({ "metadata": { "labels": labels }, "endpoints": wanted["endpoints"], "ports": wanted["ports"] }),
    )]
}

fn wanted_ports(port: u16) -> [Value; 2] {
    [
        json!({ "name": "dns", "protocol": "UDP", "port": port }),
        json!({ "name": "dns-tcp", "protocol": "TCP", "port": port }),
    ]
}

fn wanted_service(place: &ServerLocation) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": { "k8s-app": NAME, "kubernetes.io/cluster-service": "true" },
        },
        "spec": { "clusterIP": place.cluster_ip.to_string(), "ports": wanted_ports(PORT) },
    })
}

fn wanted_slice(place: &ServerLocation) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": { "kubernetes.io/service-name": NAME, "endpointslice.kubernetes.io/managed-by": NAME_SERVER_MANAGER },
        },
        "addressType": if place.node_ip.is_ipv4() { "IPv4" } else { "IPv6" },
        "endpoints": [{
            "addresses": [place.node_ip.to_string()],
            "conditions": { "ready": true },
            "nodeName": place.node_name,
        }],
        "ports": wanted_ports(place.port),
    })
}

#[cfg(test)]
mod tests;
