//! Where the kubelet of a node listens.

use corten_api::resources::NODES;
use corten_cacher::watch_cache::Caches;
use corten_meta::{Resource, Status, address::join_host_port};
use serde::{Deserialize, de::DeserializeOwned};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeObject {
    status: NodeStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NodeStatus {
    addresses: Vec<Address>,
    daemon_endpoints: DaemonEndpoints,
}

#[derive(Deserialize)]
struct Address {
    #[serde(rename = "type")]
    kind: String,
    address: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DaemonEndpoints {
    kubelet_endpoint: Endpoint,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Endpoint {
    #[serde(rename = "Port")]
    port: u16,
}

/// The kubelet's port where a node does not say another.
const PORT: u16 = 10250;

/// Where a kubelet listens, and the name its certificate must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub name: String,
    pub address: String,
    pub port: u16,
    /// Must its certificate be the cluster's, and name it?
    pub is_verified: bool,
}

impl Node {
    /// As its Node says.
    pub fn find(caches: &Caches, name: &str) -> Result<Self, Status> {
        let node: NodeObject = cached(caches, &NODES, "", name)?;
        let address = node.status.addresses.iter().find(|it| it.kind == "InternalIP");
        let address = address.ok_or_else(|| Status::internal(format!("node {name:?} has no internal address")))?;
        let port = match node.status.daemon_endpoints.kubelet_endpoint.port {
            0 => PORT,
            port => port,
        };
        Ok(Self { name: name.to_owned(), address: address.address.clone(), port, is_verified: true })
    }

    pub fn authority(&self) -> String {
        join_host_port(&self.address, self.port)
    }
}

pub fn cached<T: DeserializeOwned>(
    caches: &Caches,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<T, Status> {
    let cache = caches.get(resource).expect("pods and nodes are rows of the table");
    let object = cache.get(namespace, name).ok_or_else(|| Status::not_found(resource, name))?;
    serde_json::from_slice(object.value()).map_err(Status::internal)
}
