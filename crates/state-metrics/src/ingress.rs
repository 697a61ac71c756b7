//! What is told of Ingresses.

use corten_api::resources::INGRESSES as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::{
    exposition::Samples,
    family::{Family, KindMetrics},
    resource_version,
};

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
    rules: Vec<Rule>,
    tls: Vec<Tls>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tls {
    hosts: Vec<String>,
    secret_name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Rule {
    host: String,
    http: Http,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Http {
    paths: Vec<Path>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Path {
    backend: Backend,
    path: String,
    path_type: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Backend {
    resource: ResourceBackend,
    service: Option<ServiceBackend>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ResourceBackend {
    api_group: String,
    kind: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ServiceBackend {
    name: String,
    port: Port,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Port {
    number: i32,
}

impl Ingress {
    /// The annotation is older than the field and goes before it.
    fn class(&self) -> &str {
        let annotated = self.metadata.annotations.get("kubernetes.io/ingress.class");
        annotated.or(self.spec.ingress_class_name.as_ref()).map_or("_default", |it| &**it)
    }
}

const FAMILIES: &[Family<Ingress>] = &[
    Family::gauge("kube_ingress_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge("kube_ingress_info", "Information about ingress.", &["ingressclass"], |it, out| {
        out.add(&[it.class()], 1.0)
    }),
    Family::gauge(
        "kube_ingress_metadata_resource_version",
        "Resource version representing a specific version of ingress.",
        &[],
        |it, out| resource_version::of(&it.metadata, out),
    ),
    Family::gauge(
        "kube_ingress_path",
        "Ingress host, paths and backend service information.",
        PATH_LABELS,
        |it, out| it.spec.rules.iter().for_each(|rule| paths(rule, out)),
    ),
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

const PATH_LABELS: &[&str] = &[
    "host",
    "path",
    "path_type",
    "service_name",
    "service_port",
    "resource_api_group",
    "resource_kind",
    "resource_name",
];

/// A service's port that has a name has no number, which is told as 0.
fn paths(rule: &Rule, out: &mut Samples<'_>) {
    for Path { path, path_type, backend } in &rule.http.paths {
        let (name, port) = match &backend.service {
            Some(service) => (&*service.name, service.port.number.to_string()),
            None => ("", String::new()),
        };
        let ResourceBackend { api_group, kind, name: resource } = &backend.resource;
        out.add(&[&rule.host, path, path_type, name, &port, api_group, kind, resource], 1.0);
    }
}
