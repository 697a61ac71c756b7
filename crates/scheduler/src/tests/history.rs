//! Random histories: nodes and pods come, change and go in any order, bindings succeed, fail or are overtaken.
//!
//! Whatever happens, what the scheduler itself placed never overcommits a node, and the columns that deltas made are those
//! that a rebuild makes; and who could have a node, or evict others from one, is not left waiting until time alone helps.

use std::{collections::BTreeMap, time::Duration};

use corten_meta::{Key, Retry, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{node, pod};
use crate::{
    Advice, Config, Consultation, Effect, Event, Eviction, Extender, ExtenderFailure, NodeAdvice, Pending, PodInfo,
    Profile, Question, Scheduler, Snapshot, cycle::Cycle, entry::PodState, observer::Unobserved,
    preemption::Preemption,
};

/// So many ticks at one time place all that can be placed, or show that it is not so.
const TICKS_MAX: usize = 20;

#[derive(Clone, Debug)]
enum Happening {
    Node {
        name: u8,
        cpu: u8,
        pods: u8,
        tainted: bool,
    },
    NodeGone {
        name: u8,
    },
    Pod {
        name: u8,
        cpu: u8,
        port: bool,
        gated: bool,
        company: Company,
        priority: u8,
    },
    /// The oldest eviction under way is taken, or refused.
    Evicted {
        is_taken: bool,
    },
    PodGone {
        name: u8,
    },
    PodFinished {
        name: u8,
    },
    /// The oldest binding under way is taken, seen by the watch before or after its answer.
    Taken {
        watch_first: bool,
    },
    Refused,
    /// The extender answers what it was asked first, if there is one.
    Advised {
        how: Advising,
    },
    /// A pod's old copy is delivered once more.
    Again {
        name: u8,
    },
    Tick {
        millis: u16,
    },
}

/// What an extender makes of a question.
#[derive(Clone, Copy, Debug)]
enum Advising {
    /// All that it was asked about will do.
    All,
    /// Of nodes and of victims' nodes, the first will not.
    Fewer,
    None,
    /// It names what it was not asked about.
    Lies,
    Fails,
}

fn advising() -> impl Strategy<Value = Advising> {
    prop_oneof![3 => Just(Advising::All), 2 => Just(Advising::Fewer), 1 => Just(Advising::None),
        1 => Just(Advising::Lies), 2 => Just(Advising::Fails)]
}

fn company() -> impl Strategy<Value = Company> {
    prop_oneof![Just(Company::Any), Just(Company::Apart), Just(Company::Together), Just(Company::Spread)]
}

fn happening() -> impl Strategy<Value = Happening> {
    let (nodes, pods) = (0..5_u8, 0..12_u8);
    prop_oneof![
        (nodes.clone(), 1..8_u8, 1..6_u8, any::<bool>()).prop_map(|(name, cpu, pods, tainted)| Happening::Node {
            name,
            cpu,
            pods,
            tainted
        }),
        nodes.prop_map(|name| Happening::NodeGone { name }),
        (pods.clone(), 0..5_u8, any::<bool>(), prop::bool::weighted(0.1), company(), 0..3_u8).prop_map(
            |(name, cpu, port, gated, company, priority)| Happening::Pod { name, cpu, port, gated, company, priority }
        ),
        prop::bool::weighted(0.8).prop_map(|is_taken| Happening::Evicted { is_taken }),
        pods.clone().prop_map(|name| Happening::PodGone { name }),
        pods.clone().prop_map(|name| Happening::PodFinished { name }),
        any::<bool>().prop_map(|watch_first| Happening::Taken { watch_first }),
        Just(Happening::Refused),
        advising().prop_map(|how| Happening::Advised { how }),
        pods.prop_map(|name| Happening::Again { name }),
        (0..5000_u16).prop_map(|millis| Happening::Tick { millis }),
        (0..5000_u16).prop_map(|millis| Happening::Tick { millis }),
    ]
}

/// What a pod wants of the others, by zone; each kind but the first knows only its own.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Company {
    Any,
    /// Never two of them in a zone.
    Apart,
    /// All of them in one zone.
    Together,
    /// At most one more than in any other zone.
    Spread,
}

impl Company {
    fn spec(self) -> Value {
        let selector = json!({ "matchLabels": { "company": format!("{self:?}") } });
        let term = json!([{ "topologyKey": "zone", "labelSelector": selector }]);
        let term = json!({ "requiredDuringSchedulingIgnoredDuringExecution": term });
        match self {
            Self::Any => json!({}),
            Self::Apart => json!({ "affinity": { "podAntiAffinity": term } }),
            Self::Together => json!({ "affinity": { "podAffinity": term } }),
            Self::Spread => json!({ "topologySpreadConstraints": [{ "topologyKey": "zone", "maxSkew": 1,
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector }] }),
        }
    }
}

