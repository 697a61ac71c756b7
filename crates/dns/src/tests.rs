//! What tests of all files share: messages as text, and queries.

mod shown;
mod texts;

pub(crate) use shown::{number_of, shown};

use crate::Name;

/// A query as a client sends it.
pub(crate) fn query(id: u16, name: &str, qtype: u16) -> Vec<u8> {
    let mut packet = id.to_be_bytes().to_vec();
    packet.extend_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.').filter(|it| !it.is_empty()) {
        packet.push(u8::try_from(label.len()).expect("a short label"));
        packet.extend_from_slice(label.as_bytes());
    }
    packet.push(0);
    packet.extend_from_slice(&qtype.to_be_bytes());
    packet.extend_from_slice(&[0, 1]);
    packet
}

/// The same with EDNS.
pub(crate) fn with_edns(mut packet: Vec<u8>, payload: u16, dnssec_ok: bool) -> Vec<u8> {
    packet[11] += 1;
    packet.extend_from_slice(&[0, 0, 41]);
    packet.extend_from_slice(&payload.to_be_bytes());
    packet.extend_from_slice(&[0, 0, if dnssec_ok { 0x80 } else { 0 }, 0, 0, 0]);
    packet
}

pub(crate) fn name(text: &str) -> Name {
    Name::parse(text).unwrap_or_else(|| panic!("{text} is a name"))
}

/// Each port of a headless Service is at each of its endpoints: slices of many of both, which people write themselves.
#[test]
fn ports_and_endpoints_may_be_many() {
    let mut keeper = crate::Keeper::new(name("cluster.local"));
    let ports: Vec<_> = (0..20_000).map(|it| serde_json::json!({ "name": format!("p{it}"), "port": 80 })).collect();
    let endpoint = |it: usize| {
        let address = format!("10.0.{}.{}", it / 256, it % 256);
        serde_json::json!({ "addresses": [address], "hostname": "db", "conditions": { "ready": true } })
    };
    let metadata = |name: &str| serde_json::json!({ "namespace": "shop", "name": name, "labels": { "kubernetes.io/service-name": "db" } });
    let service = serde_json::json!({ "metadata": metadata("db"), "spec": { "clusterIP": "None" } });
    keeper.apply(crate::Change::Service(serde_json::from_value(service).expect("a service")));
    for slice in 0..10 {
        let endpoints: Vec<_> = (slice * 1_000..(slice + 1) * 1_000).map(endpoint).collect();
        let slice = serde_json::json!({ "metadata": metadata(&format!("s{slice}")), "addressType": "IPv4", "endpoints": endpoints, "ports": ports });
        keeper.apply(crate::Change::Slice(serde_json::from_value(slice).expect("a slice")));
    }
    keeper.apply(crate::Change::SliceGone(corten_meta::Key::new("shop", "s0")));
}
