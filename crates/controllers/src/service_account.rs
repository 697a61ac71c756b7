//! Keeps a ServiceAccount named `default` in every active namespace: pods that name none run as it.

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Actor, Controller, Effect, Plan, Verb, View, Wait, Wake, Watch, Write};
use serde_json::json;

use crate::projections::{Namespace, ServiceAccount};

const NAME: &str = "default";

pub struct ServiceAccounts;

impl Controller for ServiceAccounts {
    fn name(&self) -> &'static str {
        "service-account"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<Namespace>(Wake::Itself), Watch::new::<ServiceAccount>(Wake::With(namespace_of))]
    }

    fn writes(&self) -> &'static [Write] {
        const { &[Write { verb: Verb::Create, resource: resources::SERVICE_ACCOUNTS, fields: &[] }] }
    }

    fn reconcile(&self, view: &View, key: &Key, _now: Time) -> Plan {
        let Some(namespace) = view.get::<Namespace>(key) else { return Plan::default() };
        let is_active = namespace.status.phase == "Active" && !namespace.metadata.is_deleting();
        if !is_active || view.get::<ServiceAccount>(&Key::new(&*key.name, NAME)).is_some() {
            return Plan::default();
        }
        let object = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": { "name": NAME, "namespace": key.name },
        });
        let message = "its service account \"default\" is not there yet, pods cannot be created";
        Plan {
            effects: vec![Effect::Create { resource: resources::SERVICE_ACCOUNTS, object }],
            waits: vec![Wait::new("ServiceAccountMissing", message, Actor::Cluster)],
            ..Plan::default()
        }
    }
}

fn namespace_of(_view: &View, account: &ObjectMeta) -> Vec<Key> {
    if account.name == NAME { vec![Key::cluster(&*account.namespace)] } else { Vec::new() }
}
