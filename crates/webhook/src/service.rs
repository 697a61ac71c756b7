//! From a Service to its ready endpoints, as `ResolveEndpoint` of Kubernetes' aggregator. A name elsewhere is followed as its
//! `ResolveCluster` does.

mod projections;

use std::net::{IpAddr, SocketAddr};

use corten_api::resources::{ENDPOINT_SLICES, SERVICES};
use corten_cacher::watch_cache::Caches;
use thiserror::Error;

pub use projections::{Endpoint, TargetRef};
use projections::{Service, Slice};

/// Why a Service leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoEndpoint {
    #[error("service {0:?} not found")]
    NoService(String),
    /// It has a name elsewhere in their place.
    #[error("it is the name {0:?} elsewhere")]
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
        return Err(NoEndpoint::ExternalName(service.spec.external_name.clone()));
    }
    let found = service.spec.ports.iter().find(|it| it.port == port);
    let port_name = &*found.ok_or_else(|| NoEndpoint::NoPort { name: name.to_owned(), port })?.name;
    let mut addresses = Vec::new();
    let has_slices = each_ready(caches, namespace, name, port_name, |endpoint, port| {
        let address = endpoint.addresses.first().and_then(|it| it.parse::<IpAddr>().ok());
        addresses.extend(address.map(|it| SocketAddr::new(it, port)));
    });
    if !has_slices {
        return Err(NoEndpoint::NoSlices(name.to_owned()));
    }
    let none = || NoEndpoint::NoAddresses { name: name.to_owned(), port_name: port_name.to_owned() };
    if addresses.is_empty() { Err(none()) } else { Ok(addresses) }
}

/// The name of the Service's port of that number. `None` where it has none.
pub fn port_name(caches: &Caches, namespace: &str, name: &str, port: i64) -> Option<String> {
    let service = caches.get(&SERVICES)?.get(namespace, name)?.projection::<Service>();
    service.spec.ports.iter().find(|it| i64::from(it.port) == port).map(|it| it.name.clone())
}

/// Visits each ready endpoint of a Service's port, with the number its own port has. Answers whether the Service has slices at all.
pub fn each_ready(
    caches: &Caches,
    namespace: &str,
    service: &str,
    port_name: &str,
    mut visit: impl FnMut(&Endpoint, u16),
) -> bool {
    let slices = caches.get(&ENDPOINT_SLICES).expect("endpoint slices are a row of the table").snapshot();
    let mut has_slices = false;
    for slice in slices.range(namespace, None) {
        if slice.labels().get("kubernetes.io/service-name").is_none_or(|it| it != service) {
            continue;
        }
        has_slices = true;
        let slice = slice.projection::<Slice>();
        let Some(port) = slice.port(port_name) else { continue };
        slice.endpoints.iter().filter(|it| it.is_ready()).for_each(|it| visit(it, port));
    }
    has_slices
}
