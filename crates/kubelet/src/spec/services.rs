//! What containers are told of Services by variables of their environment, with upstream's names and order.
//!
//! A Service without an address of its own is told of to nobody; `default/kubernetes` is told of to everyone.

use std::collections::BTreeMap;

use corten_meta::Key;

use crate::{ServiceLink, ServicePort};

/// Every Service of the cluster.
#[derive(Debug, Default)]
pub(crate) struct Services {
    /// Every Service has been told once.
    pub(crate) are_known: bool,
    all: BTreeMap<Key, ServiceLink>,
}

const API: (&str, &str) = ("default", "kubernetes");

impl Services {
    pub(crate) fn update(&mut self, key: Key, service: Option<ServiceLink>) {
        match service {
            Some(service) if has_ip(&service) && !service.ports.is_empty() => {
                self.all.insert(key, service);
            }
            _ => {
                self.all.remove(&key);
            }
        }
    }

    /// The variables for containers of a namespace; `links`: of its Services too.
    pub(crate) fn variables(&self, namespace: &str, links: bool) -> BTreeMap<String, String> {
        let mut variables = BTreeMap::new();
        let api = Key::new(API.0, API.1);
        let own = |key: &Key| links && key.namespace == namespace;
        // A Service of the namespace's own that is named as the API's stands in for it.
        let hides_api = self.all.keys().any(|it| own(it) && it.name == api.name);
        let chosen = self.all.iter().filter(|(key, _)| own(key) || (**key == api && !hides_api));
        for (key, service) in chosen {
            variables.extend(of_service(&variable(&key.name), service));
        }
        variables
    }
}

fn has_ip(service: &ServiceLink) -> bool {
    !service.ip.is_empty() && service.ip != "None"
}

/// `my-db` becomes `MY_DB`.
fn variable(name: &str) -> String {
    name.to_uppercase().replace('-', "_")
}

fn of_service(prefix: &str, service: &ServiceLink) -> Vec<(String, String)> {
    let ServiceLink { ip, ports } = service;
    let host = if ip.contains(':') { format!("[{ip}]") } else { ip.clone() };
    let url = |it: &ServicePort| format!("{}://{host}:{}", it.protocol.to_lowercase(), it.port);
    let mut variables = vec![(format!("{prefix}_SERVICE_HOST"), ip.clone())];
    if let Some(first) = ports.first() {
        variables.push((format!("{prefix}_SERVICE_PORT"), first.port.to_string()));
        variables.push((format!("{prefix}_PORT"), url(first)));
    }
    for port in ports {
        if !port.name.is_empty() {
            variables.push((format!("{prefix}_SERVICE_PORT_{}", variable(&port.name)), port.port.to_string()));
        }
        let link = format!("{prefix}_PORT_{}_{}", port.port, port.protocol.to_uppercase());
        variables.push((format!("{link}_PROTO"), port.protocol.to_lowercase()));
        variables.push((format!("{link}_PORT"), port.port.to_string()));
        variables.push((format!("{link}_ADDR"), ip.clone()));
        variables.push((link, url(port)));
    }
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    fn services() -> Services {
        let port =
            |name: &str, protocol: &str, port| ServicePort { name: name.into(), protocol: protocol.into(), port };
        let mut services = Services::default();
        for (namespace, name, ip, ports) in [
            ("default", "kubernetes", "10.96.0.1", vec![port("https", "TCP", 443)]),
            ("shop", "my-db", "10.96.0.9", vec![port("sql", "TCP", 5432), port("stats-udp", "UDP", 53)]),
            ("shop", "v6", "fd00::9", vec![port("", "TCP", 80)]),
            ("shop", "headless", "None", vec![port("", "TCP", 80)]),
            ("other", "web", "10.96.0.7", vec![port("", "TCP", 80)]),
        ] {
            services.update(Key::new(namespace, name), Some(ServiceLink { ip: ip.into(), ports }));
        }
        services
    }

    #[test]
    fn variables_as_upstream() {
        let services = services();
        let names = |namespace, links| services.variables(namespace, links).into_keys().collect::<Vec<_>>();
        let api = [
            "KUBERNETES_PORT",
            "KUBERNETES_PORT_443_TCP",
            "KUBERNETES_PORT_443_TCP_ADDR",
            "KUBERNETES_PORT_443_TCP_PORT",
            "KUBERNETES_PORT_443_TCP_PROTO",
            "KUBERNETES_SERVICE_HOST",
            "KUBERNETES_SERVICE_PORT",
            "KUBERNETES_SERVICE_PORT_HTTPS",
        ];
        assert_eq!(names("shop", false), api);
        assert_eq!(names("empty", true), api);
        let variables = services.variables("shop", true);
        for (name, value) in [
            ("KUBERNETES_SERVICE_HOST", Some("10.96.0.1")),
            ("MY_DB_SERVICE_HOST", Some("10.96.0.9")),
            ("MY_DB_SERVICE_PORT", Some("5432")),
            ("MY_DB_SERVICE_PORT_SQL", Some("5432")),
            ("MY_DB_SERVICE_PORT_STATS_UDP", Some("53")),
            ("MY_DB_PORT", Some("tcp://10.96.0.9:5432")),
            ("MY_DB_PORT_53_UDP", Some("udp://10.96.0.9:53")),
            ("MY_DB_PORT_53_UDP_PROTO", Some("udp")),
            ("V6_PORT", Some("tcp://[fd00::9]:80")),
            ("V6_SERVICE_HOST", Some("fd00::9")),
            ("V6_SERVICE_PORT_", None),
            ("HEADLESS_SERVICE_HOST", None),
            ("WEB_SERVICE_HOST", None),
        ] {
            assert_eq!(variables.get(name).map(String::as_str), value, "{name}");
        }
    }

    #[test]
    fn what_goes_is_told_of_no_more_and_a_namesake_hides_the_api() {
        let mut services = services();
        services.update(Key::new("shop", "my-db"), None);
        assert!(!services.variables("shop", true).contains_key("MY_DB_SERVICE_HOST"));
        let link =
            ServiceLink { ip: "10.96.0.77".into(), ports: vec![ServicePort { port: 1, ..ServicePort::default() }] };
        services.update(Key::new("shop", "kubernetes"), Some(link));
        assert_eq!(services.variables("shop", true)["KUBERNETES_SERVICE_HOST"], "10.96.0.77");
        assert_eq!(services.variables("shop", false)["KUBERNETES_SERVICE_HOST"], "10.96.0.1");
    }
}
