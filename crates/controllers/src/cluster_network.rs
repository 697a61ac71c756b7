//! Keeps the ConfigMap right by which the machines of the cluster know its addresses, its domain and the pool of load balancers.
//!
//! The API server puts it there when it starts. Of several servers the one that leads says what is in it.

use std::collections::BTreeMap;

use corten_api::{
    cluster_network::{CONFIG_MAP, CONFIG_MAP_NAMESPACE},
    resources,
};
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Controller, Effect, Plan, Verb, View, Wake, Watch, Write, status::exact_patch};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    endpoint_slice::layout::changes,
    projections::{Namespace, or_default, projection},
    settings::Settings,
};

/// Only ConfigMaps of this one name are ever seen.
#[derive(Deserialize)]
struct Record {
    metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    data: BTreeMap<String, String>,
}
projection!(Record, resources::CONFIG_MAPS);

pub struct ClusterNetworkRecord(BTreeMap<String, String>);

impl ClusterNetworkRecord {
    pub fn new(settings: &Settings) -> Self {
        let Settings { network, node_ports, load_balancer_pool, name_servers, .. } = settings;
        Self(network.record(node_ports, load_balancer_pool, name_servers))
    }
}

impl Controller for ClusterNetworkRecord {
    fn name(&self) -> &'static str {
        "cluster-network"
    }

    fn watches(&self) -> Vec<Watch> {
        let mut records = Watch::new::<Record>(Wake::Itself);
        records.field_selector = format!("metadata.name={CONFIG_MAP}");
        vec![records, Watch::new::<Namespace>(Wake::With(of_namespace))]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Create, resource: resources::CONFIG_MAPS, fields: &[] },
                Write { verb: Verb::Patch, resource: resources::CONFIG_MAPS, fields: &["data"] },
            ]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, _now: Time) -> Plan {
        let is_there =
            view.get::<Namespace>(&Key::cluster(&*key.namespace)).is_some_and(|it| !it.metadata.is_deleting());
        if *key != record_key() || !is_there {
            return Plan::default();
        }
        let effect = match view.get::<Record>(key) {
            None => Some(self.create()),
            Some(held) if held.metadata.is_deleting() => None,
            Some(held) => self.correct(held),
        };
        Plan { effects: effect.into_iter().collect(), ..Plan::default() }
    }
}

impl ClusterNetworkRecord {
    fn create(&self) -> Effect {
        let metadata = json!({ "name": CONFIG_MAP, "namespace": CONFIG_MAP_NAMESPACE });
        let object = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": self.0 });
        Effect::Create { resource: resources::CONFIG_MAPS, object }
    }

    /// What somebody has added goes, too: machines that join would believe it.
    fn correct(&self, held: &Record) -> Option<Effect> {
        let data = changes(&held.data, &self.0);
        let patch =
            || exact_patch(resources::CONFIG_MAPS, &held.metadata, json!({ "data": Value::Object(data.clone()) }));
        (!data.is_empty()).then(patch)
    }
}

fn record_key() -> Key {
    Key::new(CONFIG_MAP_NAMESPACE, CONFIG_MAP)
}

fn of_namespace(_view: &View, namespace: &ObjectMeta) -> Vec<Key> {
    if namespace.name == CONFIG_MAP_NAMESPACE { vec![record_key()] } else { Vec::new() }
}
