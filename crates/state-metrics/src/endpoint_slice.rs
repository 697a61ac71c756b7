//! What is told of EndpointSlices.

use corten_api::resources::ENDPOINT_SLICES as RESOURCE;
use corten_meta::{ObjectMeta, Resource};
use serde::Deserialize;

use crate::{
    exposition::Samples,
    family::{Family, KindMetrics},
};

static ENDPOINT_SLICES_AT: Resource = RESOURCE;

pub(crate) static ENDPOINT_SLICES: KindMetrics<EndpointSlice> = KindMetrics {
    resource: &ENDPOINT_SLICES_AT,
    labels: &["namespace", "endpointslice"],
    identity: |it| vec![&it.metadata.namespace, &it.metadata.name],
    families: FAMILIES,
};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EndpointSlice {
    metadata: ObjectMeta,
    address_type: String,
    endpoints: Vec<Endpoint>,
    ports: Vec<Port>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Endpoint {
    addresses: Vec<String>,
    conditions: Conditions,
    hints: Hints,
    hostname: String,
    node_name: String,
    target_ref: TargetRef,
    zone: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Conditions {
    ready: Option<bool>,
    serving: Option<bool>,
    terminating: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Hints {
    for_zones: Vec<ForZone>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ForZone {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TargetRef {
    kind: String,
    name: String,
    namespace: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Port {
    name: String,
    port: Option<i32>,
    protocol: String,
}

const FAMILIES: &[Family<EndpointSlice>] = &[
    Family::gauge("kube_endpointslice_created", "Unix creation timestamp", &[], |it, out| {
        out.one(it.metadata.creation_timestamp)
    }),
    Family::gauge(
        "kube_endpointslice_endpoints",
        "Endpoints attached to the endpointslice.",
        ENDPOINT_LABELS,
        |it, out| it.endpoints.iter().for_each(|it| addresses(it, out)),
    ),
    Family::gauge(
        "kube_endpointslice_endpoints_hints",
        "Topology routing hints attached to endpoints",
        &["address", "for_zone"],
        |it, out| it.endpoints.iter().for_each(|it| hints(it, out)),
    ),
    Family::gauge("kube_endpointslice_info", "Information about endpointslice.", &["addresstype"], |it, out| {
        out.add(&[&it.address_type], 1.0)
    }),
    Family::gauge(
        "kube_endpointslice_ports",
        "Ports attached to the endpointslice.",
        &["port_name", "port_protocol", "port_number"],
        |it, out| {
            for port in &it.ports {
                let number = port.port.map_or_else(String::new, |it| it.to_string());
                out.add(&[&port.name, &port.protocol, &number], 1.0);
            }
        },
    ),
];

const ENDPOINT_LABELS: &[&str] = &[
    "ready",
    "serving",
    "terminating",
    "hostname",
    "targetref_kind",
    "targetref_name",
    "targetref_namespace",
    "endpoint_nodename",
    "endpoint_zone",
    "address",
];

fn addresses(endpoint: &Endpoint, out: &mut Samples<'_>) {
    let Endpoint { conditions, target_ref: target, .. } = endpoint;
    for address in &endpoint.addresses {
        let values = [
            known(conditions.ready),
            known(conditions.serving),
            known(conditions.terminating),
            &*endpoint.hostname,
            &*target.kind,
            &*target.name,
            &*target.namespace,
            &*endpoint.node_name,
            &*endpoint.zone,
            &**address,
        ];
        out.add(&values, 1.0);
    }
}

/// Empty where a condition is not known.
fn known(condition: Option<bool>) -> &'static str {
    match condition {
        Some(true) => "true",
        Some(false) => "false",
        None => "",
    }
}

/// An endpoint's addresses are all of the same host: its first stands for it.
fn hints(endpoint: &Endpoint, out: &mut Samples<'_>) {
    if let Some(address) = endpoint.addresses.first() {
        endpoint.hints.for_zones.iter().for_each(|zone| out.add(&[address, &zone.name], 1.0));
    }
}
