//! What is read of Services and EndpointSlices.

use serde::Deserialize;

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Service {
    pub(super) spec: ServiceSpec,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ServiceSpec {
    pub(super) r#type: String,
    pub(super) external_name: String,
    pub(super) ports: Vec<ServicePort>,
}

#[derive(Deserialize)]
pub(super) struct ServicePort {
    #[serde(default)]
    pub(super) name: String,
    pub(super) port: u16,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Slice {
    pub(super) endpoints: Vec<Endpoint>,
    ports: Option<Vec<SlicePort>>,
}

impl Slice {
    /// The number of the port of that name.
    pub(super) fn port(&self, name: &str) -> Option<u16> {
        let of_name = |it: &&SlicePort| it.name.as_deref().unwrap_or_default() == name;
        self.ports.iter().flatten().find(of_name).and_then(|it| it.port)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Endpoint {
    pub addresses: Vec<String>,
    conditions: Conditions,
    pub target_ref: Option<TargetRef>,
}

impl Endpoint {
    /// An endpoint whose readiness is unknown is ready (`EndpointConditions`).
    pub(super) fn is_ready(&self) -> bool {
        self.conditions.ready != Some(false)
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Conditions {
    ready: Option<bool>,
}

/// The object behind an endpoint, as whoever wrote the slice says.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct TargetRef {
    pub kind: String,
    pub name: String,
    pub namespace: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SlicePort {
    name: Option<String>,
    port: Option<u16>,
}
