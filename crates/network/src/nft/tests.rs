use std::time::Instant;

use corten_meta::address::Cidr;
use corten_proxy::{
    Config, Event, Proxy,
    projections::{EndpointSlice, Service},
};
use rustix::thread::UnshareFlags;
use serde_json::json;

use super::*;

/// Runs in a network of its own, where it can do no harm.
pub(crate) fn in_own_network(work: impl FnOnce() + Send + 'static) {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root");
        return;
    }
    let thread = std::thread::spawn(move || {
        #[expect(unsafe_code, reason = "a network of its own for one thread")]
        // SAFETY: it changes the network of this thread only, which holds no file of the old one.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }.expect("a network of its own");
        work();
    });
    thread.join().expect("the test's thread");
}

fn service(n: usize, spec: serde_json::Value) -> Event {
    let mut all = json!({
        "clusterIP": format!("10.{}.{}.{}", 96 + (n >> 16), (n >> 8) & 255, n & 255),
        "ports": [{"port": 80, "protocol": "TCP", "nodePort": 0}],
    });
    for (name, value) in spec.as_object().expect("an object") {
        all[name] = value.clone();
    }
    let service = json!({"metadata": {"name": format!("web{n}"), "namespace": "default"}, "spec": all,
        "status": {"loadBalancer": {"ingress": [{"ip": "172.30.0.2"}]}}});
    Event::Service(Box::new(serde_json::from_value::<Service>(service).expect("a service")))
}

fn slice(n: usize, endpoints: usize) -> Event {
    let endpoints: Vec<_> = (0..endpoints)
        .map(|it| json!({"addresses": [format!("10.244.{}.{}", it, n % 200 + 2)], "nodeName": "n1"}))
        .collect();
    let slice = json!({
        "metadata": {"name": format!("web{n}-1"), "namespace": "default", "labels": {"kubernetes.io/service-name": format!("web{n}")}},
        "addressType": "IPv4", "endpoints": endpoints, "ports": [{"port": 8080, "protocol": "TCP", "name": ""}],
    });
    Event::Slice(Box::new(serde_json::from_value::<EndpointSlice>(slice).expect("a slice")))
}

fn proxy() -> Proxy {
    Proxy::new(Config {
        node_name: "n1".into(),
        addresses: vec!["172.30.0.2".parse().expect("an address")],
        pod_cidrs: ["10.244.0.0/16", "fd00:10:244::/64"].iter().filter_map(|it| Cidr::parse(it)).collect(),
        ..Config::default()
    })
}

fn commit(changes: &[Change]) {
    let committed = Socket::open().expect("a socket").commit(&Batch::of("test", changes));
    if let Err(refusal) = committed {
        panic!("{}: {:?}", refusal.error, refusal.at.map(|it| changes[it].to_string()));
    }
}

fn existing() -> Existing {
    let mut socket = Socket::open().expect("a socket");
    let names = |socket: &mut Socket, kind| socket.names(kind, "test").expect("names");
    Existing { chains: names(&mut socket, objects::GET_CHAIN), sets: names(&mut socket, objects::GET_SET) }
}

#[test]
fn the_kernel_takes_every_kind_of_rule() {
    in_own_network(|| {
        let mut proxy = proxy();
        assert_eq!(existing(), Existing::default());
        commit(&proxy.whole(&existing()));
        let news = vec![
            service(1, json!({})),
            slice(1, 2),
            service(
                2,
                json!({
                    "type": "LoadBalancer", "externalTrafficPolicy": "Local", "externalIPs": ["192.0.2.7"],
                    "loadBalancerSourceRanges": ["10.0.0.0/8", "192.168.0.0/30", "172.30.0.0/16"], "healthCheckNodePort": 31000,
                    "ports": [{"port": 80, "protocol": "TCP", "nodePort": 30080}, {"port": 53, "protocol": "UDP", "nodePort": 30053}],
                }),
            ),
            slice(2, 3),
            service(3, json!({"sessionAffinity": "ClientIP"})),
            slice(3, 2),
            service(4, json!({"clusterIP": "fd00:10:96::4", "internalTrafficPolicy": "Local"})),
            service(5, json!({"type": "NodePort", "ports": [{"port": 5, "protocol": "SCTP", "nodePort": 30005}]})),
        ];
        let step = proxy.step(news);
        commit(&step.changes);
        commit(&proxy.whole(&existing()));
        commit(
            &proxy
                .step([slice(2, 1), slice(3, 3), Event::ServiceGone(corten_meta::Key::new("default", "web1"))])
                .changes,
        );
        let held = existing();
        assert!(held.chains.iter().any(|it| it == "ep4/default/web3/tcp/80/10.244.2.5/8080"), "{held:?}");
        assert!(!held.chains.iter().any(|it| it.contains("web1")), "{held:?}");
        // A table of another layout gives way as a whole, and what is not known is taken out of one's own.
        commit(&[Change::Chain("stray".into())]);
        commit(&proxy.whole(&existing()));
        assert!(!existing().chains.iter().any(|it| it == "stray"));
        commit(&[Change::DropTable, Change::Table, Change::Chain("stray".into())]);
        commit(&proxy.whole(&existing()));
        assert_eq!(existing().chains.len(), held.chains.len());
        let refused = Socket::open().expect("a socket").commit(&Batch::of("test", &[Change::DropChain("none".into())]));
        assert_eq!(refused.expect_err("no such chain").at, Some(0));
        assert!(Socket::open().expect("a socket").has_table(INET, "test").expect("an answer"));
        commit(&[Change::DropTable]);
        assert!(!Socket::open().expect("a socket").has_table(INET, "test").expect("an answer"));
    });
}

#[test]
fn one_change_costs_what_it_changes_however_many_services_there_are() {
    in_own_network(|| {
        const SERVICES: usize = 10_000;
        let mut proxy = proxy();
        commit(&proxy.whole(&existing()));
        let begin = Instant::now();
        let step = proxy.step((0..SERVICES).flat_map(|it| [service(it, json!({})), slice(it, 2)]));
        let decided = begin.elapsed();
        commit(&step.changes);
        eprintln!(
            "{SERVICES} services: decided in {decided:?}, {} changes in the kernel after {:?}",
            step.changes.len(),
            begin.elapsed()
        );
        for endpoints in [3, 2, 1, 2] {
            let begin = Instant::now();
            let step = proxy.step([slice(77, endpoints)]);
            let decided = begin.elapsed();
            commit(&step.changes);
            eprintln!(
                "one endpoint: {} changes, decided in {decided:?}, done after {:?}",
                step.changes.len(),
                begin.elapsed()
            );
            assert!(step.changes.len() < 10, "{:?}", step.changes);
        }
        let begin = Instant::now();
        let held = existing();
        eprintln!("read back after {:?}", begin.elapsed());
        let whole = proxy.whole(&held);
        commit(&whole);
        eprintln!("{} changes for the whole after {:?}", whole.len(), begin.elapsed());
    });
}
