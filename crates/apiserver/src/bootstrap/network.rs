//! What the cluster has of addresses and which domain, in a ConfigMap: so machines that join learn of it, and no server runs the
//! cluster with others.

use std::collections::BTreeMap;

use corten_api::{
    cluster_network::{CLUSTER_CIDR, CONFIG_MAP, CONFIG_MAP_NAMESPACE, ClusterNetwork, SERVICE_RANGE},
    resources::{CONFIG_MAPS, NODES, SERVICE_CIDRS},
};
use corten_meta::{Resource, Status, address::Cidr};
use serde_json::{Value, json};

use super::{root_ca, send};
use crate::state::State;

/// The range of Services that every cluster has.
const FIRST_RANGE: &str = "kubernetes";

/// What a server would do to a cluster that was made with something else, as options of the cluster.
///
/// # Errors
/// What the cluster has, where the server was told something else.
pub(crate) fn refuse_other(state: &State) -> Result<(), String> {
    let own = &state.config().network;
    let told = own.settings();
    let kept = match stored(state, &CONFIG_MAPS, CONFIG_MAP_NAMESPACE, CONFIG_MAP) {
        Some(object) => said(&object["data"]),
        // A cluster that is older than the record, or another's, shows where its Services and Pods are.
        None if *own == ClusterNetwork::default() => return Ok(()),
        None => {
            elsewhere(state, own)?;
            services(state)
        }
    };
    let Ok(cluster) = ClusterNetwork::of(&told.clone().into_iter().chain(kept.clone()).collect()) else {
        // Whoever has written what cannot be read is not followed.
        return Ok(());
    };
    let differing = cluster.differing(&told).into_iter();
    let said: Vec<_> = differing.map(|(name, value)| format!("--{name}={value}, and not {}", told[&name])).collect();
    match said.join("; ") {
        none if none.is_empty() => Ok(()),
        // Else whoever may write the object could keep every server from starting. It is written anew.
        says if state.config().is_network_settled => {
            tracing::warn!(says, "the ConfigMap {CONFIG_MAP} is not what the cluster was made with");
            Ok(())
        }
        says => Err(says),
    }
}

/// Writes down what is told to this server. The ports of nodes, the pool of load balancers and the name servers may be others than
/// before. Later a loop of the server that leads keeps it so.
pub(super) async fn publish(state: &State) -> Result<(), Status> {
    let config = state.config();
    let data = config.network.record(&config.node_ports, &config.load_balancer_pool, &config.name_servers);
    let resource: Resource = CONFIG_MAPS;
    let stored = stored(state, &resource, CONFIG_MAP_NAMESPACE, CONFIG_MAP);
    match root_ca::write(&resource, CONFIG_MAP_NAMESPACE, CONFIG_MAP, &json!(data), stored) {
        Some(write) => send(state, write).await,
        None => Ok(()),
    }
}

fn stored(state: &State, resource: &Resource, namespace: &str, name: &str) -> Option<Value> {
    state.caches().get(resource)?.get(namespace, name).map(|it| it.parse())
}

fn said(data: &Value) -> BTreeMap<String, String> {
    let texts = data.as_object().into_iter().flatten();
    texts.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect()
}

/// # Errors
/// A node that has its Pods outside of the ranges.
fn elsewhere(state: &State, network: &ClusterNetwork) -> Result<(), String> {
    let nodes = state.caches().get(&NODES).map(|it| it.snapshot());
    for node in nodes.iter().flat_map(|it| it.iter()).map(|it| it.parse()) {
        let ranges = node["spec"]["podCIDRs"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(range) = ranges.filter_map(Cidr::parse).find(|it| network.range_around(it).is_none()) {
            let name = &node["metadata"]["name"];
            return Err(format!("another --{CLUSTER_CIDR}: node {name} has its Pods in {range}"));
        }
    }
    Ok(())
}

fn services(state: &State) -> BTreeMap<String, String> {
    let stored = stored(state, &SERVICE_CIDRS, "", FIRST_RANGE);
    let ranges: Vec<String> = stored
        .iter()
        .flat_map(|it| it["spec"]["cidrs"].as_array().into_iter().flatten())
        .filter_map(|it| it.as_str().map(str::to_owned))
        .collect();
    if ranges.is_empty() { BTreeMap::new() } else { [(SERVICE_RANGE.to_owned(), ranges.join(","))].into() }
}
