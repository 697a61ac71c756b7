//! A zone as it is kept for a start while nobody tells of the cluster: the objects that it was made of, as far as names go, one a line.

use corten_meta::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::{
    Change, EndpointSlice, Keeper, Name, Namespace, Service, Zone,
    projections::{Endpoint, SERVICE_OF_SLICE, ServicePort, ServiceSpec, SlicePort},
    zone::{Kind, Port, Slice},
};

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Line {
    Namespace(Namespace),
    Service(Service),
    EndpointSlice(EndpointSlice),
}

impl Keeper {
    /// What [`Zone::of_kept`] reads again.
    pub fn kept(&self) -> String {
        let namespaces = self.namespaces().map(|it| Line::Namespace(Namespace { metadata: named("", it) }));
        let services = self
            .services()
            .map(|(key, kind)| Line::Service(Service { metadata: named(&key.namespace, &key.name), spec: spec(kind) }));
        let slices = self.slices().map(|(service, slice)| {
            let mut metadata = named(&service.namespace, slice.name());
            metadata.labels.insert(SERVICE_OF_SLICE.to_owned(), service.name.clone());
            Line::EndpointSlice(kept_slice(metadata, slice))
        });
        let mut text = String::new();
        for line in namespaces.chain(services).chain(slices) {
            text += &serde_json::to_string(&line).expect("texts and numbers");
            text.push('\n');
        }
        text
    }
}

impl Zone {
    /// The whole zone as it was kept; nothing where this is no such text.
    pub fn of_kept(domain: Name, text: &str) -> Option<Self> {
        let mut keeper = Keeper::new(domain);
        for line in text.lines() {
            keeper.apply(match serde_json::from_str(line).ok()? {
                Line::Namespace(it) => Change::Namespace(it.metadata.name),
                Line::Service(it) => Change::Service(it),
                Line::EndpointSlice(it) => Change::Slice(it),
            });
        }
        // A cluster without a single namespace is none.
        keeper.namespaces().next()?;
        keeper.apply(Change::Complete);
        Some(keeper.zone())
    }
}

fn named(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta { namespace: namespace.to_owned(), name: name.to_owned(), ..ObjectMeta::default() }
}

fn spec(kind: &Kind) -> ServiceSpec {
    match kind {
        Kind::Nothing => ServiceSpec::default(),
        Kind::Address { addresses, ports } => ServiceSpec {
            cluster_ips: addresses.iter().map(ToString::to_string).collect(),
            ports: ports.iter().map(service_port).collect(),
            ..ServiceSpec::default()
        },
        Kind::Headless { .. } => ServiceSpec { cluster_ip: "None".to_owned(), ..ServiceSpec::default() },
        Kind::Alias(name) => {
            ServiceSpec { kind: "ExternalName".to_owned(), external_name: name.to_string(), ..ServiceSpec::default() }
        }
    }
}

fn service_port(port: &Port) -> ServicePort {
    ServicePort { name: port.name.to_string(), protocol: port.protocol.to_ascii_uppercase(), port: port.number }
}

fn kept_slice(metadata: ObjectMeta, slice: &Slice) -> EndpointSlice {
    let endpoint = |(address, hostname): &(std::net::IpAddr, Option<Box<str>>)| Endpoint {
        addresses: vec![address.to_string()],
        hostname: hostname.as_deref().map(str::to_owned),
        ..Endpoint::default()
    };
    let port = |it: &Port| SlicePort {
        name: Some(it.name.to_string()),
        protocol: Some(it.protocol.to_ascii_uppercase()),
        port: Some(it.number),
    };
    EndpointSlice {
        metadata,
        address_type: String::new(),
        endpoints: Some(slice.endpoints().iter().map(endpoint).collect()),
        ports: Some(slice.ports().iter().map(port).collect()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keeper() -> Keeper {
        let service = |name: &str, spec: serde_json::Value| {
            let object = json!({ "metadata": { "name": name, "namespace": "shop" }, "spec": spec });
            Change::Service(serde_json::from_value(object).expect("a Service"))
        };
        let slice = json!({
            "metadata": { "name": "db-1", "namespace": "shop", "labels": { "kubernetes.io/service-name": "db", "a": "b" } },
            "addressType": "IPv4",
            "endpoints": [
                { "addresses": ["10.244.0.9"], "hostname": "db-0" },
                { "addresses": ["10.244.1.9"] },
                { "addresses": ["10.244.1.10"], "conditions": { "ready": false } },
            ],
            "ports": [{ "name": "sql", "protocol": "TCP", "port": 5432 }],
        });
        let mut keeper = Keeper::new(Name::parse("cluster.local").expect("a name"));
        let ports = json!([{ "name": "http", "protocol": "TCP", "port": 80 }, { "name": "dns", "protocol": "UDP", "port": 53 }]);
        for change in [
            Change::Namespace("shop".into()),
            Change::Namespace("empty".into()),
            service("web", json!({ "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7", "fd00::7"], "ports": ports })),
            service("db", json!({ "clusterIP": "None" })),
            service("away", json!({ "type": "ExternalName", "externalName": "db.example" })),
            service("nothing", json!({ "type": "ExternalName", "externalName": "192.0.2.1" })),
            Change::Slice(serde_json::from_value(slice).expect("a slice")),
        ] {
            keeper.apply(change);
        }
        keeper
    }

    #[test]
    fn what_is_kept_is_the_same_zone() {
        let (keeper, domain) = (keeper(), Name::parse("cluster.local").expect("a name"));
        let kept = keeper.kept();
        let zone = Zone::of_kept(domain, &kept).expect("a zone");
        assert!(zone.is_complete() && zone.is_same(&keeper.zone()), "{kept}");
        assert_eq!(kept.lines().count(), 7);
        assert!(kept.contains("db-0") && !kept.contains("10.244.1.10"), "{kept}");
    }

    #[test]
    fn half_a_text_is_no_zone() {
        let (kept, domain) = (keeper().kept(), Name::parse("cluster.local").expect("a name"));
        for text in ["", "\n", "{}", &kept[..kept.len() - 9]] {
            assert!(Zone::of_kept(domain, text).is_none(), "{text}");
        }
    }
}
