//! Keeps the certificate of the cluster's authority in every namespace, as the ConfigMap that pods are given.
//!
//! Corten's API server puts it into kube-system whenever it starts; from there it is copied. Another server does not: there it is what
//! the program was told.

use std::collections::BTreeMap;

use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{Actor, Controller, Effect, Plan, Verb, View, Wait, Wake, Watch, Write, status::exact_patch};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    Settings,
    endpoint_slice::layout::changes,
    projections::{Namespace, projection},
};

const NAME: &str = "kube-root-ca.crt";
const SOURCE: &str = "kube-system";
const DESCRIPTION: &str = "kubernetes.io/description";
const TEXT: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as \
                    the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions \
                    of Kubernetes clusters.";

/// Only ConfigMaps of this one name are ever seen.
#[derive(Deserialize)]
pub(crate) struct RootCa {
    metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) data: BTreeMap<String, String>,
}
projection!(RootCa, resources::CONFIG_MAPS);

/// What the certificate is called there.
pub(crate) const CERTIFICATE: &str = "ca.crt";

/// What the copies are made of.
pub(crate) fn source() -> Key {
    Key::new(SOURCE, NAME)
}

pub(crate) fn watch(wake: Wake) -> Watch {
    let mut copies = Watch::new::<RootCa>(wake);
    copies.field_selector = format!("metadata.name={NAME}");
    copies
}

#[derive(Default)]
pub struct RootCaPublisher {
    told: Option<RootCa>,
}

impl RootCaPublisher {
    pub fn new(settings: &Settings) -> Self {
        let data = |it: &String| BTreeMap::from([(CERTIFICATE.to_owned(), it.clone())]);
        let told = settings.root_ca.as_ref().map(|it| RootCa { metadata: ObjectMeta::default(), data: data(it) });
        Self { told }
    }
}

impl Controller for RootCaPublisher {
    fn name(&self) -> &'static str {
        "root-ca-certificate-publisher"
    }

    fn watches(&self) -> Vec<Watch> {
        vec![Watch::new::<Namespace>(Wake::Itself), watch(Wake::With(namespaces))]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Create, resource: resources::CONFIG_MAPS, fields: &[] },
                Write {
                    verb: Verb::Patch,
                    resource: resources::CONFIG_MAPS,
                    fields: &["data", "metadata.annotations"],
                },
            ]
        }
    }

    fn reconcile(&self, view: &View, key: &Key, _now: Time) -> Plan {
        let namespace = view.get::<Namespace>(key).filter(|it| !it.metadata.is_deleting());
        if namespace.is_none_or(|it| it.status.phase == "Terminating") {
            return Plan::default();
        }
        let Some(source) = self.told.as_ref().or_else(|| view.get::<RootCa>(&source())) else {
            let message = format!("{SOURCE}/{NAME} is not there: the API server makes it when it starts");
            let wait = Wait::new("RootCaMissing", message, Actor::Operator).on("ConfigMap", NAME);
            return Plan { waits: vec![wait], ..Plan::default() };
        };
        let effect = match view.get::<RootCa>(&Key::new(&*key.name, NAME)) {
            None => Some(create(&key.name, source)),
            Some(copy) => correct(copy, source),
        };
        Plan { effects: effect.into_iter().collect(), ..Plan::default() }
    }
}

/// A copy's own namespace; all of them where it is what the others are copied from.
fn namespaces(view: &View, copy: &ObjectMeta) -> Vec<Key> {
    if copy.namespace == SOURCE {
        return view.list::<Namespace>().map(|it| it.metadata.key()).collect();
    }
    vec![Key::cluster(&*copy.namespace)]
}

fn create(namespace: &str, source: &RootCa) -> Effect {
    let object = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": NAME, "namespace": namespace, "annotations": { DESCRIPTION: TEXT } },
        "data": source.data,
    });
    Effect::Create { resource: resources::CONFIG_MAPS, object }
}

fn correct(copy: &RootCa, source: &RootCa) -> Option<Effect> {
    let mut patch = json!({});
    let data = changes(&copy.data, &source.data);
    if !data.is_empty() {
        patch["data"] = Value::Object(data);
    }
    if copy.metadata.annotations.get(DESCRIPTION).is_none_or(|it| it != TEXT) {
        patch["metadata"]["annotations"][DESCRIPTION] = json!(TEXT);
    }
    let is_same = patch.as_object().is_none_or(serde_json::Map::is_empty);
    (!is_same).then(|| exact_patch(resources::CONFIG_MAPS, &copy.metadata, patch))
}
