//! Where the API is served: under this server's name and address, those of every other over the same store, and what clients were told.

use std::collections::BTreeSet;

use corten_api::{
    api_servers::{LEASE_NAMESPACE, hosts_of_kubeconfig, hosts_of_lease},
    resources::{CONFIG_MAPS, ENDPOINTS, LEASES},
};
use corten_meta::reserved::Host;

use crate::Cluster;

/// All names and addresses that are an API server's.
pub(crate) fn hosts(cluster: &Cluster) -> BTreeSet<Host> {
    let mut hosts = BTreeSet::from([Host::parse(&cluster.machine.host_name)]);
    hosts.extend(cluster.advertise.map(|it| Host::of(it.ip())));
    if let Some(endpoints) = cluster.cache_of(&ENDPOINTS).get("default", "kubernetes") {
        let endpoints = endpoints.parse();
        let subsets = endpoints["subsets"].as_array().into_iter().flatten();
        let addresses = subsets.flat_map(|it| it["addresses"].as_array().into_iter().flatten());
        hosts.extend(addresses.filter_map(|it| it["ip"].as_str()).map(Host::parse));
    }
    let leases = cluster.cache_of(&LEASES).snapshot();
    for lease in leases.iter().filter(|it| it.namespace() == LEASE_NAMESPACE) {
        let metadata = serde_json::from_value(lease.parse()["metadata"].take());
        hosts.extend(metadata.iter().flat_map(hosts_of_lease));
    }
    if let Some(info) = cluster.cache_of(&CONFIG_MAPS).get("kube-public", "cluster-info") {
        hosts.extend(hosts_of_kubeconfig(info.parse()["data"]["kubeconfig"].as_str().unwrap_or_default()));
    }
    hosts
}
