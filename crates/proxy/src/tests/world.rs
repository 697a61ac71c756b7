//! Lines of text as Services and slices.

use std::collections::BTreeSet;

use corten_meta::{Key, address::Cidr};
use serde_json::{Value, json};

use crate::{
    Config, Event,
    rules::{Backend, Protocol},
};

pub(super) fn config() -> Config {
    Config {
        node_name: "n1".into(),
        addresses: ["172.30.0.2", "fd30::2"].iter().filter_map(|it| it.parse().ok()).collect(),
        own_ports: [(Protocol::Tcp, 6443), (Protocol::Udp, 10053)].into(),
        listening: BTreeSet::new(),
        pod_cidrs: ["10.244.0.0/24", "fd00:10:244::/64"].iter().filter_map(|it| Cidr::parse(it)).collect(),
        ..Config::default()
    }
}

/// Nothing for a line that only says what comes.
pub(super) fn event(line: &str) -> Option<Event> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        ["service", name, ref rest @ ..] => Some(Event::Service(Box::new(parsed(service(name, rest))))),
        ["slice", name, ref rest @ ..] => Some(Event::Slice(Box::new(parsed(slice(name, rest))))),
        ["gone", "service", name] => Some(Event::ServiceGone(Key::new("default", name))),
        ["gone", "slice", name] => Some(Event::SliceGone(Key::new("default", name))),
        ["listening", ports] => Some(Event::Listening(ports.split(',').filter_map(listening).collect())),
        ["range", name, cidrs] => {
            let cidrs: Vec<&str> = cidrs.split(',').collect();
            let range = json!({"metadata": {"name": name}, "spec": {"cidrs": cidrs}});
            Some(Event::Range(Box::new(parsed(range))))
        }
        ["gone", "range", name] => Some(Event::RangeGone(name.to_owned())),
        ["name-server", place] => {
            let (address, port) = place.rsplit_once(':').expect("an address and a port");
            let (address, port) = (address.parse().expect("an address"), port.parse().expect("a port"));
            Some(Event::NameServer(Some(Backend { address, port })))
        }
        ["no", "name-server"] => Some(Event::NameServer(None)),
        ["zone"] => Some(Event::Zone(String::new())),
        ["zone", name] => Some(Event::Zone(name.to_owned())),
        _ => None,
    }
}

/// `22/TCP`
fn listening(text: &str) -> Option<(Protocol, u16)> {
    let (port, protocol) = text.split_once('/')?;
    Some((Protocol::parse(protocol)?, port.parse().ok()?))
}

fn parsed<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("an object")
}

fn service(name: &str, words: &[&str]) -> Value {
    let mut spec = json!({"type": "ClusterIP", "sessionAffinity": "None"});
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    let mut object = json!({"metadata": {"name": name, "namespace": namespace}});
    for (name, value) in words.iter().filter_map(|it| it.split_once('=')) {
        let all = || value.split(',').map(|it| json!(it)).collect::<Vec<Value>>();
        match name {
            "ip" => {
                spec["clusterIP"] = all()[0].clone();
                spec["clusterIPs"] = json!(all());
            }
            "type" => spec["type"] = json!(value),
            "ext" => spec["externalTrafficPolicy"] = json!(value),
            "int" => spec["internalTrafficPolicy"] = json!(value),
            "external" => spec["externalIPs"] = json!(all()),
            "ranges" => spec["loadBalancerSourceRanges"] = json!(all()),
            "health" => spec["healthCheckNodePort"] = json!(value.parse::<u16>().expect("a port")),
            "affinity" => {
                spec["sessionAffinity"] = json!("ClientIP");
                spec["sessionAffinityConfig"] =
                    json!({"clientIP": {"timeoutSeconds": value.parse::<u32>().expect("seconds")}});
            }
            "ingress" => {
                let ingress = value.split(',').map(|it| match it.split_once('!') {
                    Some((ip, mode)) => json!({"ip": ip, "ipMode": mode}),
                    None => json!({"ip": it}),
                });
                object["status"]["loadBalancer"]["ingress"] = ingress.collect();
            }
            "pool" => object["status"]["conditions"] = json!([{"type": "corten.dev/PoolAddresses", "status": value}]),
            "ports" => spec["ports"] = value.split(',').map(|it| port(it, "port")).collect(),
            "age" => {
                object["metadata"]["creationTimestamp"] =
                    json!(format!("2026-01-0{}T00:00:00Z", 9 - value.parse::<u8>().expect("days")));
            }
            other => panic!("{other}?"),
        }
    }
    object["spec"] = spec;
    object
}

/// `http:80/TCP:30080`
fn port(text: &str, number: &str) -> Value {
    let mut parts = text.split([':', '/']);
    let mut next = || parts.next().unwrap_or_default().to_owned();
    let mut port = json!({"name": next()});
    port[number] = json!(next().parse::<u16>().expect("a port"));
    port["protocol"] = json!(next());
    port["nodePort"] = json!(next().parse::<u16>().unwrap_or_default());
    port
}

fn slice(name: &str, words: &[&str]) -> Value {
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    let mut object = json!({"metadata": {"name": name, "namespace": namespace}, "addressType": "IPv4"});
    for (name, value) in words.iter().filter_map(|it| it.split_once('=')) {
        match name {
            "of" => object["metadata"]["labels"]["kubernetes.io/service-name"] = json!(value),
            "by" => object["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] = json!(value),
            "ports" => object["ports"] = value.split(',').map(|it| port(it, "port")).collect(),
            "to" => object["endpoints"] = value.split(',').filter(|it| !it.is_empty()).map(endpoint).collect(),
            other => panic!("{other}?"),
        }
    }
    if object["endpoints"][0]["addresses"][0].as_str().is_some_and(|it| it.contains(':')) {
        object["addressType"] = json!("IPv6");
    }
    object
}

/// `10.244.0.3@n2`, `10.244.0.4!ending`, `10.244.0.5!unready`, `10.244.0.6~zone`, `10.244.0.7^node`, and more of these together
fn endpoint(text: &str) -> Value {
    const MARKS: [char; 4] = ['@', '!', '~', '^'];
    let (address, mut rest) = text.split_at(text.find(MARKS).unwrap_or(text.len()));
    let mut endpoint = json!({"addresses": [address], "nodeName": "n1"});
    while let Some((mark, after)) = rest.split_at_checked(1) {
        let (word, others) = after.split_at(after.find(MARKS).unwrap_or(after.len()));
        match (mark, word) {
            ("@", node) => endpoint["nodeName"] = json!(node),
            ("~", zone) => endpoint["hints"]["forZones"] = json!([{"name": zone}]),
            ("^", node) => endpoint["hints"]["forNodes"] = json!([{"name": node}]),
            ("!", "ending") => endpoint["conditions"] = json!({"ready": false, "serving": true, "terminating": true}),
            ("!", "unready") => endpoint["conditions"] = json!({"ready": false, "serving": false}),
            other => panic!("{other:?}?"),
        }
        rest = others;
    }
    endpoint
}
