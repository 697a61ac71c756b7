//! Objects that come and go as a seed says: what the rules let through is what the objects say.

use serde_json::{Value as Json, json};

use super::{
    kernel::{Kernel, Packet},
    oracle::Cluster,
    *,
};

/// A generator of its own: floors below 3 have no random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).expect("31 bits") % n
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

const NAMESPACES: [&str; 3] = ["a", "b", "c"];
const NAMES: [&str; 4] = ["w", "x", "y", "z"];
const VALUES: [&str; 3] = ["1", "2", "3"];
const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
const PORTS: [&str; 3] = ["http", "dns", "none"];

fn labels(dice: &mut Dice) -> Json {
    json!({"p": dice.of(&VALUES), "q": dice.of(&VALUES)})
}

fn selector(dice: &mut Dice) -> Json {
    match dice.below(4) {
        0 => json!({}),
        1 => json!({"matchLabels": {"p": dice.of(&VALUES)}}),
        2 => json!({"matchExpressions": [{"key": "q", "operator": "NotIn", "values": [dice.of(&VALUES)]}]}),
        _ => json!({"matchLabels": {"q": dice.of(&VALUES)}, "matchExpressions": [{"key": "p", "operator": "Exists"}]}),
    }
}

fn peer(dice: &mut Dice) -> Json {
    match dice.below(5) {
        0 => json!({"podSelector": selector(dice)}),
        1 => json!({"namespaceSelector": selector(dice)}),
        2 => json!({"namespaceSelector": selector(dice), "podSelector": selector(dice)}),
        3 => json!({"ipBlock": {"cidr": dice.of(&["10.244.0.0/23", "0.0.0.0/0", "192.0.2.0/24"]),
            "except": [dice.of(&["10.244.0.0/29", "10.244.1.0/24", "192.0.2.4/30"])]}}),
        _ => json!({"ipBlock": {"cidr": dice.of(&["fd00::/64", "::/0", "fd00::4/126"])}}),
    }
}

fn port(dice: &mut Dice) -> Json {
    let protocol = dice.of(&PROTOCOLS);
    match dice.below(4) {
        0 => json!({ "protocol": protocol }),
        1 => json!({"protocol": protocol, "port": dice.below(4) + 1}),
        2 => json!({"protocol": protocol, "port": dice.below(2) + 1, "endPort": dice.below(2) + 3}),
        _ => json!({"protocol": protocol, "port": dice.of(&PORTS)}),
    }
}

fn some(dice: &mut Dice, most: usize, make: impl Fn(&mut Dice) -> Json) -> Vec<Json> {
    let n = dice.below(most + 1);
    (0..n).map(|_| make(dice)).collect()
}

fn policy_spec(dice: &mut Dice) -> Json {
    let types = [json!(["Ingress"]), json!(["Egress"]), json!(["Ingress", "Egress"])];
    let mut spec = json!({"podSelector": selector(dice), "policyTypes": types[dice.below(3)]});
    for (direction, peers) in [("ingress", "from"), ("egress", "to")] {
        spec[direction] = some(dice, 2, |it| json!({peers: some(it, 2, peer), "ports": some(it, 2, port)})).into();
    }
    spec
}

/// Where a Pod is, by the number that its name and namespace make.
fn place(namespace: &str, name: &str) -> (&'static str, [String; 2]) {
    let at = |all: &[&str], it: &str| all.iter().position(|other| *other == it).expect("one of them");
    let n = at(&NAMESPACES, namespace) * NAMES.len() + at(&NAMES, name);
    let (node, net) = if n.is_multiple_of(3) { ("n2", 1) } else { ("n1", 0) };
    (node, [format!("10.244.{net}.{}", n + 2), format!("fd00::{net}:{:x}", n + 2)])
}

struct Play {
    dice: Dice,
    cluster: Cluster,
    mind: NetworkPolicies,
    kernel: Kernel,
    /// How many Pods there were of each name: each has a uid of its own.
    n_made: usize,
    /// There is no room for all policies.
    is_crowded: bool,
    pod_match: PodMatch,
}

