//! What is told of Ingresses.

use corten_api::resources::INGRESSES as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::family::{Family, KindMetrics};

static INGRESSES_AT: Resource = RESOURCE;

pub(crate) static INGRESSES: KindMetrics<Ingress> = KindMetrics {
    resource: &INGRESSES_AT,
    labels: &["namespace", "ingress"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Ingress {
    metadata: ObjectMeta,
    spec: Spec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    ingress_class_name: Option<String>,
    tls: Vec<Tls>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tls {
    hosts: Vec<String>,
    secret_name: String,
}

const FAMILIES: &[Family<Ingress>] = &[
    Family::gauge("kube_ingress_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge("kube_ingress_info", "Information about ingress.", &["ingressclass"], |it, out| {
        out.add(&[it.spec.ingress_class_name.as_deref().unwrap_or("_default")], 1.0)
    }),
    Family::gauge(
        "kube_ingress_tls",
        "Ingress TLS host and secret information.",
        &["tls_host", "secret"],
        |it, out| {
            for tls in &it.spec.tls {
                tls.hosts.iter().for_each(|host| out.add(&[host, &tls.secret_name], 1.0));
            }
        },
    ),
];