/// Nodes keep their zone for good.
fn zone_of(node: &str) -> &'static str {
    if matches!(node, "n0" | "n1" | "n2") { "a" } else { "b" }
}

/// The cluster as the API server knows it.
struct Oracle {
    scheduler: Scheduler,
    now: Time,
    nodes: BTreeMap<String, Value>,
    pods: BTreeMap<String, Value>,
    under_way: Vec<(String, String, String)>,
    evictions: Vec<Eviction>,
    questions: Vec<Consultation>,
    n_made: usize,
}

impl Oracle {
    fn new(extenders: Vec<Extender>) -> Self {
        // Nobody is tried again for time alone: what happens must be enough.
        let unschedulable_retry = Duration::from_secs(1_000_000);
        let scheduler = Scheduler::new(Config { seed: 7, extenders, unschedulable_retry, ..Config::default() });
        let (nodes, pods) = (BTreeMap::new(), BTreeMap::new());
        let (now, under_way, evictions) = (Time::from_unix_seconds(1_000_000), Vec::new(), Vec::new());
        Self { scheduler, now, nodes, pods, under_way, evictions, questions: Vec::new(), n_made: 0 }
    }

    fn has_extender(&self) -> bool {
        !self.scheduler.config().extenders.is_empty()
    }

    /// Answers whether pods are to be tried at once.
    fn step(&mut self, event: Event) -> bool {
        let (mut is_more, now) = (false, self.now);
        let mut evictions: BTreeMap<Key, Vec<Eviction>> = BTreeMap::new();
        for effect in self.scheduler.step(event, self.now) {
            match effect {
                Effect::Bind { pod, uid, node, .. } => {
                    self.check_room(&pod.name, &node);
                    self.under_way.push((pod.name, uid, node));
                }
                Effect::Evict(it) => evictions.entry(it.preemptor.clone()).or_default().push(*it),
                Effect::WakeAt(at) => is_more |= at <= now,
                Effect::Consult(it) => self.questions.push(*it),
                _ => {}
            }
        }
        for (preemptor, evictions) in evictions {
            self.check_evictions(&preemptor, &evictions);
            self.evictions.extend(evictions);
        }
        is_more
    }

    /// Places all that can be now. Whoever wakes others by a try in vain does not do so for ever.
    fn tick(&mut self) {
        for _ in 0..TICKS_MAX {
            if !self.step(Event::Tick) {
                return;
            }
        }
        panic!("pods are tried without end");
    }

    /// Whoever is evicted matters less; as much room as is asked for is there once all have left, and not before.
    fn check_evictions(&self, preemptor: &Key, evictions: &[Eviction]) {
        let preemptor = &self.scheduler.pods[preemptor].info;
        let node = &evictions[0].node;
        let victims: Vec<Key> = evictions.iter().map(Eviction::victim_key).collect();
        let here: Vec<_> = self.scheduler.placed().filter(|it| it.2 == node).collect();
        for victim in &victims {
            let found = here.iter().find(|it| it.0 == victim).unwrap_or_else(|| panic!("{victim} is not on {node}"));
            assert!(found.1.priority < preemptor.priority, "{victim} is evicted for {}", preemptor.key);
        }
        let has_room = |returned: Option<&Key>| {
            let mut snapshot = Snapshot::default();
            for object in self.nodes.values() {
                snapshot.set_node(&serde_json::from_value(object.clone()).expect("it is a node"));
            }
            for (key, info, node) in self.scheduler.placed() {
                if !victims.contains(key) || Some(key) == returned {
                    snapshot.add_pod(node, key, info);
                }
            }
            let row = snapshot.row(node).expect("it was chosen");
            self.scheduler.cycle.fits(preemptor, row, &snapshot, &Profile::default())
        };
        // Where company decides, pods that the same tick has placed since may decide otherwise.
        let is_any = preemptor.labels["company"] == "Any";
        assert!(!is_any || has_room(None), "{} does not fit {node} though its victims leave", preemptor.key);
        // Others that wait for room take some.
        let is_alone =
            is_any && self.scheduler.pods.values().all(|it| it.nominated.is_empty() || it.info.key == preemptor.key);
        // An extender answers of the node as it was when it was asked.
        for victim in victims.iter().filter(|_| is_alone && !self.has_extender()) {
            assert!(!has_room(Some(victim)), "{victim} is evicted for nothing");
        }
    }

