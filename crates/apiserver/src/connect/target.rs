//! Which Pod, which container, which node: read from the caches.

use corten_api::resources::{NODES, PODS};
use corten_meta::{Resource, Status};
use serde::{Deserialize, de::DeserializeOwned};

use crate::{Server, request::Context};

#[derive(Deserialize)]
struct Pod {
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default)]
    node_name: String,
    #[serde(default)]
    containers: Vec<Container>,
    #[serde(default)]
    init_containers: Vec<Container>,
    #[serde(default)]
    ephemeral_containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    name: String,
}

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
pub(super) struct Node {
    pub(super) name: String,
    pub(super) address: String,
    pub(super) port: u16,
    /// Must its certificate be the cluster's, and name it?
    pub(super) is_verified: bool,
}

impl Node {
    /// As its Node says.
    pub(super) fn find(server: &Server, name: &str) -> Result<Self, Status> {
        let node: NodeObject = cached(server, &NODES, "", name)?;
        let address = node.status.addresses.iter().find(|it| it.kind == "InternalIP");
        let address = address.ok_or_else(|| Status::internal(format!("node {name:?} has no internal address")))?;
        let port = match node.status.daemon_endpoints.kubelet_endpoint.port {
            0 => PORT,
            port => port,
        };
        Ok(Self { name: name.to_owned(), address: address.address.clone(), port, is_verified: true })
    }

    pub(super) fn authority(&self) -> String {
        if self.address.contains(':') {
            format!("[{}]:{}", self.address, self.port)
        } else {
            format!("{}:{}", self.address, self.port)
        }
    }
}

/// The Pod that a request is about.
pub(super) struct Target {
    pub(super) namespace: String,
    pub(super) name: String,
    spec: Spec,
}

pub(super) fn cached<T: DeserializeOwned>(
    server: &Server,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<T, Status> {
    let cache = server.caches().get(resource).expect("pods and nodes are rows of the table");
    let object = cache.get(namespace, name).ok_or_else(|| Status::not_found(resource, name))?;
    serde_json::from_slice(object.value()).map_err(Status::internal)
}

impl Target {
    pub(super) fn find(ctx: &Context) -> Result<Self, Status> {
        let (namespace, name) = (ctx.info.namespace.clone(), ctx.info.name.clone());
        let pod: Pod = cached(&ctx.server, &PODS, &namespace, &name)?;
        Ok(Self { namespace, name, spec: pod.spec })
    }

    /// The container asked for, or the Pod's only one.
    pub(super) fn container<'a>(&'a self, asked: Option<&'a str>) -> Result<&'a str, Status> {
        let Spec { containers, init_containers, ephemeral_containers, .. } = &self.spec;
        let Some(asked) = asked else {
            return match &**containers {
                [one] => Ok(&one.name),
                _ => Err(self.must_choose()),
            };
        };
        let mut all = containers.iter().chain(init_containers).chain(ephemeral_containers);
        if all.any(|it| it.name == asked) {
            return Ok(asked);
        }
        Err(Status::bad_request(format!("container {asked} is not valid for pod {}", self.name)))
    }

    fn must_choose(&self) -> Status {
        let Spec { containers, init_containers, ephemeral_containers, .. } = &self.spec;
        let names = |list: &[Container]| list.iter().map(|it| &*it.name).collect::<Vec<_>>().join(" ");
        let mut message = format!("a container name must be specified for pod {}", self.name);
        if !containers.is_empty() {
            message += &format!(", choose one of: [{}]", names(containers));
            for (list, kind) in [(init_containers, "init"), (ephemeral_containers, "ephemeral")] {
                if !list.is_empty() {
                    message += &format!(" or one of the {kind} containers: [{}]", names(list));
                }
            }
        }
        Status::bad_request(message)
    }

    /// The Pod's node; `None` where it has none yet.
    pub(super) fn node(&self, ctx: &Context) -> Result<Option<Node>, Status> {
        let name = &self.spec.node_name;
        if name.is_empty() {
            return Ok(None);
        }
        Node::find(&ctx.server, name).map(Some)
    }
}

#[cfg(test)]
pub(super) fn of_spec(name: &str, spec: serde_json::Value) -> Target {
    let spec = serde_json::from_value(spec).expect("a spec");
    Target { namespace: "default".into(), name: name.into(), spec }
}
