//! What comes to the name server: queries from Pods, and answers from other servers.

#![no_main]

use std::sync::LazyLock;

use corten_dns::{
    Change, Keeper, Name, Outcome, Question, Reading, Rejected, TCP_BYTES_MAX, Zone, answer, ask, chased, parse,
    reject, relay,
};
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

static ZONE: LazyLock<Zone> = LazyLock::new(|| {
    let mut keeper = Keeper::new(Name::parse("cluster.local").expect("a name"));
    let ports = json!([{ "name": "p", "protocol": "TCP", "port": 80 }]);
    let service = |name: &str, spec: Value| {
        let object = json!({ "metadata": { "name": name, "namespace": "n" }, "spec": spec });
        Change::Service(serde_json::from_value(object).expect("a service"))
    };
    keeper.apply(Change::Namespace("n".into()));
    keeper.apply(service(
        "a",
        json!({ "clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7", "fd00::7"], "ports": ports }),
    ));
    keeper.apply(service("h", json!({ "clusterIP": "None", "ports": ports })));
    keeper.apply(service("i", json!({ "type": "ExternalName", "externalName": "h.n.svc.cluster.local" })));
    keeper.apply(service("o", json!({ "type": "ExternalName", "externalName": "b.test" })));
    let endpoints: Vec<Value> = (0..100).map(|it| json!({ "addresses": [format!("10.244.0.{it}")] })).collect();
    let slice = json!({
        "metadata": { "name": "h-1", "namespace": "n", "labels": { "kubernetes.io/service-name": "h" } },
        "addressType": "IPv4", "endpoints": endpoints, "ports": ports,
    });
    keeper.apply(Change::Slice(serde_json::from_value(slice).expect("a slice")));
    keeper.apply(Change::Complete);
    keeper.zone()
});

fuzz_target!(|data: &[u8]| {
    let Some((kind, packet)) = data.split_first() else { return };
    if kind % 2 == 0 { from_client(packet, usize::from(*kind)) } else { from_server(packet) }
});

fn from_client(packet: &[u8], turn: usize) {
    let mut out = Vec::new();
    let query = match parse(packet) {
        Ok(query) => query,
        Err(Rejected::Silence) => return,
        Err(Rejected::Code(code)) => {
            reject(packet, code, &mut out);
            assert!(out.len() <= 23 && out[..2] == packet[..2], "a header and no more");
            return;
        }
    };
    for limit in [query.udp_limit(), TCP_BYTES_MAX] {
        if answer(&query, &ZONE, turn, limit, &mut out) == Outcome::Answered {
            assert!(out.len() <= limit, "within the limit");
            let read = Reading::of(&out, packet, &query.question).expect("the answer can be read");
            assert!(read.is_echo, "the question comes back as it was written");
        }
    }
}

fn from_server(rest: &[u8]) {
    let name = |text| Name::parse(text).expect("a name");
    let question = Question { name: name("b.test"), qtype: 1, dnssec_ok: false, checking_disabled: false };
    let (mut asked, mut out) = (Vec::new(), Vec::new());
    ask(&question, 7, &[0], &mut asked);
    // The id and the question are right, or it is not looked at.
    let Some((head, records)) = rest.split_at_checked(8) else { return };
    let mut packet =
        [&asked[..2], &[0x80 | head[0] & 7, head[1], 0, 1], &head[2..], &asked[12..asked.len() - 11]].concat();
    packet.extend_from_slice(records);
    let Ok(reading) = Reading::of(&packet, &asked, &question) else { return };
    let wanted = Question { qtype: 28, ..question };
    if let Some(made) = reading.as_ipv6(&wanted, |it| Some(it.to_ipv6_mapped())) {
        let mut query = asked[..asked.len() - 11].to_vec();
        query[11] = 0;
        let at = query.len() - 3;
        query[at] = 28;
        relay(&parse(&query).expect("a query"), &made, 5, TCP_BYTES_MAX, &mut out);
        Reading::of(&out, &query, &wanted).expect("what is made of it can be read");
    }
    let mut query = asked[..asked.len() - 11].to_vec();
    query[11] = 0;
    let query = parse(&query).expect("what is asked is a query");
    for limit in [query.udp_limit(), TCP_BYTES_MAX] {
        relay(&query, &reading, 5, limit, &mut out);
        assert!(out.len() <= limit);
        Reading::of(&out, &asked, &question).expect("what is passed on can be read");
        chased(&query, &[name("c.test")], &reading, 5, limit, &mut out);
        assert!(out.len() <= limit);
        Reading::of(&out, &asked, &question).expect("what is put together can be read");
    }
}
