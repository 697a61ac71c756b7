mod kernel;
mod oracle;
mod random;

use serde_json::{Value as Json, json};

use super::*;
use crate::{compiled::RULES_MAX, rules::Protocol};
use kernel::{Kernel, Packet};

fn namespace(name: &str, labels: Json) -> Event {
    let object = json!({"metadata": {"name": name, "labels": labels}});
    Event::Namespace(serde_json::from_value(object).expect("a namespace"))
}

fn pod_object(namespace: &str, name: &str, labels: Json, node: &str, addresses: &[&str]) -> Json {
    let ips: Vec<_> = addresses.iter().map(|it| json!({"ip": it})).collect();
    json!({
        "metadata": {"name": name, "namespace": namespace, "uid": format!("{namespace}-{name}"), "labels": labels},
        "spec": {"nodeName": node, "containers": [{"ports": [{"name": "http", "containerPort": 8080}]}]},
        "status": {"phase": "Running", "podIPs": ips},
    })
}

fn pod(object: &Json) -> Event {
    Event::Pod(serde_json::from_value(object.clone()).expect("a pod"))
}

fn plugged(namespace: &str, name: &str, addresses: &[&str]) -> Event {
    Event::Plugged(PodSandbox {
        sandbox: format!("sandbox-{namespace}-{name}"),
        pod: Key::new(namespace, name),
        uid: format!("{namespace}-{name}"),
        addresses: addresses.iter().map(|it| it.parse().expect("an address")).collect(),
        labels: None,
    })
}

fn policy(namespace: &str, name: &str, spec: Json) -> Event {
    let object = json!({"metadata": {"name": name, "namespace": namespace}, "spec": spec});
    Event::Policy(serde_json::from_value(object).expect("a policy"))
}

/// The mind and a kernel that is told what it says.
struct World {
    mind: NetworkPolicies,
    kernel: Kernel,
}

const CLIENT: &str = "10.244.0.2";
const DB: &str = "10.244.0.3";
const DB6: &str = "fd00::3";
const CLIENT6: &str = "fd00::2";
/// Of another node.
const FAR: &str = "10.244.1.9";
const OUTSIDE: &str = "192.0.2.7";

impl World {
    /// Two Pods of this node, one of another, in two namespaces.
    fn new() -> Self {
        Self::with(NetworkPolicies::new("n1"))
    }

    fn with(mind: NetworkPolicies) -> Self {
        let mut this = Self { mind, kernel: Kernel::default() };
        this.kernel.apply(&this.mind.whole());
        this.tell([
            namespace("shop", json!({"team": "a"})),
            namespace("other", json!({"team": "b"})),
            pod(&pod_object("shop", "client", json!({"app": "client"}), "n1", &[])),
            pod(&pod_object("shop", "db", json!({"app": "db"}), "n1", &[])),
            pod(&pod_object("other", "far", json!({"app": "client"}), "n2", &[FAR])),
            plugged("shop", "client", &[CLIENT, CLIENT6]),
            plugged("shop", "db", &[DB, DB6]),
        ]);
        this
    }

    fn tell(&mut self, events: impl IntoIterator<Item = Event>) -> Step {
        let step = self.mind.step(events);
        self.kernel.apply(&step.changes);
        let mut whole = Kernel::default();
        whole.apply(&self.mind.whole());
        assert_eq!(self.kernel, whole, "what changes add up to is the whole");
        step
    }

    fn asks(&self, from: &str, to: &str, port: &str) -> bool {
        let (protocol, port) = port.split_once('/').map_or(("TCP", port), |(port, protocol)| (protocol, port));
        let is_here = |it: &str| [CLIENT, DB, CLIENT6, DB6].contains(&it);
        self.kernel.lets_through(&Packet {
            from: from.parse().expect("an address"),
            to: to.parse().expect("an address"),
            protocol: Protocol::parse(protocol).expect("a protocol"),
            port: port.parse().expect("a port"),
            from_bridge: is_here(from),
            to_bridge: is_here(to),
        })
    }
}

