//! Services, as far as they go by where they are reached: one projection for all that ask.

use corten_api::{load_balancer::POOL_ADDRESSES, resources};
use corten_meta::ObjectMeta;
use corten_meta::reserved::Host;
use serde::{Deserialize, Serialize};

use super::{Condition, or_default, projection};

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
    pub(crate) external_ips: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub(crate) ip_families: Vec<String>,
    pub(crate) load_balancer_class: Option<String>,
    #[serde(rename = "loadBalancerIP", deserialize_with = "or_default")]
    pub(crate) load_balancer_ip: String,
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
    #[serde(deserialize_with = "or_default")]
    pub(crate) conditions: Vec<Condition>,
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
    /// What is said of its addresses from the pool, where there is one.
    pub(crate) fn pool_addresses(&self) -> Option<&Condition> {
        self.status.conditions.iter().find(|it| it.r#type == POOL_ADDRESSES)
    }

    /// Is it reached there, and nobody else? Without a class and a pool a balancer's addresses are those of the nodes themselves.
    pub(crate) fn has(&self, host: &Host) -> bool {
        let of_cluster =
            [&self.spec.cluster_ip].into_iter().chain(&self.spec.cluster_ips).chain(&self.spec.external_ips);
        let is_own = self.spec.load_balancer_class.is_some() || self.pool_addresses().is_some();
        let ingress = self.status.load_balancer.ingress.iter().filter(|_| is_own);
        let of_balancer = ingress.flat_map(|it| [&it.ip, &it.hostname]);
        of_cluster.chain(of_balancer).filter(|it| !it.is_empty()).any(|it| Host::parse(it) == *host)
    }
}
