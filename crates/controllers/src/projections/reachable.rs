//! Services, as far as they go by where they are reached: one projection for all that ask.

use corten_api::resources;
use corten_meta::ObjectMeta;
use corten_meta::reserved::Host;
use serde::{Deserialize, Serialize};

use super::{or_default, projection};

#[derive(Deserialize)]
pub(crate) struct ReachableService {
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: ReachableSpec,
    #[serde(default)]
    pub(crate) status: ReachableStatus,
}
projection!(ReachableService, resources::SERVICES);

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReachableSpec {
    pub(crate) r#type: String,
    #[serde(rename = "clusterIP")]
    cluster_ip: String,
    #[serde(rename = "clusterIPs", deserialize_with = "or_default")]
    cluster_ips: Vec<String>,
    #[serde(rename = "externalIPs", deserialize_with = "or_default")]
    external_ips: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) ip_families: Vec<String>,
    pub(crate) load_balancer_class: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) ports: Vec<Frontend>,
}

/// One port at all of its addresses.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Frontend {
    pub(crate) port: i64,
    pub(crate) protocol: String,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ReachableStatus {
    pub(crate) load_balancer: LoadBalancer,
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(crate) struct LoadBalancer {
    #[serde(deserialize_with = "or_default")]
    pub(crate) ingress: Vec<Ingress>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Ingress {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) ip: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) hostname: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ip_mode: Option<String>,
}

impl ReachableService {
    /// Is it reached there, and nobody else? Without a class a balancer's addresses are those of the nodes themselves.
    pub(crate) fn has(&self, host: &Host) -> bool {
        let of_cluster =
            [&self.spec.cluster_ip].into_iter().chain(&self.spec.cluster_ips).chain(&self.spec.external_ips);
        let is_others = self.spec.load_balancer_class.is_some();
        let ingress = self.status.load_balancer.ingress.iter().filter(|_| is_others);
        let of_balancer = ingress.flat_map(|it| [&it.ip, &it.hostname]);
        of_cluster.chain(of_balancer).filter(|it| !it.is_empty()).any(|it| Host::parse(it) == *host)
    }
}
