//! What a pod asks of its node: resources, by name, and ports.

use std::collections::{BTreeMap, BTreeSet};

use corten_api::{
    apimachinery::pkg::api::resource::Quantity as ApiQuantity,
    core::v1::{Container, Pod},
    host_ports::{ContainerPort, HostPort},
    scheduling::aggregate,
};
use corten_meta::Quantity;

use crate::spec::{
    downward::quantity,
    pod::{is_sidecar, spec_of},
};

type Quantities = Option<BTreeMap<String, ApiQuantity>>;

/// What the pod asks for of each resource: CPU in thousandths, all else in units. What it asks for as a whole goes before the
/// sum of its containers; its overhead is added.
pub(crate) fn requests(pod: &Pod) -> BTreeMap<String, i64> {
    let spec = spec_of(pod);
    let init = spec.init_containers.iter().flatten().map(|it| (asked_for(it), is_sidecar(it)));
    let mut sums = aggregate(spec.containers.iter().map(asked_for), init);
    let lists = spec.resources.iter().flat_map(|it| [&it.requests, &it.limits]).chain([&spec.overhead]);
    for name in lists.flatten().flat_map(BTreeMap::keys) {
        sums.entry(name.clone()).or_default();
    }
    for (name, sum) in &mut sums {
        let of_pod = spec.resources.as_ref().and_then(|it| listed(&it.requests, name));
        *sum = of_pod.unwrap_or(*sum).saturating_add(listed(&spec.overhead, name).unwrap_or(0));
    }
    sums
}

fn asked_for(container: &Container) -> BTreeMap<String, i64> {
    let lists = container.resources.iter().flat_map(|it| [&it.requests, &it.limits]);
    let names: BTreeSet<&String> = lists.flatten().flat_map(BTreeMap::keys).collect();
    let asked = |name: &String| quantity(container, false, name).map_or(0, |it| amount(name, it));
    names.into_iter().map(|name| (name.clone(), asked(name))).collect()
}

fn listed(quantities: &Quantities, name: &str) -> Option<i64> {
    let quantity: Quantity = quantities.as_ref()?.get(name)?.0.parse().ok()?;
    Some(amount(name, quantity))
}

pub(crate) fn amount(name: &str, quantity: Quantity) -> i64 {
    if name == "cpu" { quantity.milli_value() } else { quantity.value() }
}

/// Sidecars count and other init containers do not (`GetHostPorts`).
pub(crate) fn host_ports(pod: &Pod) -> impl Iterator<Item = HostPort<'_>> {
    let spec = spec_of(pod);
    let in_host_network = spec.host_network == Some(true);
    let sidecars = spec.init_containers.iter().flatten().filter(|it| is_sidecar(it));
    let ports = sidecars.chain(&spec.containers).flat_map(|it| it.ports.iter().flatten());
    ports.filter_map(move |it| {
        let port = ContainerPort {
            host_port: it.host_port.unwrap_or_default(),
            container_port: it.container_port,
            protocol: it.protocol.as_deref().unwrap_or_default(),
            host_ip: it.host_ip.as_deref().unwrap_or_default(),
        };
        HostPort::of(port, in_host_network)
    })
}

/// The ports of a node that pods have been given.
pub(crate) struct UsedHostPorts<'a> {
    ports: BTreeSet<HostPort<'a>>,
    on_any_address: BTreeSet<(i32, &'a str)>,
}

impl<'a> UsedHostPorts<'a> {
    pub(crate) fn of(ports: impl Iterator<Item = HostPort<'a>>) -> Self {
        let ports: BTreeSet<HostPort<'a>> = ports.collect();
        let on_any_address = ports.iter().map(|it| (it.port, it.protocol)).collect();
        Self { ports, on_any_address }
    }

    /// Two pods cannot have the same number and protocol on an address they have in common.
    pub(crate) fn collides(&self, wanted: HostPort<'_>) -> bool {
        if wanted.is_on_any_ip() {
            return self.on_any_address.contains(&(wanted.port, wanted.protocol));
        }
        self.ports.contains(&wanted) || self.ports.contains(&wanted.on_any_ip())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(spec: Value) -> Pod {
        serde_json::from_value(json!({ "spec": spec })).expect("a pod")
    }

    /// So many that whoever looks at all of them for each of them does not come to an end.
    #[test]
    fn a_pod_may_ask_for_much() {
        let many = 30_000;
        let sidecar = |it: usize| json!({ "name": "c", "restartPolicy": "Always", "resources": { "requests": { format!("r{it}"): "1" } } });
        let of_many = pod(json!({ "containers": [], "initContainers": (0..many).map(sidecar).collect::<Vec<_>>() }));
        assert_eq!(requests(&of_many).len(), many);
        let port = |it: usize| json!({ "containerPort": 1, "hostPort": 80, "hostIP": format!("10.0.{}.{}", it / 256, it % 256) });
        let with_ports = |range: std::ops::Range<usize>| {
            pod(json!({ "containers": [{ "name": "c", "ports": range.map(port).collect::<Vec<_>>() }] }))
        };
        let (one, other) = (with_ports(0..many), with_ports(many..2 * many));
        let given = UsedHostPorts::of(host_ports(&one));
        assert!(!host_ports(&other).any(|it| given.collides(it)));
        assert!(host_ports(&one).all(|it| given.collides(it)));
        let any = pod(json!({ "containers": [{ "name": "c", "ports": [{ "containerPort": 1, "hostPort": 80 }] }] }));
        assert!(host_ports(&any).all(|it| given.collides(it)));
        assert!(host_ports(&one).all(|it| UsedHostPorts::of(host_ports(&any)).collides(it)));
    }
}