fn db(spec: &Json) -> Json {
    let mut all = json!({"podSelector": {"matchLabels": {"app": "db"}}, "policyTypes": ["Ingress"]});
    for (name, value) in spec.as_object().expect("an object") {
        all[name] = value.clone();
    }
    all
}

/// Every field: who reaches the database, and what it reaches.
#[test]
fn each_field_says_what_upstream_says() {
    const ASKED: [(&str, &str, &str); 9] = [
        (CLIENT, DB, "8080"),
        (CLIENT, DB, "5432"),
        (CLIENT, DB, "8080/UDP"),
        (CLIENT6, DB6, "8080"),
        (FAR, DB, "8080"),
        (OUTSIDE, DB, "8080"),
        (DB, CLIENT, "8080"),
        (DB, OUTSIDE, "443"),
        (DB, DB, "8080"),
    ];
    let ingress = |rules: Json| db(&json!({ "ingress": rules }));
    let egress = |rules: Json| db(&json!({"policyTypes": ["Egress"], "egress": rules}));
    for (what, spec, expected) in [
        ("nobody reaches it", ingress(json!([])), "......+++"),
        ("all do", ingress(json!([{}])), "+++++++++"),
        ("of an empty list of peers all do", ingress(json!([{"from": [], "ports": []}])), "+++++++++"),
        ("rules of a direction that is no type", db(&json!({"egress": [], "ingress": [{}]})), "+++++++++"),
        ("types by their rules", json!({"podSelector": {}, "ingress": [{}], "egress": []}), "+++++++++"),
        (
            "a type for each kind of rule",
            json!({"podSelector": {}, "ingress": [{}], "egress": [{"ports": [{"port": 1}]}]}),
            "....++..+",
        ),
        ("Pods of its namespace", ingress(json!([{"from": [{"podSelector": {}}]}])), "++++..+++"),
        (
            "those with a label",
            ingress(json!([{"from": [{"podSelector": {"matchLabels": {"app": "web"}}}]}])),
            "......+++",
        ),
        (
            "a namespace",
            ingress(json!([{"from": [{"namespaceSelector": {"matchLabels": {"team": "b"}}}]}])),
            "....+.+++",
        ),
        ("all namespaces", ingress(json!([{"from": [{"namespaceSelector": {}}]}])), "+++++.+++"),
        (
            "Pods of a namespace",
            ingress(
                json!([{"from": [{"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["a", "b"]}]},
                "podSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}}]}]),
            ),
            "+++++.+++",
        ),
        ("a block", ingress(json!([{"from": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}])), ".....++++"),
        (
            "a block but for a part",
            ingress(json!([{"from": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.244.0.0/24"]}}]}])),
            "....+++++",
        ),
        ("a block of IPv6", ingress(json!([{"from": [{"ipBlock": {"cidr": "fd00::/64"}}]}])), "...+..+++"),
        ("a port", ingress(json!([{"ports": [{"port": 8080}]}])), "+..++++++"),
        (
            "a range of ports",
            ingress(json!([{"ports": [{"port": 5000, "endPort": 6000, "protocol": "TCP"}]}])),
            ".+....+++",
        ),
        ("a named port", ingress(json!([{"ports": [{"port": "http"}]}])), "+..++++++"),
        ("a name that no port has", ingress(json!([{"ports": [{"port": "https"}]}])), "......+++"),
        ("a protocol", ingress(json!([{"ports": [{"protocol": "UDP"}]}])), "..+...+++"),
        ("SCTP", ingress(json!([{"ports": [{"protocol": "SCTP", "port": 8080}]}])), "......+++"),
        (
            "peers and ports both",
            ingress(json!([{"from": [{"podSelector": {}}], "ports": [{"port": 8080}, {"port": 9}]}])),
            "+..+..+++",
        ),
        (
            "either of two rules",
            ingress(json!([{"from": [{"ipBlock": {"cidr": "192.0.2.7/32"}}]}, {"ports": [{"port": 5432}]}])),
            ".+...++++",
        ),
        ("it reaches nobody", egress(json!([])), "++++++..+"),
        (
            "it reaches a Pod",
            egress(json!([{"to": [{"podSelector": {"matchLabels": {"app": "client"}}}]}])),
            "+++++++.+",
        ),
        ("it reaches a named port", egress(json!([{"ports": [{"port": "http"}]}])), "+++++++.+"),
        (
            "it reaches the outside",
            egress(json!([{"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}], "ports": [{"port": 443}]}])),
            "++++++.++",
        ),
    ] {
        let mut world = World::new();
        world.tell([policy("shop", "p", spec)]);
        let said: String =
            ASKED.iter().map(|(from, to, port)| if world.asks(from, to, port) { '+' } else { '.' }).collect();
        assert_eq!(said, expected, "{what}");
        world.tell([Event::PolicyGone(Key::new("shop", "p"))]);
        assert!(ASKED.iter().all(|(from, to, port)| world.asks(from, to, port)), "{what}: gone");
        assert_eq!(world.kernel, World::new().kernel, "{what}: nothing is left");
    }
}

#[test]
fn policies_add_up() {
    let mut world = World::new();
    world.tell([
        policy("shop", "deny", json!({"podSelector": {}, "policyTypes": ["Ingress", "Egress"]})),
        policy("shop", "out", json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]})),
        policy(
            "shop",
            "in",
            db(&json!({"ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "client"}}}]}]})),
        ),
        policy("other", "deny", json!({"podSelector": {}, "policyTypes": ["Ingress"]})),
    ]);
    assert!(world.asks(CLIENT, DB, "1") && !world.asks(DB, CLIENT, "1") && !world.asks(FAR, DB, "1"));
    assert!(world.asks(CLIENT, OUTSIDE, "1"));
    world.tell([Event::PolicyGone(Key::new("shop", "out"))]);
    assert!(!world.asks(CLIENT, DB, "1") && !world.asks(CLIENT, OUTSIDE, "1"));
}

#[test]
fn a_pod_that_is_not_known_is_cut_off_until_it_is() {
    let mut world = World::new();
    let new = "10.244.0.9";
    let asks = |world: &World, from: &str, to: &str| {
        let parse = |it: &str| it.parse().expect("an address");
        let (from_bridge, to_bridge) = (from == new, true);
        let packet =
            Packet { from: parse(from), to: parse(to), protocol: Protocol::Tcp, port: 1, from_bridge, to_bridge };
        world.kernel.lets_through(&packet)
    };
    assert!(!asks(&world, OUTSIDE, new));
    let step = world.tell([plugged("shop", "new", &[new])]);
    assert!(step.laid.is_empty() && !asks(&world, OUTSIDE, new) && !asks(&world, new, DB));
    let step = world.tell([pod(&pod_object("shop", "new", json!({"app": "new"}), "n1", &[]))]);
    assert_eq!(step.laid, ["sandbox-shop-new".to_owned()].into());
    assert!(asks(&world, OUTSIDE, new) && asks(&world, new, DB));
    let step = world.tell([Event::Unplugged("sandbox-shop-new".to_owned())]);
    assert!(!asks(&world, OUTSIDE, new) && !asks(&world, new, DB));
    assert!(step.changes.iter().all(|it| matches!(it, Change::Remove(..))), "{:?}", step.changes);

    // One that the API never knew is what its node says.
    let Event::Plugged(known) = plugged("shop", "static", &[new]) else { unreachable!("it makes this one") };
    let labels = Some([("app".to_owned(), "db".to_owned())].into());
    world.tell([policy("shop", "p", db(&json!({}))), Event::Plugged(PodSandbox { labels, ..known })]);
    assert!(asks(&world, new, CLIENT) && !asks(&world, OUTSIDE, new));
}

#[test]
fn by_addresses_alone_strangers_pass_and_a_pod_that_is_not_known_is_cut_off() {
    let mut world = World::with(NetworkPolicies::new("n1").with_pod_match(PodMatch::Addresses));
    world.tell([policy("shop", "p", db(&json!({})))]);
    let new = "10.244.0.9";
    assert!(
        world.asks(OUTSIDE, new, "1") && world.asks(new, FAR, "1"),
        "no Pod of this node: what is forwarded is forwarded"
    );
    assert!(!world.asks(CLIENT, DB, "1") && !world.asks(OUTSIDE, DB, "1") && world.asks(DB, CLIENT, "1"));
    let step = world.tell([plugged("shop", "new", &[new])]);
    assert!(step.laid.is_empty() && !world.asks(OUTSIDE, new, "1") && !world.asks(new, OUTSIDE, "1"));
    let step = world.tell([pod(&pod_object("shop", "new", json!({"app": "db"}), "n1", &[]))]);
    assert_eq!(step.laid, ["sandbox-shop-new".to_owned()].into());
    assert!(world.mind.laid().contains("sandbox-shop-new"));
    assert!(!world.asks(OUTSIDE, new, "1") && world.asks(new, CLIENT, "1"), "as the policy has it");
    // One that is deleted at once is led so until its node has ended it.
    world.tell([Event::PodGone(Key::new("shop", "new"))]);
    assert!(!world.asks(OUTSIDE, new, "1") && world.asks(new, CLIENT, "1"));
    world.tell([Event::Unplugged("sandbox-shop-new".to_owned())]);
    assert!(world.asks(OUTSIDE, new, "1"));
}

#[test]
fn an_address_that_is_given_again_is_its_new_pods() {
    let mut world = World::new();
    let allowed = json!({"ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "client"}}}]}]});
    world.tell([policy("shop", "p", db(&allowed))]);
    assert!(world.asks(CLIENT, DB, "1"));
    // The status of the Pod before still has it, and even its sandbox is not unplugged yet.
    let old = pod_object("shop", "client", json!({"app": "client"}), "n2", &[CLIENT]);
    world.tell([pod(&old), pod(&pod_object("shop", "x", json!({}), "n1", &[])), plugged("shop", "x", &[CLIENT])]);
    assert!(!world.asks(CLIENT, DB, "1"));
    world.tell([Event::Unplugged("sandbox-shop-client".to_owned())]);
    assert!(!world.asks(CLIENT, DB, "1") && world.asks(CLIENT, OUTSIDE, "1"));
    world.tell([Event::Unplugged("sandbox-shop-x".to_owned()), Event::PodGone(Key::new("shop", "x"))]);
    assert!(!world.asks(CLIENT, OUTSIDE, "1"));
}

/// A Pod that is deleted by force stays what it was while its processes run, and the next of its name is another.
#[test]
fn a_pod_stays_isolated_until_its_network_is_gone() {
    let mut world = World::new();
    world.tell([policy("shop", "p", db(&json!({})))]);
    world.tell([Event::PodGone(Key::new("shop", "db"))]);
    assert!(!world.asks(CLIENT, DB, "1") && world.asks(DB, CLIENT, "1"));
    let mut next = pod_object("shop", "db", json!({"app": "open"}), "n1", &[]);
    next["metadata"]["uid"] = "next".into();
    world.tell([pod(&next)]);
    assert!(!world.asks(CLIENT, DB, "1"));
    world.tell([Event::Unplugged("sandbox-shop-db".to_owned())]);
    let known = |uid: &str| {
        let pod = PodSandbox { pod: Key::new("shop", "db"), uid: uid.to_owned(), ..PodSandbox::default() };
        world.mind.knows(&pod)
    };
    assert!(!known("shop-db") && known("next"));
}

/// Whoever writes Pods chooses the annotation by which a node knows its static Pods.
#[test]
fn a_pod_does_not_become_another_by_naming_its_uid() {
    let mut world = World::new();
    world.tell([policy("shop", "p", db(&json!({})))]);
    assert!(!world.asks(CLIENT, DB, "1"));
    let mut other = pod_object("evil", "x", json!({"app": "open"}), "n1", &[]);
    other["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "shop-db"});
    world.tell([namespace("evil", json!({})), pod(&other)]);
    assert!(!world.asks(CLIENT, DB, "1") && world.asks(DB, CLIENT, "1"));
    world.tell([Event::PodGone(Key::new("evil", "x"))]);
    assert!(!world.asks(CLIENT, DB, "1"));
}

#[test]
fn what_changes_with_a_pod_are_elements() {
    let mut world = World::new();
    let peers = json!([{"from": [{"podSelector": {"matchLabels": {"app": "client"}}}], "ports": [{"port": "http"}]}]);
    world.tell([
        policy("shop", "p", db(&json!({ "ingress": peers }))),
        policy("shop", "q", db(&json!({"ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "client"}}}]}]}))),
    ]);
    assert_eq!(world.kernel.n_of(|it| matches!(it, Set::Pods(..))), 2, "policies share a set for each family");
    let step = world.tell([pod(&pod_object("shop", "client", json!({"app": "x"}), "n1", &[]))]);
    let said: Vec<String> = step.changes.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["delete element pods4-1 { 10.244.0.2 }", "delete element pods6-1 { fd00::2 }"]);
    assert!(!world.asks(CLIENT, DB, "8080"));
    assert!(world.tell([pod(&pod_object("shop", "client", json!({"app": "x"}), "n1", &[]))]).changes.is_empty());
    world.tell([namespace("shop", json!({"team": "c"}))]);

    // The second Pod with the same policies is led to what there is.
    world.tell([pod(&pod_object("shop", "db2", json!({"app": "db"}), "n1", &[]))]);
    let step = world.tell([plugged("shop", "db2", &["10.244.0.4"])]);
    let said: Vec<String> = step.changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "add element ingress4 { 10.244.0.4 : goto group/1 }",
            "add element egress4 { 10.244.0.4 : accept }",
            "add element itself4 { 10.244.0.4 . 10.244.0.4 }",
            "add element port4-1 { 10.244.0.4 . tcp . 8080 }",
        ]
    );
    let effects: Vec<String> = step.decisions.into_iter().flat_map(|it| it.1.effects).collect();
    assert_eq!(effects, ["isolates 2 pods: db, db2 on node n1 (ingress)"; 2]);
}

#[test]
fn a_policy_of_too_many_rules_isolates_and_says_so() {
    let mut world = World::new();
    let ports: Vec<_> = (1..=RULES_MAX).map(|it| json!({ "port": it })).collect();
    let step = world.tell([policy("shop", "p", db(&json!({"ingress": [{ "ports": ports }]})))]);
    assert!(!world.asks(CLIENT, DB, "80"));
    let waits: Vec<_> = step.decisions[0].1.waits.iter().map(|it| &*it.reason).collect();
    assert_eq!(waits, ["TooManyRules"]);
    let step = world.tell([policy("shop", "p", db(&json!({"ingress": [{"ports": [{"port": 80}]}]})))]);
    assert!(world.asks(CLIENT, DB, "80") && step.decisions[0].1.waits.is_empty());
    let long = "x".repeat(253);
    world.tell([policy("shop", &long, db(&json!({})))]);
    assert!(world.kernel.chains().all(|it| it.len() < 200));
}

/// So many peers, each of which selects every Pod, and each in other words.
fn all_pods(n_peers: usize) -> Json {
    let peer = |it| json!({"namespaceSelector": {}, "podSelector": {"matchExpressions": [{"key": format!("x{it}"), "operator": "DoesNotExist"}]}});
    db(&json!({"ingress": [{"from": (0..n_peers).map(peer).collect::<Vec<_>>()}]}))
}

fn far_pods(n_pods: usize) -> impl Iterator<Item = Event> {
    let address = |it: usize| format!("10.244.{}.{}", 2 + it / 200, it % 200 + 2);
    (0..n_pods).map(move |it| pod(&pod_object("other", &format!("p{it}"), json!({"app": "x"}), "n2", &[&address(it)])))
}

fn reasons(step: &Step) -> Vec<(String, Vec<String>)> {
    let waits = |it: &Decision| it.waits.iter().map(|it| it.reason.clone()).collect();
    step.decisions.iter().map(|(key, it)| (key.name.clone(), waits(it))).collect()
}

#[test]
fn only_what_isolates_a_pod_of_this_node_is_laid() {
    let mut world = World::new();
    let before = world.kernel.clone();
    world.tell(far_pods(10));
    let mut spec = all_pods(20);
    spec["podSelector"] = json!({"matchLabels": {"app": "web"}});
    let step = world.tell([policy("shop", "p", spec.clone()), policy("none", "p", all_pods(20))]);
    assert_eq!(world.kernel, before);
    assert_eq!(reasons(&step), [("p".to_owned(), vec![]), ("p".to_owned(), vec![])]);
    // A Pod that comes to be selected, and one that goes.
    world.tell([pod(&pod_object("shop", "db", json!({"app": "web"}), "n1", &[]))]);
    assert!(world.kernel.n_of(|it| matches!(it, Set::Pods(..))) == 40 && world.asks(FAR, DB, "1"));
    assert!(!world.asks(OUTSIDE, DB, "1"));
    world.tell([Event::Unplugged("sandbox-shop-db".to_owned())]);
    assert_eq!(world.kernel.n_of(|it| matches!(it, Set::Pods(..))), 0);
}

#[test]
fn a_namespace_whose_policies_hold_too_much_is_closed_and_says_so() {
    let mut world = World::new();
    world.tell(far_pods(100));
    let before = world.mind.counts().1;
    let step = world.tell([policy("shop", "bomb", all_pods(2000))]);
    assert_eq!(reasons(&step), [("bomb".to_owned(), vec!["TooManyPeers".to_owned()])]);
    assert!(!world.asks(FAR, DB, "1"), "it isolates, and allows nothing");
    assert!(world.mind.counts().1 <= before, "{}", world.mind.counts().1);
    // What another policy allows holds, and the smaller one is all that is laid.
    world.tell([policy("shop", "small", all_pods(2))]);
    assert!(world.asks(FAR, DB, "1") && !world.asks(OUTSIDE, DB, "1"));
    let step = world.tell([policy("shop", "bomb", all_pods(3))]);
    assert_eq!(reasons(&step), [("bomb".to_owned(), vec![])]);
}

/// Pods come until there is no room, the largest policy goes, and is back when there is.
#[test]
fn a_closed_policy_is_tried_again() {
    let mut world = World::new();
    world.mind.room = 2_000;
    world.tell([policy("shop", "large", all_pods(10)), policy("shop", "small", all_pods(1))]);
    let step = world.tell(far_pods(100));
    assert_eq!(reasons(&step), [("large".to_owned(), vec!["TooManyPeers".to_owned()])]);
    assert!(world.asks(FAR, DB, "1"));
    let step = world.tell([Event::Look]);
    assert!(step.changes.is_empty() && step.decisions.is_empty());
    world.tell((0..90).map(|it| Event::PodGone(Key::new("other", format!("p{it}")))));
    let step = world.tell([Event::Look, Event::PolicyGone(Key::new("shop", "small"))]);
    assert_eq!(reasons(&step), [("large".to_owned(), vec![])]);
    assert!(world.asks(FAR, DB, "1") && !world.asks(OUTSIDE, DB, "1"));
}

#[test]
fn pods_with_the_network_of_their_host_are_no_peers() {
    let mut world = World::new();
    let mut far = pod_object("other", "far", json!({"app": "client"}), "n2", &[FAR]);
    world.tell([policy("shop", "p", db(&json!({"ingress": [{"from": [{"namespaceSelector": {}}]}]})))]);
    assert!(world.asks(FAR, DB, "1"));
    far["spec"]["hostNetwork"] = true.into();
    world.tell([pod(&far)]);
    assert!(!world.asks(FAR, DB, "1"));
    far["spec"]["hostNetwork"] = false.into();
    far["status"]["phase"] = "Succeeded".into();
    world.tell([pod(&far)]);
    assert!(!world.asks(FAR, DB, "1"), "one that is over has no address");
}

/// Rules count together where no set is named: the longest policies go, and are back when there is room.
#[test]
fn the_rules_of_a_namespace_count_together() {
    let mut world = World::new();
    // Each policy counts as 16 more.
    world.mind.rules_max = 100 + 3 * 16;
    let ports = |first: usize, n: usize| {
        let ports: Vec<_> = (first..first + n).map(|it| json!({ "port": it, "protocol": "TCP" })).collect();
        db(&json!({ "ingress": [{ "ports": ports }] }))
    };
    world.tell([policy("shop", "a-long", ports(1_000, 60)), policy("shop", "short", ports(2_000, 30))]);
    assert!(world.asks(FAR, DB, "1000") && world.asks(FAR, DB, "2000"));

    let step = world.tell([policy("shop", "b-late", ports(3_000, 20))]);
    let told = reasons(&step);
    assert!(told.contains(&("a-long".to_owned(), vec!["TooManyRules".to_owned()])), "{told:?}");
    assert!(!world.asks(FAR, DB, "1000"), "the longest allows nothing");
    assert!(world.asks(FAR, DB, "2000") && world.asks(FAR, DB, "3000"), "the others are as they were");
    assert!(!world.asks(FAR, DB, "9"), "and the Pod stays isolated");

    world.tell([Event::Look]);
    assert!(!world.asks(FAR, DB, "1000"), "there is no room yet");
    world.tell([Event::PolicyGone(Key::new("shop", "short")), Event::PolicyGone(Key::new("shop", "b-late"))]);
    world.tell([Event::Look]);
    assert!(world.asks(FAR, DB, "1000"));
    assert_eq!(world.mind.shared.rooms.n_rules("shop"), 61 + 16);
}

fn many_named(n: u16) -> Json {
    (0..n).map(|it| json!({"ports": [{"name": "http", "containerPort": 20_000 + it}]})).collect::<Vec<_>>().into()
}

/// A Pod that the other namespace makes, with so many numbers for one name.
fn crowded(n: u16) -> Json {
    let mut crowded = pod_object("other", "crowded", json!({}), "n2", &["10.244.1.66", "fd00::66"]);
    crowded["spec"]["containers"] = many_named(n);
    crowded
}

#[test]
fn ports_of_a_name_are_those_of_who_can_be_asked() {
    let mut world = World::new();
    world.mind.room = 400;
    let port = json!([{"port": "http", "protocol": "TCP"}]);
    let to_clients = json!([{"to": [{"podSelector": {"matchLabels": {"app": "client"}}}], "ports": port}]);
    let spec = json!({"ingress": [{"ports": port}], "egress": to_clients, "policyTypes": ["Ingress", "Egress"]});
    world.tell([policy("shop", "named", db(&spec))]);
    let asked =
        |world: &World| [world.asks(FAR, DB, "8080"), world.asks(DB, CLIENT, "8080"), world.asks(DB, FAR, "8080")];
    assert_eq!(
        asked(&world),
        [true, true, false],
        "of egress without a namespaceSelector Pods of the namespace are peers"
    );
    let step = world.tell((0..20).map(|it| {
        let mut crowded = crowded(16);
        crowded["metadata"]["name"] = format!("crowded-{it}").into();
        crowded["metadata"]["uid"] = format!("crowded-{it}").into();
        pod(&crowded)
    }));
    assert_eq!(
        (reasons(&step), asked(&world)),
        (vec![], [true, true, false]),
        "nobody asks those of another namespace"
    );
}

#[test]
fn a_name_has_so_many_numbers() {
    let mut world = World::new();
    let anywhere = json!({"egress": [{"ports": [{"port": "http", "protocol": "TCP"}]}], "policyTypes": ["Egress"]});
    world.tell([policy("shop", "anywhere", db(&anywhere))]);
    let before = world.mind.counts().1;
    let step = world.tell([pod(&crowded(1_000))]);
    assert_eq!((world.mind.counts().1 - before, step.changes.len()), (32, 32), "sixteen at each of two addresses");
    assert!(world.asks(DB, "10.244.1.66", "20015") && !world.asks(DB, "10.244.1.66", "20016"));
}

/// Whoever runs a node says what is in the status of its Pods.
#[test]
fn a_pod_of_another_node_is_at_one_address_of_each_family() {
    let mut world = World::new();
    let from_others = json!([{"from": [{"namespaceSelector": {}}]}]);
    world.tell([policy("shop", "from-others", db(&json!({ "ingress": from_others })))]);
    let before = world.mind.counts().1;
    let addresses: Vec<String> = (0..200).map(|it| format!("10.244.9.{it}")).collect();
    let mut all: Vec<&str> = addresses.iter().map(|it| &**it).collect();
    all.splice(0..0, ["127.0.0.1", "fe80::1", "nonsense"]);
    all.extend(["fd00:9::1", "fd00:9::2"]);
    world.tell([pod(&pod_object("other", "liar", json!({}), "n2", &all))]);
    assert_eq!(world.mind.counts().1 - before, 2);
    assert!(world.asks("10.244.9.0", DB, "5432") && !world.asks("10.244.9.1", DB, "5432"));
}

/// Each packet meets what each of them allows: where that is nothing, it meets nothing.
#[test]
fn many_small_policies_are_few_for_a_packet() {
    let mut world = World::new();
    world.mind.rules_max = 200;
    let small = |n: usize| {
        (0..n).map(|it| {
            policy(
                "shop",
                &format!("small-{it:04}"),
                db(&json!({"ingress": [{"ports": [{"port": it, "protocol": "TCP"}]}]})),
            )
        })
    };
    let nothing = (0..500).map(|it| policy("shop", &format!("nothing-{it:03}"), db(&json!({}))));
    world.tell(small(500).chain(nothing));
    let n_jumps = |world: &World| {
        let jumps = |it: &Change| matches!(it, Change::Rule(chain, terms) if chain.starts_with("group/") && matches!(terms.last(), Some(Term::Jump(_))));
        world.mind.whole().iter().filter(|it| jumps(it)).count()
    };
    // Of 18 each: its rule, its port, and that packets are led to it.
    assert_eq!(n_jumps(&world), 11);
    assert!(world.asks(FAR, DB, "3") && !world.asks(FAR, DB, "400") && !world.asks(FAR, DB, "9000"));

    world.tell((0..11).map(|it| Event::PolicyGone(Key::new("shop", format!("small-{it:04}")))));
    assert_eq!(n_jumps(&world), 0);
    for _ in 0..3 {
        world.tell([Event::Look]);
    }
    assert_eq!(n_jumps(&world), 3, "those that are tried again are led to");
    world.tell((0..500).map(|it| Event::PolicyGone(Key::new("shop", format!("nothing-{it:03}")))));
    world.tell((0..500).map(|it| Event::PolicyGone(Key::new("shop", format!("small-{it:04}")))));
    assert!(world.asks(FAR, DB, "9000"), "nobody isolates it any more");
}
