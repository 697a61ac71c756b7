//! Where another machine reaches the API server.

use std::net::IpAddr;

use anyhow::{Context, Result};
use corten_api::{
    core::v1::Node,
    discovery::v1::EndpointSlice,
    resources::{ENDPOINT_SLICES, NODES},
};
use corten_client::{Client, ListParams};
use corten_meta::address::{Cidr, is_reachable};

use crate::cluster_place::ClusterPlace;
use corten_console::failure::Failure;

/// What was given.
///
/// # Errors
/// It is no address of an API server.
pub(super) fn checked(url: &str) -> Result<String> {
    match host(url) {
        Some(_) => Ok(url.trim_end_matches('/').to_owned()),
        None => Err(Failure::new(format!("--server {url}: must be https://HOST:PORT")).into()),
    }
}

/// What the kubeconfig says, where that is no address of this machine alone; else what the Service `kubernetes` leads to.
///
/// # Errors
/// Only this machine and its Pods reach the server.
pub(super) async fn of(client: &Client, place: &ClusterPlace) -> Result<String> {
    let kubeconfig = &*place.server;
    let from_outside = |it: &str| it != "localhost" && it.parse::<IpAddr>().map_or(true, is_reachable);
    if host(kubeconfig).is_some_and(|it| from_outside(&it)) {
        return Ok(kubeconfig.trim_end_matches('/').to_owned());
    }
    let params = ListParams {
        namespace: "default".into(),
        label_selector: "kubernetes.io/service-name=kubernetes".into(),
        ..ListParams::default()
    };
    let slices =
        client.list_as::<EndpointSlice>(&ENDPOINT_SLICES, &params).await.context("asking where the API is served")?;
    let nodes = client.list_as::<Node>(&NODES, &ListParams::default()).await.context("asking for the nodes")?;
    let ranges = nodes.iter().filter_map(|it| it.spec.as_ref()?.pod_cidrs.as_ref()).flatten();
    let ranges: Vec<Cidr> = ranges.filter_map(|it| Cidr::parse(it)).collect();
    let mut served = slices.iter().flat_map(|slice| {
        let port = slice.ports.iter().flatten().find_map(|it| it.port).unwrap_or(443);
        slice.endpoints.iter().flatten().flat_map(|it| &it.addresses).map(move |it| (it, port))
    });
    // A node's own address for its Pods is reached by them alone.
    let found = served.find_map(|(address, port)| {
        let address: IpAddr = address.parse().ok()?;
        let is_outside = is_reachable(address) && !ranges.iter().any(|it| it.contains(address));
        is_outside.then(|| std::net::SocketAddr::new(address, u16::try_from(port).unwrap_or(443)))
    });
    let found = found.map(|it| format!("https://{it}"));
    found.ok_or_else(|| {
        let message = format!("the API is served at {kubeconfig}, which no other machine reaches");
        let other =
            || Failure::new(format!("{message}: it must be started with --bind ADDRESS")).next(place.listener());
        place.serve_everywhere().map_or_else(other, |it| Failure::new(&*message).next(it)).into()
    })
}

fn host(url: &str) -> Option<String> {
    let rest = url.strip_prefix("https://")?.split('/').next()?;
    let host = match rest.strip_prefix('[') {
        Some(rest) => rest.split(']').next()?,
        None => rest.split(':').next()?,
    };
    (!host.is_empty()).then(|| host.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_host_is_read() {
        for (url, expected) in [
            ("https://10.0.0.1:6443", Some("10.0.0.1")),
            ("https://[fd00::1]:6443", Some("fd00::1")),
            ("https://cluster.example.com", Some("cluster.example.com")),
            ("http://10.0.0.1:6443", None),
            ("https://", None),
        ] {
            assert_eq!(host(url).as_deref(), expected, "{url}");
        }
        assert_eq!(checked("https://10.0.0.1:6443/").expect("a URL"), "https://10.0.0.1:6443");
        assert!(checked("10.0.0.1").is_err());
    }
}