    /// The oldest eviction is taken: the pod is deleted, and gone at once.
    fn end_eviction(&mut self, is_taken: bool) {
        if self.evictions.is_empty() {
            return;
        }
        let eviction = self.evictions.remove(0);
        let name = eviction.victim.name.clone();
        let is_there = self.pods.get(&name).is_some_and(|it| it["metadata"]["uid"] == *eviction.victim.uid);
        let eviction = Box::new(eviction);
        if is_taken && is_there {
            self.pods.remove(&name);
            self.step(Event::Evicted { eviction });
            self.step(Event::PodGone(key(&name)));
        } else {
            self.step(Event::EvictionFailed { eviction, message: "not found".into() });
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Node { name, cpu, pods, tainted } => {
                let taints = if tainted { json!([{ "key": "x", "effect": "NoSchedule" }]) } else { json!([]) };
                let object = json!({ "metadata": { "name": format!("n{name}"), "labels": { "zone": zone_of(&format!("n{name}")) } }, "spec": { "taints": taints },
                    "status": { "allocatable": { "cpu": cpu.to_string(), "memory": "8Gi", "pods": pods.to_string() } } });
                self.nodes.insert(format!("n{name}"), object.clone());
                self.step(node(&object));
            }
            Happening::NodeGone { name } => {
                if self.nodes.remove(&format!("n{name}")).is_some() {
                    self.step(Event::NodeGone(format!("n{name}")));
                }
            }
            Happening::Pod { name, cpu, port, gated, company, priority } => {
                self.make_pod(&format!("p{name}"), (cpu, priority), port, gated, company);
            }
            Happening::Evicted { is_taken } => self.end_eviction(is_taken),
            Happening::PodGone { name } => {
                if self.pods.remove(&format!("p{name}")).is_some() {
                    self.step(Event::PodGone(key(&format!("p{name}"))));
                }
            }
            Happening::PodFinished { name } => {
                if let Some(object) = self.pods.get_mut(&format!("p{name}")) {
                    object["status"]["phase"] = json!("Succeeded");
                    self.deliver(&format!("p{name}"));
                }
            }
            Happening::Taken { watch_first } => self.take_binding(watch_first),
            Happening::Refused => {
                if let Some((name, uid, _)) = self.next_binding() {
                    let (retry, message) = (Retry::After, "busy".to_owned());
                    self.step(Event::BindFailed { pod: key(&name), uid, retry, message });
                }
            }
            Happening::Advised { how } => self.advise(how),
            Happening::Again { name } => self.deliver(&format!("p{name}")),
            Happening::Tick { millis } => {
                self.now = self.now.after(Duration::from_millis(millis.into()));
                self.tick();
            }
        }
    }

    fn advise(&mut self, how: Advising) {
        if self.questions.is_empty() {
            return;
        }
        let Consultation { pod, id, question, .. } = self.questions.remove(0);
        let advice = match question {
            Question::Nodes { mut nodes, .. } => {
                match how {
                    Advising::Fewer => drop(nodes.remove(0)),
                    Advising::None => nodes.clear(),
                    Advising::Lies => nodes = self.nodes.keys().cloned().chain(["nowhere".into()]).collect(),
                    Advising::All | Advising::Fails => {}
                }
                Advice::Nodes(NodeAdvice { nodes, ..NodeAdvice::default() })
            }
            Question::Victims { mut candidates, .. } => {
                match how {
                    Advising::Fewer => drop(candidates.remove(0)),
                    Advising::None => candidates.clear(),
                    Advising::Lies => candidates.iter_mut().for_each(|it| it.node = "nowhere".into()),
                    Advising::All | Advising::Fails => {}
                }
                Advice::Victims(candidates)
            }
        };
        let failure = ExtenderFailure { extender: 0, message: "no answer within 5s".into() };
        let answer = if matches!(how, Advising::Fails) { Err(failure) } else { Ok(advice) };
        self.step(Event::Advised { pod, id, answer });
    }

    /// A pod that is there already keeps its spec, as pods do, but may lose its gate.
    fn make_pod(&mut self, name: &str, (cpu, priority): (u8, u8), port: bool, gated: bool, company: Company) {
        self.n_made += 1;
        let uid = format!("uid-{}", self.n_made);
        let ports = if port { json!([{ "containerPort": 80, "hostPort": 80 }]) } else { json!([]) };
        let gates = if gated { json!([{ "name": "g" }]) } else { json!([]) };
        let container = json!({ "resources": { "requests": { "cpu": cpu.to_string() } }, "ports": ports });
        let labels = json!({ "company": format!("{company:?}") });
        let mut new = json!({ "metadata": { "name": name, "namespace": "default", "uid": uid, "labels": labels },
            "spec": company.spec() });
        new["spec"]["containers"] = json!([container]);
        new["spec"]["schedulingGates"] = gates;
        new["spec"]["priority"] = priority.into();
        let object = self.pods.entry(name.to_owned()).or_insert(new);
        if !gated {
            object["spec"]["schedulingGates"] = json!([]);
        }
        self.deliver(name);
    }

