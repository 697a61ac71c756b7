//! Publishes whom clients of the API server trust, as a ClusterTrustBundle that Pods can mount.
//!
//! The name ends in a hash of what is in it (`constructBundleName`): another bundle is another object, and those that were published
//! before go once it is there.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};
use corten_api::resources;
use corten_meta::{Key, ObjectMeta, Time};
use corten_reconcile::{
    Actor, Controller, Effect, Plan, Propagation, Verb, View, Wait, Wake, Watch, Write, status::exact_patch,
};
use serde::Deserialize;
use serde_json::json;

use crate::{
    projections::projection,
    root_ca::{self, RootCa},
};

const SIGNER: &str = "kubernetes.io/kube-apiserver-serving";
/// Of the hash.
const BYTES_OF_NAME: usize = 12;

/// Only those of [`SIGNER`] are ever seen.
#[derive(Deserialize)]
struct TrustBundle {
    metadata: ObjectMeta,
    spec: Spec,
}
projection!(TrustBundle, resources::CLUSTER_TRUST_BUNDLES);

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    trust_bundle: String,
}

/// What an API server that is asked over TLS shows is signed by the authority of `kube-root-ca.crt`.
pub struct ServerTrustPublisher;

impl Controller for ServerTrustPublisher {
    fn name(&self) -> &'static str {
        "kube-apiserver-serving-clustertrustbundle-publisher"
    }

    fn watches(&self) -> Vec<Watch> {
        let mut published = Watch::new::<TrustBundle>(Wake::With(of_signer));
        published.field_selector = format!("spec.signerName={SIGNER}");
        vec![root_ca::watch(Wake::With(of_source)), published]
    }

    fn writes(&self) -> &'static [Write] {
        const {
            &[
                Write { verb: Verb::Create, resource: resources::CLUSTER_TRUST_BUNDLES, fields: &[] },
                Write { verb: Verb::Delete, resource: resources::CLUSTER_TRUST_BUNDLES, fields: &[] },
                Write { verb: Verb::Patch, resource: resources::CLUSTER_TRUST_BUNDLES, fields: &["spec.trustBundle"] },
            ]
        }
    }

    fn reconcile(&self, view: &View, _key: &Key, _now: Time) -> Plan {
        let source = view.get::<RootCa>(&root_ca::source());
        let Some(bundle) = source.and_then(|it| it.data.get(root_ca::CERTIFICATE)) else {
            let message = "kube-system/kube-root-ca.crt is not there: the API server makes it when it starts";
            let wait = Wait::new("RootCaMissing", message, Actor::Operator).on("ConfigMap", "kube-root-ca.crt");
            return Plan { waits: vec![wait], ..Plan::default() };
        };
        let name = name_of(bundle);
        let held = view.get::<TrustBundle>(&Key::cluster(&*name));
        let publish = match held {
            None => Some(create(&name, bundle)),
            Some(held) if held.metadata.is_deleting() || held.spec.trust_bundle == *bundle => None,
            Some(held) => {
                let patch = json!({ "spec": { "trustBundle": bundle } });
                Some(exact_patch(resources::CLUSTER_TRUST_BUNDLES, &held.metadata, patch))
            }
        };
        let older = view.list::<TrustBundle>().filter(|it| it.metadata.name != name && !it.metadata.is_deleting());
        // The first that fails ends the plan: nobody is without a bundle while there is none of this name.
        Plan { effects: publish.into_iter().chain(older.map(remove)).collect(), ..Plan::default() }
    }
}

fn name_of(bundle: &str) -> String {
    let hash = digest(&SHA256, bundle.as_bytes());
    let mut name = format!("{}:", SIGNER.replace('/', ":"));
    for byte in &hash.as_ref()[..BYTES_OF_NAME] {
        write!(name, "{byte:02x}").expect("writing to memory does not fail");
    }
    name
}

fn create(name: &str, bundle: &str) -> Effect {
    let object = json!({
        "apiVersion": resources::CLUSTER_TRUST_BUNDLES.api_version(),
        "kind": "ClusterTrustBundle",
        "metadata": { "name": name },
        "spec": { "signerName": SIGNER, "trustBundle": bundle },
    });
    Effect::Create { resource: resources::CLUSTER_TRUST_BUNDLES, object }
}

fn remove(it: &TrustBundle) -> Effect {
    Effect::Delete {
        resource: resources::CLUSTER_TRUST_BUNDLES,
        key: it.metadata.key(),
        uid: it.metadata.uid.clone(),
        propagation: Propagation::Background,
        grace_seconds: None,
    }
}

/// The bundle as it is to be: there is one key, so that no two looks at it are under way at once.
fn key() -> Key {
    Key::cluster(SIGNER.replace('/', ":"))
}

fn of_signer(_view: &View, _bundle: &ObjectMeta) -> Vec<Key> {
    vec![key()]
}

fn of_source(_view: &View, copy: &ObjectMeta) -> Vec<Key> {
    if copy.key() == root_ca::source() { vec![key()] } else { Vec::new() }
}
