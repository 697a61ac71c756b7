use std::{net::Ipv4Addr, time::Instant};

use corten_meta::Key;
use corten_netpolicy::{Event, NetworkPolicies, Plugged};
use serde_json::{Value as Json, json};

use super::*;
use crate::nft::tests::in_own_network;

fn rules() -> PolicyRules {
    PolicyRules { table: "test".into(), bridge: "corten0".into() }
}

fn pod(n: usize, labels: &Json) -> impl Iterator<Item = Event> + use<> {
    let is_here = n.is_multiple_of(20);
    let name = format!("pod-{n}");
    let address = Ipv4Addr::from_bits(0x0af4_0000 + u32::try_from(n).expect("small") + 2);
    let object = json!({
        "metadata": {"name": name, "namespace": format!("ns-{}", n % 100), "uid": name, "labels": labels},
        "spec": {"nodeName": if is_here { "n1" } else { "n2" }, "containers": [{"ports": [{"name": "http", "containerPort": 8080}]}]},
        "status": {"podIPs": [{"ip": address}]},
    });
    let plugged = Plugged {
        sandbox: name.clone(),
        pod: Key::new(format!("ns-{}", n % 100), &*name),
        uid: name,
        addresses: vec![address.into(), address.to_ipv6_mapped().to_bits().wrapping_add(1 << 64).into_v6()],
        labels: None,
    };
    let plugged = is_here.then_some(Event::Plugged(plugged));
    [Event::Pod(serde_json::from_value(object).expect("a pod"))].into_iter().chain(plugged)
}

trait IntoV6 {
    fn into_v6(self) -> std::net::IpAddr;
}

impl IntoV6 for u128 {
    fn into_v6(self) -> std::net::IpAddr {
        std::net::Ipv6Addr::from_bits(self).into()
    }
}

fn policy(namespace: usize, name: &str, spec: &Json) -> Event {
    let object = json!({"metadata": {"name": name, "namespace": format!("ns-{namespace}")}, "spec": spec});
    Event::Policy(serde_json::from_value(object).expect("a policy"))
}

fn namespace(n: usize) -> Event {
    let object = json!({"metadata": {"name": format!("ns-{n}"), "labels": {"team": format!("t{}", n % 10)}}});
    Event::Namespace(serde_json::from_value(object).expect("a namespace"))
}

/// Others list the rules of the machine with `nft`, and Corten does: it must be able to.
fn list() -> String {
    let shown = std::process::Command::new("nft").args(["-j", "list", "ruleset"]).output().expect("started");
    serde_json::from_slice::<Json>(&shown.stdout).expect("JSON");
    let output = std::process::Command::new("nft").args(["list", "table", "inet", "test"]).output().expect("started");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_kernel_takes_every_kind_of_rule() {
    in_own_network(|| {
        let rules = rules();
        let mut mind = NetworkPolicies::new("n1");
        rules.commit(&mind.whole()).expect("taken");
        let spec = json!({
            "podSelector": {}, "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [
                {"podSelector": {"matchLabels": {"app": "a"}}},
                {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}},
                {"ipBlock": {"cidr": "fd00::/8", "except": ["fd00:1::/64"]}},
            ], "ports": [{"port": 80, "endPort": 90}, {"port": "http"}, {"protocol": "SCTP", "port": 7}, {"protocol": "UDP"}]}],
            "egress": [{}],
        });
        let step = mind.step([namespace(0), policy(0, "p", &spec)].into_iter().chain(pod(0, &json!({"app": "a"}))));
        rules.commit(&step.changes).expect("taken");
        let listed = list();
        for said in [
            "iifname != \"corten0\" accept",
            "ct state established,related accept",
            "ip saddr vmap @egress4",
            "tcp dport 80-90 accept",
            "0.0.0.0-9.255.255.255, 11.0.0.0-255.255.255.255",
            "ip daddr . meta l4proto . th dport @port4-1 accept",
            "jump in/ns-0/p/1",
            "10.244.0.2 . tcp . 8080",
            "fd00:1:0:1::-fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        ] {
            assert!(listed.contains(said), "{said}: {listed}");
        }
        // The whole, on top of what there is, says the same.
        rules.commit(&mind.whole()).expect("taken");
        let sorted = |it: &str| {
            let mut lines: Vec<String> = it.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(sorted(&list()), sorted(&listed));
        let step = mind.step([
            Event::PolicyGone(Key::new("ns-0", "p")),
            Event::Unplugged("pod-0".into()),
            Event::PodGone(Key::new("ns-0", "pod-0")),
        ]);
        rules.commit(&step.changes).expect("taken");
        let listed = list();
        assert!(!listed.contains("ns-0") && !listed.contains("10.244.0.2") && !listed.contains("blocks"), "{listed}");
        let refused = rules.commit(&[Change::DropChain("none".into())]).expect_err("no such chain").to_string();
        assert!(refused.contains("at \"delete chain none\""), "{refused}");
        rules.commit(&[Change::DropTable]).expect("taken");
    });
}