    fn deliver(&mut self, name: &str) {
        if let Some(object) = self.pods.get(name).cloned() {
            self.step(pod(&object));
        }
    }

    /// The oldest binding under way whose pod is still there to be bound; others are refused on the way.
    fn next_binding(&mut self) -> Option<(String, String, String)> {
        while !self.under_way.is_empty() {
            let binding = self.under_way.remove(0);
            let is_there = self.pods.get(&binding.0).is_some_and(|it| it["metadata"]["uid"] == *binding.1);
            if is_there {
                return Some(binding);
            }
            let (retry, message) = (Retry::Never, "not found".to_owned());
            self.step(Event::BindFailed { pod: key(&binding.0), uid: binding.1, retry, message });
        }
        None
    }

    fn take_binding(&mut self, watch_first: bool) {
        let Some((name, uid, node)) = self.next_binding() else { return };
        let object = self.pods.get_mut(&name).expect("next_binding checks that it is there");
        object["spec"]["nodeName"] = json!(node);
        let bound = Event::Bound { pod: key(&name), uid, node };
        if watch_first {
            self.deliver(&name);
            self.step(bound);
        } else {
            self.step(bound);
            self.deliver(&name);
        }
    }

    /// At the moment of a placement the node is known, untainted, and has room for all that the scheduler put there.
    fn check_room(&self, pod: &str, name: &str) {
        let node = self.nodes.get(name).unwrap_or_else(|| panic!("{pod} was placed on {name}, which is gone"));
        assert_eq!(node["spec"]["taints"], json!([]), "{pod} was placed on {name}, which is tainted");
        let allocatable = |resource: &str| -> i64 {
            node["status"]["allocatable"][resource].as_str().and_then(|it| it.parse().ok()).expect("a whole number")
        };
        let here: Vec<_> = self.scheduler.placed().filter(|it| it.2 == name).collect();
        let cpu_millis: i64 = here.iter().map(|it| it.1.requested.cpu_millis).sum();
        let asks = here.iter().find(|it| it.0.name == pod).is_some_and(|it| it.1.requested.cpu_millis > 0);
        assert!(!asks || cpu_millis <= allocatable("cpu") * 1000, "{pod} overcommits {name}");
        let n_pods = i64::try_from(here.len()).expect("few");
        assert!(n_pods <= allocatable("pods"), "{pod} is one pod too many for {name}");
        let n_ports = here.iter().filter(|it| !it.1.ports.is_empty()).count();
        let has_port = here.iter().any(|it| it.0.name == pod && !it.1.ports.is_empty());
        assert!(!has_port || n_ports == 1, "{pod} shares its port on {name}");
        self.check_company(pod, name);
    }

    /// At the moment of a placement its zone is one where the pod's company allows it, whatever else may be wrong by now.
    fn check_company(&self, pod: &str, node: &str) {
        let company = self.pods.get(pod).map(|it| it["metadata"]["labels"]["company"].clone()).unwrap_or_default();
        let known = |name: &str| self.nodes.contains_key(name);
        let count = |zone: &str, others_only: bool| {
            let placed = self.scheduler.placed().filter(|it| known(it.2) && zone_of(it.2) == zone);
            placed.filter(|it| company == *it.1.labels["company"] && !(others_only && it.0.name == pod)).count()
        };
        let here = zone_of(node);
        let there = if here == "a" { "b" } else { "a" };
        match company.as_str() {
            Some("Apart") => assert_eq!(count(here, true), 0, "{pod} is not alone in zone {here}"),
            Some("Together") => {
                let is_near = count(here, true) > 0 || count(there, true) == 0;
                assert!(is_near, "{pod} is far from its like");
            }
            Some("Spread") if self.nodes.keys().any(|it| zone_of(it) == there) => {
                assert!(count(here, false) <= count(there, false) + 1, "{pod} is one too many in zone {here}");
            }
            _ => {}
        }
    }

