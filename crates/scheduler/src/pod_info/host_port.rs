//! A port of the node that a pod asks for.

use std::collections::BTreeMap;

use crate::projections::PodSpec;

const ANY: &str = "0.0.0.0";

/// Sorts by number and protocol first, so that the ports that may collide stand together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostPort {
    pub(crate) port: i32,
    pub(crate) protocol: String,
    ip: String,
}

impl HostPort {
    /// The ports a pod asks its node for. Sidecars count and other init containers do not (`GetHostPorts`).
    pub(crate) fn of(spec: &PodSpec) -> Vec<Self> {
        let sidecars = spec.init_containers.iter().filter(|it| it.restart_policy == "Always");
        let ports = spec.containers.iter().chain(sidecars).flat_map(|it| &it.ports);
        let mut ports: Vec<Self> = ports
            .filter_map(|it| {
                let port = if spec.host_network && it.host_port == 0 { it.container_port } else { it.host_port };
                let or = |text: &str, default: &str| if text.is_empty() { default.into() } else { text.to_owned() };
                (port > 0).then(|| Self { port, protocol: or(&it.protocol, "TCP"), ip: or(&it.host_ip, ANY) })
            })
            .collect();
        ports.sort();
        ports.dedup();
        ports
    }

    /// Is it among those that are given away, or one that has an address in common with it? Looked up: a pod may ask for
    /// thousands of ports, and so may those before it.
    pub(crate) fn collides_with_any(&self, given: &BTreeMap<Self, usize>) -> bool {
        let at = |ip: &str| Self { port: self.port, protocol: self.protocol.clone(), ip: ip.to_owned() };
        if self.ip == ANY {
            let next = given.range(at("")..).next();
            return next.is_some_and(|(it, _)| it.port == self.port && it.protocol == self.protocol);
        }
        given.contains_key(self) || given.contains_key(&at(ANY))
    }
}