/// A thousand policies with five thousand Pods, of which one node has as many as its network has addresses.
#[test]
fn one_pods_change_costs_what_it_changes_however_many_policies_there_are() {
    in_own_network(|| {
        const POLICIES: usize = 1000;
        const PODS: usize = 5000;
        let rules = rules();
        let mut mind = NetworkPolicies::new("n1");
        rules.commit(&mind.whole()).expect("taken");
        let labels = |n: usize| json!({"app": format!("a{}", n / 100 % 50), "tier": format!("t{}", n % 7)});
        let spec = |n: usize| {
            json!({
                "podSelector": {"matchLabels": {"app": format!("a{}", n / 100)}}, "policyTypes": ["Ingress", "Egress"],
                "ingress": [{"from": [
                    {"podSelector": {"matchLabels": {"tier": format!("t{}", n % 7)}}},
                    {"namespaceSelector": {"matchLabels": {"team": format!("t{}", n % 10)}}, "podSelector": {"matchLabels": {"app": format!("a{}", n % 50)}}},
                ], "ports": [{"port": "http"}, {"port": 443}]}],
                "egress": [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": [format!("10.{}.0.0/16", n % 200)]}}]}, {"to": [{"podSelector": {}}]}],
            })
        };
        let begin = Instant::now();
        let all = (0..100).map(namespace);
        let all = all.chain((0..POLICIES).map(|it| policy(it % 100, &format!("p{it}"), &spec(it))));
        let step = mind.step(all.chain((0..PODS).flat_map(|it| pod(it, &labels(it)))));
        let decided = begin.elapsed();
        rules.commit(&step.changes).expect("taken");
        let n_changes = step.changes.len();
        eprintln!(
            "{POLICIES} policies, {PODS} pods: decided in {decided:?}, {n_changes} changes after {:?}",
            begin.elapsed()
        );
        let tell = |what: &str, begin: Instant, step: &corten_netpolicy::Step| {
            let decided = begin.elapsed();
            // Of Pods that no policy of this node names, nothing is said.
            if !step.changes.is_empty() {
                rules.commit(&step.changes).expect("taken");
            }
            eprintln!(
                "{what}: {} changes, decided in {decided:?}, done after {:?}",
                step.changes.len(),
                begin.elapsed()
            );
            // Who has policies that nobody had together before is given a chain of its own.
            let n_chains = step.changes.iter().filter(|it| matches!(it, Change::Chain(_))).count();
            assert!(n_chains <= 4, "{:?}", step.changes);
            assert!(step.changes.len() < 100, "{}", step.changes.len());
        };
        for n in [PODS, PODS + 1, PODS + 20] {
            let begin = Instant::now();
            let step = mind.step(pod(n, &labels(n)));
            tell("a pod more", begin, &step);
        }
        for (n, other) in [(1780, 1880), (1781, 1881), (1780, 1780), (1780, 1880)] {
            let begin = Instant::now();
            let step = mind.step(pod(n, &labels(other)).take(1));
            tell("other labels", begin, &step);
        }
        let begin = Instant::now();
        let step = mind.step([Event::Unplugged("pod-5000".into())]);
        tell("a pod less", begin, &step);
        let begin = Instant::now();
        let whole = mind.whole();
        rules.commit(&whole).expect("taken");
        eprintln!("{} changes for the whole after {:?}", whole.len(), begin.elapsed());
    });
}