    fn check_columns(&self) {
        let mut rebuilt = Snapshot::default();
        for object in self.nodes.values() {
            rebuilt.set_node(&serde_json::from_value(object.clone()).expect("it is a node"));
        }
        for (key, info, node) in self.scheduler.placed() {
            rebuilt.add_pod(node, key, info);
        }
        for (key, entry) in self.scheduler.pods.iter().filter(|it| !it.1.nominated.is_empty()) {
            assert_eq!(entry.place, PodState::Waiting, "{key} keeps room for nothing");
            rebuilt.nominate(&entry.nominated, key, &entry.info);
        }
        let counts = &self.scheduler.snapshot().topology_pod_counts;
        rebuilt.count_by(counts.keys(), false);
        assert_eq!(counts.dump(), rebuilt.topology_pod_counts.dump());
        assert_eq!(self.scheduler.snapshot().dump(), rebuilt.dump());
        assert_eq!(self.scheduler.snapshot().n_nodes(), self.nodes.len());
        self.check_queue();
    }

    /// Each pod that waits does so in one queue, and none that does not.
    fn check_queue(&self) {
        let Pending { active, backoff, unschedulable, gated } = self.scheduler.pending();
        let in_flight = |key: &&Key| self.scheduler.queue.is_in_flight(key);
        let waiting = self.scheduler.pods.iter().filter(|it| it.1.place == PodState::Waiting).map(|it| it.0);
        assert_eq!(active + backoff + unschedulable + gated, waiting.filter(|it| !in_flight(it)).count());
        let assumed = self.scheduler.pods.iter().filter(|it| matches!(it.1.place, PodState::Assumed(_)));
        assumed.for_each(|it| assert!(in_flight(&it.0), "{} is still being tried", it.0));
    }

    /// Everything under way is taken, and back-offs end: then no pod may be left that fits, or could evict others.
    fn settle(&mut self) {
        if self.has_extender() {
            // Who was turned down by an extender waits for anything to happen.
            for mut object in self.nodes.values().cloned().collect::<Vec<Value>>() {
                object["metadata"]["labels"]["beat"] = "1".into();
                self.nodes.insert(object["metadata"]["name"].as_str().unwrap_or_default().to_owned(), object.clone());
                self.step(node(&object));
            }
        }
        for _ in 0..60 {
            self.now = self.now.after(Duration::from_secs(11));
            self.tick();
            while !self.questions.is_empty() {
                self.advise(Advising::All);
            }
            while !self.under_way.is_empty() {
                self.take_binding(false);
            }
            while !self.evictions.is_empty() {
                self.end_eviction(true);
            }
        }
        let waiting = self.pods.values().filter(|it| {
            it["spec"]["nodeName"].is_null()
                && it["spec"]["schedulingGates"] == json!([])
                && it["status"]["phase"].is_null()
        });
        for object in waiting {
            self.check_waits_for_a_reason(&PodInfo::new(&serde_json::from_value(object.clone()).expect("it is a pod")));
        }
    }

    /// Another try at a pod that waits would find it no node, and nobody to evict.
    fn check_waits_for_a_reason(&self, info: &PodInfo) {
        let (snapshot, profile, mut cycle) = (&self.scheduler.snapshot, &Profile::default(), Cycle::new(0));
        if let Ok(idx) = cycle.run(info, snapshot, profile, None, &Unobserved) {
            panic!("{} waits, but fits {}", info.key, snapshot.row_at(idx).name);
        }
        let (pods, budgets) = (&self.scheduler.pods, &self.scheduler.budgets);
        let preemption = Preemption { pod: info, snapshot, profile, pods, budgets };
        if let Ok(candidates) = preemption.find(cycle.resolvable(), 0) {
            let names: Vec<&str> = candidates.iter().map(|it| snapshot.row_at(it.node_idx).name).collect();
            panic!("{} waits, but could evict others from {names:?}", info.key);
        }
    }
}

fn key(name: &str) -> Key {
    Key::new("default", name)
}

fn play(mut truth: Oracle, happenings: Vec<Happening>) {
    for happening in happenings {
        truth.happen(happening);
        truth.check_columns();
    }
    truth.settle();
    truth.check_columns();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_overcommits_and_columns_are_exact(happenings in prop::collection::vec(happening(), 1..120)) {
        play(Oracle::new(Vec::new()), happenings);
    }

    #[test]
    fn an_extender_that_fails_and_lies_breaks_nothing(happenings in prop::collection::vec(happening(), 1..120)) {
        let verb = || "asked".to_owned();
        let extender = Extender { filter_verb: verb(), prioritize_verb: verb(), preempt_verb: verb(), ..Extender::default() };
        play(Oracle::new(vec![extender]), happenings);
    }
}
