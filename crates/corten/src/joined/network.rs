//! Learns which addresses and which domain the cluster has, that this machine is a node of.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use anyhow::{Context, Result};
use corten_api::{
    cluster_network::{CONFIG_MAP, CONFIG_MAP_NAMESPACE, ClusterNetwork, NODE_PORT_RANGE, NodePorts},
    core::v1::ConfigMap,
    host_ports::HostPortRange,
    resources::CONFIG_MAPS,
};
use corten_client::Client;
use corten_machine::write_whole;
use corten_meta::Key;

use crate::network_options::{DnsForwarding, NetworkOptions};

/// Below the node's data: what the cluster said last.
const FILE: &str = "kubelet/cluster-network.json";
/// A node that was told before starts with that where the server does not answer for so long.
const KNOWN_AFTER: Duration = Duration::from_secs(5);

/// Without an answer it is what the cluster said before. A cluster that tells nobody has what every cluster has.
///
/// # Errors
/// What it says is no network, or cannot be kept.
pub(crate) async fn cluster_network(client: &Client, data: &Path) -> Result<NetworkOptions> {
    let path = data.join(FILE);
    let known = fs::read(&path).ok().and_then(|it| serde_json::from_slice::<BTreeMap<String, String>>(&it).ok());
    let key = Key::new(CONFIG_MAP_NAMESPACE, CONFIG_MAP);
    // Which a new node waits for as long as for any answer.
    let client = if known.is_some() { client.clone().with_deadline(KNOWN_AFTER) } else { client.clone() };
    let told = match client.get_as::<ConfigMap>(&CONFIG_MAPS, &key).await {
        Ok(found) => found.data.unwrap_or_default(),
        // What the cluster has said before does not change because the object is gone.
        Err(error) if error.status().is_some_and(|it| matches!(it.code, 403 | 404)) => {
            known.clone().unwrap_or_default()
        }
        Err(error) => match &known {
            Some(known) => {
                tracing::warn!(%error, "the API server does not answer: the node has the addresses of before");
                known.clone()
            }
            None => return Err(error).context("asking which addresses the cluster has"),
        },
    };
    let wrong = |errors: Vec<String>| anyhow::anyhow!("the cluster's ConfigMap {key}: {}", errors.join("; "));
    let network = ClusterNetwork::of(&told).map_err(wrong)?;
    let node_ports = told.get(NODE_PORT_RANGE).and_then(|it| NodePorts::parse(it)).unwrap_or_default();
    if known.as_ref() != Some(&told) {
        let text = serde_json::to_vec_pretty(&told).context("writing the addresses of the cluster")?;
        write_whole(&path, 0o600, &text).with_context(|| format!("writing {}", path.display()))?;
    }
    let dns = DnsForwarding::told(&told).unwrap_or_else(|error| {
        tracing::warn!(
            error = format!("{error:#}"),
            "the cluster's ConfigMap {key}: the machine's name servers are asked"
        );
        DnsForwarding::default()
    });
    // An API server alone chooses ports of the host.
    let host_ports = HostPortRange::default();
    Ok(NetworkOptions { network, is_settled: true, node_ports, host_ports, dns })
}
