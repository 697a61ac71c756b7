//! What nodes say of their drivers, as far as it is believed, and what the cluster says of the nodes.

use corten_api::{
    resources::{CSI_DRIVERS, CSI_NODES, NODES},
    storage::v1::CSINode,
    volumes::{CONTROLLER_NODES, DRIVERS_OF_OTHERS},
};
use corten_client::{Client, Identity, Informer, InformerParams, decode, decode_projection};
use corten_meta::ObjectMeta;
use serde::Deserialize;

use super::candidates::{Allowed, ObservedNode};
use crate::{NodeDriver, provisioner::MADE_BY_CONTROL_PLANE};

pub(super) struct Told {
    pub(super) node: String,
    /// Its machine has joined, and it has the built-in driver.
    pub(super) is_asked: bool,
    /// Its drivers of others, each with the keys of the labels that say where it is.
    pub(super) others: Vec<(NodeDriver, Vec<String>)>,
}

pub(super) fn joined_nodes(client: &Client, driver: &'static str) -> Informer<Told> {
    Informer::decoding(client.clone(), InformerParams::all(CSI_NODES), move |bytes| {
        #[derive(Deserialize)]
        struct OnlyMeta {
            metadata: ObjectMeta,
        }
        let meta = decode::<OnlyMeta>(&bytes)?.metadata;
        let node: CSINode = decode(&bytes)?;
        let is_joined = meta.annotations.get(MADE_BY_CONTROL_PLANE).is_some_and(|it| it == "true");
        let has_driver = node.spec.drivers.iter().any(|it| it.name == driver);
        let others = meta.annotations.get(DRIVERS_OF_OTHERS).map_or_else(Vec::new, |it| others(it, &node, driver));
        let identity = Identity::of(&meta);
        Ok((identity, Told { node: meta.name, is_asked: is_joined && has_driver, others }))
    })
}

/// A node says what its drivers can do; which it has, and where it is, is what CSINode and Node say. None of them is the one that is
/// built in.
fn others(said: &str, node: &CSINode, built_in: &str) -> Vec<(NodeDriver, Vec<String>)> {
    let told: Vec<NodeDriver> = match serde_json::from_str(said) {
        Ok(told) => told,
        Err(error) => {
            let node = node.metadata.name.as_deref().unwrap_or_default();
            tracing::warn!(%error, node, "what a node says of its drivers cannot be read");
            return Vec::new();
        }
    };
    let mut others: Vec<(NodeDriver, Vec<String>)> = Vec::new();
    for driver in told {
        let name = &driver.facts.name;
        let is_another = name != built_in && driver.facts.socket.as_ref().is_some_and(|it| !it.is_empty());
        let registered = node.spec.drivers.iter().find(|it| it.name == *name);
        if let Some(registered) = registered.filter(|_| is_another)
            && others.iter().all(|(it, _)| it.facts.name != *name)
        {
            let keys = registered.topology_keys.clone().unwrap_or_default();
            others.push((NodeDriver { node_id: registered.node_id.clone(), ..driver }, keys));
        }
    }
    others
}

/// Which nodes may act for drivers.
pub(super) fn drivers(client: &Client) -> Informer<Option<Allowed>> {
    #[derive(Deserialize)]
    struct CsiDriverObject {
        metadata: ObjectMeta,
    }
    Informer::decoding(client.clone(), InformerParams::all(CSI_DRIVERS).seeded_by("joined nodes"), |bytes| {
        let CsiDriverObject { metadata } = decode_projection(&bytes)?;
        let allowed = metadata.annotations.get(CONTROLLER_NODES).map(|it| Allowed::parse(it));
        Ok((Identity::of(&metadata), allowed))
    })
}

pub(super) fn nodes(viewer: &Client) -> Informer<ObservedNode> {
    #[derive(Deserialize)]
    struct NodeObject {
        metadata: ObjectMeta,
        #[serde(default)]
        status: Status,
    }
    #[derive(Default, Deserialize)]
    struct Status {
        #[serde(default)]
        conditions: Vec<Condition>,
    }
    #[derive(Deserialize)]
    struct Condition {
        r#type: String,
        status: String,
    }
    let params = InformerParams::all(NODES).seeded_by("joined nodes");
    Informer::decoding(viewer.clone(), params, |bytes| {
        let NodeObject { metadata, status } = decode_projection(&bytes)?;
        let is_ready = status.conditions.iter().any(|it| it.r#type == "Ready" && it.status == "True");
        Ok((Identity::of(&metadata), ObservedNode { is_ready, labels: metadata.labels }))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_is_believed_what_its_own_drivers_can_do() {
        let registered = |name: &str| json!({ "name": name, "nodeID": format!("{name}-n1"), "topologyKeys": ["zone"] });
        let node = json!({
            "metadata": { "name": "n1" },
            "spec": { "drivers": [registered("local"), registered("a"), registered("b"), registered("c")] },
        });
        let node: CSINode = serde_json::from_value(node).expect("a CSINode");
        let said = |name: &str, socket: Option<&str>| {
            let facts =
                json!({ "name": name, "socket": socket, "provisions": true, "topology": { "zone": "anywhere" } });
            json!({ "facts": facts, "nodeId": "another's", "limit": null })
        };
        let all = json!([
            said("local", Some("/s")),
            said("a", Some("/s")),
            said("a", Some("/twice")),
            said("b", None),
            said("c", Some("")),
            said("not-registered", Some("/s")),
        ]);
        let found = others(&all.to_string(), &node, "local");
        let found: Vec<_> = found.iter().map(|(it, keys)| (&*it.facts.name, &*it.node_id, keys.concat())).collect();
        assert_eq!(found, [("a", "a-n1", "zone".to_owned())]);
        assert!(others("no JSON", &node, "local").is_empty());
    }
}
