//! What a pod asks of its node: resources, by name, and ports.
//!
//! As upstream: init containers run one after another, so only the largest counts; a sidecar stays, and counts beside
//! all that come after it.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::{
    apimachinery::pkg::api::resource::Quantity as ApiQuantity,
    core::v1::{Container, Pod},
};
use corten_meta::Quantity;

use crate::{
    downward::quantity,
    pod::{all_containers, is_sidecar, spec_of},
};

type Quantities = Option<BTreeMap<String, ApiQuantity>>;

/// Of everything the pod asks for: how much. CPU in thousandths, all else in units.
pub(crate) fn requests(pod: &Pod) -> BTreeMap<String, i64> {
    let spec = spec_of(pod);
    let of_containers = all_containers(pod).filter_map(|it| it.resources.as_ref());
    let lists = of_containers.chain(&spec.resources).flat_map(|it| [&it.requests, &it.limits]).chain([&spec.overhead]);
    let names: BTreeSet<&String> = lists.flatten().flat_map(BTreeMap::keys).collect();
    names.into_iter().map(|name| (name.clone(), request(pod, name))).collect()
}

fn request(pod: &Pod, name: &str) -> i64 {
    let spec = spec_of(pod);
    let of = |it: &Container| quantity(it, false, name).map_or(0, |it| amount(name, it));
    let mut sum = spec.containers.iter().map(of).fold(0_i64, i64::saturating_add);
    let (mut sidecars, mut init_most) = (0_i64, 0_i64);
    for container in spec.init_containers.iter().flatten() {
        let own = of(container);
        init_most = init_most.max(sidecars.saturating_add(own));
        if is_sidecar(container) {
            sum = sum.saturating_add(own);
            sidecars = sidecars.saturating_add(own);
        }
    }
    let of_pod = spec.resources.as_ref().and_then(|it| listed(&it.requests, name));
    of_pod.unwrap_or(sum.max(init_most)).saturating_add(listed(&spec.overhead, name).unwrap_or(0))
}

fn listed(quantities: &Quantities, name: &str) -> Option<i64> {
    let quantity: Quantity = quantities.as_ref()?.get(name)?.0.parse().ok()?;
    Some(amount(name, quantity))
}

pub(crate) fn amount(name: &str, quantity: Quantity) -> i64 {
    if name == "cpu" { quantity.milli_value() } else { quantity.value() }
}

/// One port of the node that a pod asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostPort<'a> {
    port: i32,
    protocol: &'a str,
    ip: &'a str,
}

const ANY: &str = "0.0.0.0";

/// As upstream, sidecars count and other init containers do not.
pub(crate) fn host_ports(pod: &Pod) -> impl Iterator<Item = HostPort<'_>> {
    let spec = spec_of(pod);
    let in_host_network = spec.host_network == Some(true);
    let sidecars = spec.init_containers.iter().flatten().filter(|it| is_sidecar(it));
    let ports = sidecars.chain(&spec.containers).flat_map(|it| it.ports.iter().flatten());
    ports.filter_map(move |it| {
        let named = it.host_port.filter(|it| *it > 0);
        let port = named.or(in_host_network.then_some(it.container_port))?;
        let protocol = it.protocol.as_deref().filter(|it| !it.is_empty()).unwrap_or("TCP");
        let ip = it.host_ip.as_deref().filter(|it| !it.is_empty()).unwrap_or(ANY);
        Some(HostPort { port, protocol, ip })
    })
}

impl HostPort<'_> {
    /// Two pods cannot have the same number and protocol on an address they have in common.
    pub(crate) fn collides(self, other: HostPort<'_>) -> bool {
        let shares_ip = self.ip == other.ip || self.ip == ANY || other.ip == ANY;
        self.port == other.port && self.protocol == other.protocol && shares_ip
    }
}
