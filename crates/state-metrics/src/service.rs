//! What is told of Services.

use corten_api::resources::SERVICES as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::family::{Family, KindMetrics};

static SERVICES_AT: Resource = RESOURCE;

pub(crate) static SERVICES: KindMetrics<Service> = KindMetrics {
    resource: &SERVICES_AT,
    labels: &["namespace", "service", "uid"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name, &it.metadata.uid],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Service {
    metadata: ObjectMeta,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    #[serde(rename = "clusterIP")]
    cluster_ip: String,
    #[serde(rename = "externalIPs")]
    external_ips: Vec<String>,
    external_name: String,
    external_traffic_policy: String,
    #[serde(rename = "loadBalancerIP")]
    load_balancer_ip: String,
    #[serde(rename = "type")]
    of: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    load_balancer: LoadBalancer,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LoadBalancer {
    ingress: Vec<LoadBalancerIngress>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LoadBalancerIngress {
    ip: String,
    hostname: String,
}

const FAMILIES: &[Family<Service>] = &[
    Family::gauge("kube_service_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge("kube_service_deletion_timestamp", "Unix deletion timestamp", &[], |it, out| {
        out.one(it.metadata.deletion_timestamp)
    }),
    Family::gauge(
        "kube_service_info",
        "Information about service.",
        &["cluster_ip", "external_name", "external_traffic_policy", "load_balancer_ip"],
        |it, out| {
            let spec = &it.spec;
            let (name, policy) = (&*spec.external_name, &*spec.external_traffic_policy);
            out.add(&[&*spec.cluster_ip, name, policy, &*spec.load_balancer_ip], 1.0);
        },
    ),
    Family::gauge(
        "kube_service_spec_external_ip",
        "Service external ips. One series for each ip",
        &["external_ip"],
        |it, out| it.spec.external_ips.iter().for_each(|ip| out.add(&[ip], 1.0)),
    ),
    Family::gauge("kube_service_spec_type", "Type about service.", &["type"], |it, out| out.add(&[&it.spec.of], 1.0)),
    Family::gauge(
        "kube_service_status_load_balancer_ingress",
        "Service load balancer ingress status",
        &["ip", "hostname"],
        |it, out| {
            it.status.load_balancer.ingress.iter().for_each(|it| out.add(&[&it.ip, &it.hostname], 1.0));
        },
    ),
];
