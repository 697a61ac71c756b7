//! A port of the node that a pod asks for.

use std::collections::BTreeMap;

use corten_api::host_ports::{self, ContainerPort, HOST_PORTS, Noted};

use crate::projections::Pod;

/// Sorts by number and protocol first, so that the ports that may collide stand together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostPort {
    pub(crate) port: i32,
    pub(crate) protocol: String,
    ip: String,
}

impl HostPort {
    /// The ports a pod asks its node for. Sidecars count and other init containers do not (`GetHostPorts`), nor does a port whose
    /// number the API server chooses when the pod is bound: any node has one that is free.
    pub(crate) fn of(pod: &Pod) -> Vec<Self> {
        let spec = &pod.spec;
        let note = pod.metadata.annotations.get(HOST_PORTS);
        let noted: Noted = note.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
        let sidecars = spec.init_containers.iter().filter(|it| it.restart_policy == "Always");
        let ports = spec.containers.iter().chain(sidecars).flat_map(|it| &it.ports);
        let mut ports: Vec<Self> = ports
            .filter(|it| noted.get(&it.name) != Some(&0))
            .filter_map(|it| {
                let (host_port, container_port) = (it.host_port, it.container_port);
                let port = ContainerPort { host_port, container_port, protocol: &it.protocol, host_ip: &it.host_ip };
                host_ports::HostPort::of(port, spec.host_network)
            })
            .map(|it| Self { port: it.port, protocol: it.protocol.to_owned(), ip: it.ip.to_owned() })
            .collect();
        ports.sort();
        ports.dedup();
        ports
    }

    fn rule(&self) -> host_ports::HostPort<'_> {
        host_ports::HostPort { port: self.port, protocol: &self.protocol, ip: &self.ip }
    }

    /// Is it among those that are given away, or one that has an address in common with it? Looked up: a pod may ask for
    /// thousands of ports, and so may those before it.
    pub(crate) fn collides_with_any(&self, given: &BTreeMap<Self, usize>) -> bool {
        let at = |ip: &str| Self { port: self.port, protocol: self.protocol.clone(), ip: ip.to_owned() };
        if self.rule().is_on_any_ip() {
            let next = given.range(at("")..).next();
            return next.is_some_and(|(it, _)| self.rule().collides(it.rule()));
        }
        given.contains_key(self) || given.contains_key(&at(self.rule().on_any_ip().ip))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_port_that_is_still_to_be_chosen_is_none() {
        let ports = |note: &str| {
            let pod = json!({
                "metadata": { "name": "p", "annotations": { HOST_PORTS: note } },
                "spec": { "hostNetwork": true, "containers": [{ "name": "c", "ports": [
                    { "name": "http", "containerPort": 8080 },
                    { "name": "fixed", "containerPort": 81, "hostPort": 81 },
                    { "containerPort": 82 },
                ] }] },
            });
            let pod: Pod = serde_json::from_value(pod).expect("a pod");
            HostPort::of(&pod).into_iter().map(|it| it.port).collect::<Vec<_>>()
        };
        assert_eq!(ports(r#"{"http":0}"#), [81, 82]);
        assert_eq!(ports(r#"{"http":8080}"#), [81, 82, 8080], "it is chosen");
        assert_eq!(ports("no JSON"), [81, 82, 8080]);
    }
}
