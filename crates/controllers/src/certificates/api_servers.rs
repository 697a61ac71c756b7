//! Where API servers are, as NodeRestriction knows it: no node serves there.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::{
    api_servers::{LEASE_NAMESPACE, NODE, hosts_of_kubeconfig, hosts_of_lease},
    resources,
};
use corten_meta::{Key, ObjectMeta, reserved::Host};
use corten_reconcile::{View, Wake, Watch};
use serde::Deserialize;

use crate::projections::{EndpointSubset, or_default, projection};

/// Only those of API servers' namespace are ever seen.
#[derive(Deserialize)]
struct ServerLease {
    metadata: ObjectMeta,
}
projection!(ServerLease, resources::LEASES);

/// Of the Service `kubernetes` alone.
#[derive(Deserialize)]
struct ServerEndpoints {
    metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    subsets: Vec<EndpointSubset>,
}
projection!(ServerEndpoints, resources::ENDPOINTS);

/// What machines are told that join.
#[derive(Deserialize)]
struct ClusterInfo {
    metadata: ObjectMeta,
    #[serde(default, deserialize_with = "or_default")]
    data: BTreeMap<String, String>,
}
projection!(ClusterInfo, resources::CONFIG_MAPS);

pub(super) fn watches() -> [Watch; 3] {
    let limited = |mut watch: Watch, selector: String| {
        watch.field_selector = selector;
        watch
    };
    [
        limited(Watch::new::<ServerLease>(Wake::Nobody), format!("metadata.namespace={LEASE_NAMESPACE}")),
        limited(Watch::new::<ServerEndpoints>(Wake::Nobody), "metadata.name=kubernetes".into()),
        limited(Watch::new::<ClusterInfo>(Wake::Nobody), "metadata.name=cluster-info".into()),
    ]
}

/// The names and addresses of API servers, but for those of the one in whose process the node runs.
pub(super) fn hosts(view: &View, node: &str) -> BTreeSet<Host> {
    let (mut hosts, mut own) = (BTreeSet::new(), BTreeSet::new());
    for ServerLease { metadata } in view.list::<ServerLease>() {
        let is_own = metadata.annotations.get(NODE).is_some_and(|it| it == node);
        let of = if is_own { &mut own } else { &mut hosts };
        of.extend(hosts_of_lease(metadata));
    }
    if let Some(endpoints) = view.get::<ServerEndpoints>(&Key::new("default", "kubernetes")) {
        hosts.extend(endpoints.subsets.iter().flat_map(|it| &it.addresses).map(|it| Host::parse(&it.ip)));
    }
    if let Some(info) = view.get::<ClusterInfo>(&Key::new("kube-public", "cluster-info")) {
        hosts.extend(info.data.get("kubeconfig").into_iter().flat_map(|it| hosts_of_kubeconfig(it)));
    }
    hosts.retain(|it| !own.contains(it));
    hosts
}