impl Play {
    fn new(seed: u64, is_crowded: bool, pod_match: PodMatch) -> Self {
        let mut mind = NetworkPolicies::new("n1").with_pod_match(pod_match);
        if is_crowded {
            mind.room = 300;
        }
        let dice = Dice(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let mut this = Self {
            dice,
            cluster: Cluster::default(),
            mind,
            kernel: Kernel::default(),
            n_made: 0,
            is_crowded,
            pod_match,
        };
        this.kernel.apply(&this.mind.whole());
        this
    }

    /// Some events at once, and whether a policy was closed by them.
    fn step(&mut self, seed: u64) -> bool {
        let n = self.dice.below(5) + 1;
        let mut events: Vec<Event> = (0..n).filter_map(|_| self.event()).collect();
        events.extend(self.dice.one_in(4).then_some(Event::Look));
        let step = self.mind.step(events);
        self.kernel.apply(&step.changes);
        let mut whole = Kernel::default();
        whole.apply(&self.mind.whole());
        assert_eq!(self.kernel, whole, "seed {seed}");
        self.compare(seed);
        step.decisions.iter().any(|it| it.1.waits.iter().any(|it| it.reason == "TooManyPeers"))
    }

    fn event(&mut self) -> Option<Event> {
        let dice = &mut self.dice;
        let (namespace, name) = (dice.of(&NAMESPACES), dice.of(&NAMES));
        let key = Key::new(namespace, name);
        match dice.below(12) {
            0 if dice.one_in(4) => {
                self.cluster.namespaces.remove(namespace);
                Some(Event::NamespaceGone(namespace.to_owned()))
            }
            0 | 1 => {
                let labels = labels(dice);
                let made = super::namespace(namespace, labels.clone());
                let labels = serde_json::from_value(labels).expect("labels");
                self.cluster.namespaces.insert(namespace.to_owned(), labels);
                Some(made)
            }
            2..=4 => Some(self.pod(&key)),
            5 => self.gone(key),
            6 | 7 => self.plug(&key),
            8..=10 => {
                let Event::Policy(policy) = super::policy(namespace, name, policy_spec(dice)) else { return None };
                self.cluster.policies.insert(key, (*policy).clone());
                Some(Event::Policy(policy))
            }
            _ => {
                self.cluster.policies.remove(&key);
                Some(Event::PolicyGone(key))
            }
        }
    }

    /// A Pod that is new, or other labels, ports and phase of one that is there.
    fn pod(&mut self, key: &Key) -> Event {
        let (node, addresses) = place(&key.namespace, &key.name);
        self.n_made += 1;
        let before = self.cluster.pods.get(key).map(|it| it.metadata.uid.clone());
        let uid = before.unwrap_or_else(|| format!("u{}", self.n_made));
        let dice = &mut self.dice;
        let ports = json!([
            {"name": "http", "containerPort": dice.below(4) + 1, "protocol": dice.of(&PROTOCOLS)},
            {"name": "dns", "containerPort": dice.below(4) + 1, "protocol": dice.of(&PROTOCOLS)},
        ]);
        let phase = if dice.one_in(8) { "Succeeded" } else { "Running" };
        let object = json!({
            "metadata": {"name": key.name, "namespace": key.namespace, "uid": uid, "labels": labels(dice)},
            "spec": {"nodeName": node, "hostNetwork": node == "n2" && dice.one_in(6), "containers": [{ "ports": ports }]},
            "status": {"phase": phase, "podIPs": addresses.map(|it| json!({ "ip": it }))},
        });
        let pod: Pod = serde_json::from_value(object).expect("a pod");
        self.cluster.pods.insert(key.clone(), pod.clone());
        Event::Pod(Box::new(pod))
    }

    /// One that is plugged in is unplugged first.
    fn gone(&mut self, key: Key) -> Option<Event> {
        if self.cluster.plugged.contains_key(&key) {
            return self.plug(&key);
        }
        self.cluster.pods.remove(&key);
        Some(Event::PodGone(key))
    }

    fn plug(&mut self, key: &Key) -> Option<Event> {
        let sandbox = format!("{}-{}", key.namespace, key.name);
        if self.cluster.plugged.remove(key).is_some() {
            return Some(Event::Unplugged(sandbox));
        }
        let uid = self.cluster.pods.get(key).filter(|it| it.spec.node_name == "n1")?.metadata.uid.clone();
        let (_, addresses) = place(&key.namespace, &key.name);
        let addresses: Vec<IpAddr> = addresses.iter().map(|it| it.parse().expect("an address")).collect();
        self.cluster.plugged.insert(key.clone(), addresses.clone());
        Some(Event::Plugged(PodSandbox { sandbox, pod: key.clone(), uid, addresses, labels: None }))
    }

    fn compare(&mut self, seed: u64) {
        let pods = NAMESPACES.iter().flat_map(|namespace| NAMES.iter().map(|name| place(namespace, name)));
        let pods: Vec<(bool, [String; 2])> = pods.map(|(node, at)| (node == "n1", at)).collect();
        let outside = [(false, ["192.0.2.5".to_owned(), "2001:db8::1".to_owned()])];
        let all: Vec<_> = pods.iter().chain(&outside).collect();
        for (from_bridge, from) in &all {
            for (to_bridge, to) in &all {
                for family in 0..2 {
                    let packet = Packet {
                        from: from[family].parse().expect("an address"),
                        to: to[family].parse().expect("an address"),
                        protocol: Protocol::parse(self.dice.of(&PROTOCOLS)).expect("a protocol"),
                        port: u16::try_from(self.dice.below(5) + 1).expect("small"),
                        from_bridge: *from_bridge,
                        to_bridge: *to_bridge,
                    };
                    // Where addresses are all that Pods are known by, one that nobody has is nobody's.
                    let plugged = |it| self.cluster.plugged.values().any(|all| all.contains(&it));
                    let is_nobodys = |is_here: bool, at| is_here && !plugged(at);
                    if self.pod_match == PodMatch::Addresses
                        && (is_nobodys(*from_bridge, packet.from) || is_nobodys(*to_bridge, packet.to))
                    {
                        continue;
                    }
                    let (expected, said) = (self.cluster.lets_through(&packet), self.kernel.lets_through(&packet));
                    // Where there is no room for a policy, it allows less than it says.
                    assert!(said == expected || self.is_crowded && expected, "seed {seed}: {packet:?}");
                }
            }
        }
    }
}

#[test]
fn rules_let_through_what_the_objects_say() {
    for seed in 1..=60 {
        for pod_match in [PodMatch::Bridge, PodMatch::Addresses] {
            let mut play = Play::new(seed, false, pod_match);
            assert!((0..40).all(|_| !play.step(seed)));
        }
    }
}

#[test]
fn without_room_rules_let_through_nothing_that_the_objects_do_not() {
    let mut n_closed = 0;
    for seed in 1..=15 {
        let mut play = Play::new(seed, true, if seed % 2 == 0 { PodMatch::Addresses } else { PodMatch::Bridge });
        n_closed += (0..40).filter(|_| play.step(seed)).count();
    }
    assert!(n_closed > 20, "{n_closed}");
}
