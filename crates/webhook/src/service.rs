//! From a Service to its ready endpoints, as `ResolveEndpoint` of Kubernetes' aggregator.

use std::net::{IpAddr, SocketAddr};

use corten_api::resources::{ENDPOINT_SLICES, SERVICES};
use corten_cacher::watch_cache::Caches;
use serde::Deserialize;
use thiserror::Error;

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

/// Why a Service leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoEndpoint {
    #[error("service {0:?} not found")]
    NoService(String),
    #[error("unsupported service type {0:?}")]
    ExternalName(String),
    #[error("no service port {port} found for service {name:?}")]
    NoPort { name: String, port: u16 },
    #[error("no endpoints available for service {0:?}")]
    NoSlices(String),
    #[error("no endpoints available for service {name:?}")]
    NoAddresses { name: String, port_name: String },
}

/// All that are ready.
///
/// # Errors
/// There is none, and why.
pub fn endpoints(caches: &Caches, namespace: &str, name: &str, port: u16) -> Result<Vec<SocketAddr>, NoEndpoint> {
    let services = caches.get(&SERVICES).expect("services are a row of the table");
    let service = services.get(namespace, name).ok_or_else(|| NoEndpoint::NoService(name.to_owned()))?;
    let service = service.projection::<Service>();
    if service.spec.r#type == "ExternalName" {
        return Err(NoEndpoint::ExternalName(service.spec.r#type.clone()));
    }
    let found = service.spec.ports.iter().find(|it| it.port == port);
    let port_name = &*found.ok_or_else(|| NoEndpoint::NoPort { name: name.to_owned(), port })?.name;
    let slices = caches.get(&ENDPOINT_SLICES).expect("endpoint slices are a row of the table").snapshot();
    let is_its_own = |labels: &std::collections::BTreeMap<String, String>| {
        labels.get("kubernetes.io/service-name").is_some_and(|it| it == name)
    };
    let (mut addresses, mut has_slices) = (Vec::new(), false);
    for slice in slices.range(namespace, None).filter(|it| is_its_own(it.labels())) {
        has_slices = true;
        let slice = slice.projection::<Slice>();
        let of_name = |it: &&SlicePort| it.name.as_deref().unwrap_or_default() == port_name;
        let Some(port) = slice.ports.iter().flatten().find(of_name).and_then(|it| it.port) else { continue };
        let ready = slice.endpoints.iter().filter(|it| it.conditions.ready != Some(false));
        let parsed = ready.filter_map(|it| it.addresses.first()?.parse::<IpAddr>().ok());
        addresses.extend(parsed.map(|it| SocketAddr::new(it, port)));
    }
    if !has_slices {
        return Err(NoEndpoint::NoSlices(name.to_owned()));
    }
    let none = || NoEndpoint::NoAddresses { name: name.to_owned(), port_name: port_name.to_owned() };
    if addresses.is_empty() { Err(none()) } else { Ok(addresses) }
}
