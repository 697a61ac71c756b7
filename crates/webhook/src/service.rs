//! From a Service to its ready endpoints, as `ResolveEndpoint` of Kubernetes' aggregator.

use std::net::{IpAddr, SocketAddr};

use corten_api::resources::{ENDPOINT_SLICES, SERVICES};
use corten_cacher::watch_cache::Caches;
use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Service {
    spec: ServiceSpec,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ServiceSpec {
    r#type: String,
    ports: Vec<ServicePort>,
}

#[derive(Deserialize)]
struct ServicePort {
    #[serde(default)]
    name: String,
    port: u16,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Slice {
    endpoints: Vec<Endpoint>,
    ports: Option<Vec<SlicePort>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Endpoint {
    addresses: Vec<String>,
    conditions: Conditions,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Conditions {
    ready: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SlicePort {
    name: Option<String>,
    port: Option<u16>,
}

/// All that are ready.
///
/// # Errors
/// There is none, and why.
pub(crate) fn endpoints(caches: &Caches, namespace: &str, name: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
    let services = caches.get(&SERVICES).expect("services are a row of the table");
    let service = services.get(namespace, name).ok_or_else(|| format!("service {name:?} not found"))?;
    let service = service.projection::<Service>();
    if service.spec.r#type == "ExternalName" {
        return Err(format!("unsupported service type {:?}", service.spec.r#type));
    }
    let found = service.spec.ports.iter().find(|it| it.port == port);
    let port_name = &*found.ok_or_else(|| format!("no service port {port} found for service {name:?}"))?.name;
    let slices = caches.get(&ENDPOINT_SLICES).expect("endpoint slices are a row of the table").snapshot();
    let is_its_own = |labels: &std::collections::BTreeMap<String, String>| {
        labels.get("kubernetes.io/service-name").is_some_and(|it| it == name)
    };
    let mut addresses = Vec::new();
    for slice in slices.range(namespace, None).filter(|it| is_its_own(it.labels())) {
        let slice = slice.projection::<Slice>();
        let of_name = |it: &&SlicePort| it.name.as_deref().unwrap_or_default() == port_name;
        let Some(port) = slice.ports.iter().flatten().find(of_name).and_then(|it| it.port) else { continue };
        let ready = slice.endpoints.iter().filter(|it| it.conditions.ready != Some(false));
        let parsed = ready.filter_map(|it| it.addresses.first()?.parse::<IpAddr>().ok());
        addresses.extend(parsed.map(|it| SocketAddr::new(it, port)));
    }
    if addresses.is_empty() { Err(format!("no endpoints available for service {name:?}")) } else { Ok(addresses) }
}
