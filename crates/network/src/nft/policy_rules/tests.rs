use std::net::Ipv4Addr;

use corten_meta::Key;
use corten_netpolicy::{Event, NetworkPolicies, PodSandbox};
use serde_json::{Value as Json, json};

use super::*;
use crate::nft::tests::in_own_network;

fn rules() -> PolicyRules {
    PolicyRules { table: "test".into(), bridge: "corten0".into(), socket: KeptSocket::default() }
}

fn pod(n: usize, labels: &Json) -> impl Iterator<Item = Event> + use<> {
    pod_at(n % 100, n, n.is_multiple_of(20), labels)
}

fn pod_at(namespace: usize, n: usize, is_here: bool, labels: &Json) -> impl Iterator<Item = Event> + use<> {
    let (name, namespace) = (format!("pod-{n}"), format!("ns-{namespace}"));
    let address = Ipv4Addr::from_bits(0x0af4_0000 + u32::try_from(n).expect("small") + 2);
    let object = json!({
        "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": labels},
        "spec": {"nodeName": if is_here { "n1" } else { "n2" }, "containers": [{"ports": [{"name": "http", "containerPort": 8080}]}]},
        "status": {"podIPs": [{"ip": address}]},
    });
    let plugged = PodSandbox {
        sandbox: name.clone(),
        pod: Key::new(namespace, &*name),
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

/// So many namespaces, each with ten policies and fifty Pods, of which three are on this node.
struct Crowd {
    rules: PolicyRules,
    mind: NetworkPolicies,
}

impl Crowd {
    const POLICIES: usize = 10;
    const PODS: usize = 50;

    fn new(namespaces: usize) -> Self {
        let mut crowd = Self { rules: rules(), mind: NetworkPolicies::new("n1") };
        crowd.rules.commit(&[Change::Table, Change::DropTable]).expect("none is left");
        crowd.rules.commit(&crowd.mind.whole()).expect("taken");
        let policies = (0..namespaces * Self::POLICIES).map(|it| {
            let (namespace, n) = (it % namespaces, it / namespaces);
            policy(namespace, &format!("p{n}"), &Self::spec(namespace, n))
        });
        let pods = (0..namespaces * Self::PODS).flat_map(|it| {
            let (namespace, n) = (it % namespaces, it / namespaces);
            let labels = json!({"app": format!("a{n}"), "tier": format!("t{}", n % 7)});
            pod_at(namespace, it, n.is_multiple_of(20), &labels)
        });
        crowd.step((0..namespaces).map(namespace).chain(policies).chain(pods));
        crowd
    }

    /// Each Pod is chosen by policies of its own namespace, and by those of all namespaces that look for its team.
    fn spec(namespace: usize, n: usize) -> Json {
        let app = |n: usize| format!("a{}", n % Self::PODS);
        json!({
            "podSelector": {"matchLabels": {"app": app(n * 10)}}, "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [
                {"podSelector": {"matchLabels": {"tier": format!("t{}", n % 7)}}},
                {
                    "namespaceSelector": {"matchLabels": {"team": format!("t{}", namespace % 10)}},
                    "podSelector": {"matchLabels": {"app": app(n * 10 + namespace % 10)}},
                },
            ], "ports": [{"port": "http"}, {"port": 443}]}],
            "egress": [
                {"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": [format!("10.{}.0.0/16", n % 200)]}}]},
                {"to": [{"podSelector": {}}]},
            ],
        })
    }

    /// Chains, rules, and elements of sets that are written or taken away.
    fn step(&mut self, news: impl IntoIterator<Item = Event>) -> [usize; 3] {
        let changes = self.mind.step(news).changes;
        // Of Pods that no policy of this node names, nothing is said.
        if !changes.is_empty() {
            self.rules.commit(&changes).expect("taken");
        }
        let n_of = |is_counted: fn(&Change) -> bool| changes.iter().filter(|it| is_counted(it)).count();
        [
            n_of(|it| matches!(it, Change::Chain(_))),
            n_of(|it| matches!(it, Change::Rule(..))),
            n_of(|it| matches!(it, Change::Add(..) | Change::Remove(..))),
        ]
    }

    /// What each change of one Pod in the first namespace takes. The policies that choose it choose another of this node, too: the first
    /// such Pod brings them, with all that they name.
    fn changes_of_one_pod(&mut self) -> Vec<[usize; 3]> {
        const NUMBER: usize = 60_000;
        let labels = |n: usize| json!({"app": format!("a{n}"), "tier": "t3"});
        let key = Key::new("ns-0", format!("pod-{NUMBER}"));
        let mut counts = Vec::new();
        for is_here in [false, true] {
            counts.push(self.step(pod_at(0, NUMBER, is_here, &labels(20))));
            for app in [40, 49, 20] {
                counts.push(self.step(pod_at(0, NUMBER, is_here, &labels(app)).take(1)));
            }
            let unplugged = is_here.then(|| Event::Unplugged(format!("pod-{NUMBER}")));
            counts.push(self.step(unplugged.into_iter().chain([Event::PodGone(key.clone())])));
        }
        counts
    }
}

#[test]
fn one_pods_change_costs_what_it_changes_however_many_policies_and_pods_there_are() {
    in_own_network(|| {
        let mut few = Crowd::new(10);
        let of_few = few.changes_of_one_pod();
        let mut many = Crowd::new(100);
        assert_eq!(of_few, many.changes_of_one_pod());
        let are_few = |it: &[usize; 3]| matches!(it, [0, 0, 1..=12]);
        assert!(of_few.iter().all(are_few), "{of_few:?}");
        many.rules.commit(&many.mind.whole()).expect("the whole is taken, too");
    });
}
