//! The scheduler beside a naive one that keeps nothing and evaluates every rule anew, in upstream's order and arithmetic, on random
//! clusters: the node is feasible and has the best score; where none is, the reasons are the same, and so are the victims.

mod gangs;
mod naive;
mod objects;

use proptest::prelude::*;
use serde_json::{Value, json};

use self::naive::{APPS, Company, Devices, IMAGES, Node, Pod, Requirement, Spread, State, Term, World};
use super::*;

fn of<T: Clone + std::fmt::Debug + 'static>(values: &'static [T]) -> impl Strategy<Value = T> {
    proptest::sample::select(values)
}

fn node_strategy() -> impl Strategy<Value = Node> {
    let place = (of(&[None, Some("a"), Some("b"), Some("b")]), 1..6_i64, 1..6_i64, 2..6_usize);
    let taint = of(&["", "", "", "NoSchedule", "PreferNoSchedule"]);
    let volumes_max =
        prop_oneof![2 => (0..4_usize).prop_map(|it| Some(Some(it))), 3 => Just(Some(None)), 1 => Just(None)];
    let has = (1..5_i64, any::<bool>(), 0..4_usize, volumes_max);
    (place, taint, prop::bool::weighted(0.1), prop::collection::btree_set(0..IMAGES.len(), 0..3), has).prop_map(
        |((zone, cpus, gibs, pods_max), taint, is_cordoned, images, has)| Node {
            zone,
            cpu_millis: cpus * 1000,
            memory_mib: gibs * 1024,
            pods_max,
            taint,
            is_cordoned,
            images,
            cores: has.0,
            has_feature: has.1,
            n_devices: has.2,
            volumes_max: has.3,
        },
    )
}

fn requirements() -> impl Strategy<Value = Vec<Requirement>> {
    let zones = || of(&["a", "b"]);
    let named = prop::collection::vec((0..6_usize).prop_map(Requirement::Named), 1..3);
    let one = prop_oneof![
        zones().prop_map(Requirement::InZone),
        zones().prop_map(Requirement::NotInZone),
        Just(Requirement::HasZone),
        Just(Requirement::HasNoZone),
        (0..5_i64).prop_map(Requirement::MoreCores),
        (1..6_i64).prop_map(Requirement::FewerCores),
        (0..6_usize).prop_map(Requirement::Named),
    ];
    prop_oneof![8 => Just(Vec::new()), 2 => prop::collection::vec(one, 1..3), 1 => named]
}

fn devices() -> impl Strategy<Value = Devices> {
    let one = prop_oneof![2 => (1..3_usize).prop_map(Devices::Own), 1 => (0..6_usize).prop_map(Devices::At)];
    prop_oneof![5 => Just(Devices::None), 1 => one]
}

fn term() -> impl Strategy<Value = Term> {
    let company = of(&[Company::Own, Company::Named("other"), Company::Team("red"), Company::All]);
    let weight = of(&[None, Some(1), Some(40), Some(100)]);
    (any::<bool>(), weight, of(&["zone", "kubernetes.io/hostname"]), of(APPS), company)
        .prop_map(|(is_anti, weight, key, app, company)| Term { is_anti, weight, key, app, company })
}

fn spread() -> impl Strategy<Value = Option<Spread>> {
    let key = of(&["zone", "kubernetes.io/hostname"]);
    let one = (any::<bool>(), key, 1..3_i64).prop_map(|(is_hard, key, max_skew)| Spread { is_hard, key, max_skew });
    prop::option::weighted(0.3, one)
}

fn pod_strategy() -> impl Strategy<Value = Pod> {
    let names = (of(&["default", "default", "other"]), of(APPS));
    let amounts = (of(&[0, 250, 1000, 2000]), of(&[0, 512, 2048]), 0..3_i32, 0..60_i64);
    let wishes = (prop::bool::weighted(0.15), any::<bool>(), prop::option::weighted(0.2, of(&["a", "b"])));
    let prefers = (prop::option::weighted(0.3, (of(&["a", "b"]), 1..100_i64)), prop::option::of(0..IMAGES.len()));
    let terms = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(term(), 0..3)];
    let claims = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(0..6_usize, 1..3)];
    let company = (terms, spread(), requirements());
    let has = (prop::bool::weighted(0.1), claims, devices());
    (names, amounts, wishes, prefers, company, has).prop_map(
        |((namespace, app), (cpu_millis, memory_mib, priority, started), wishes, prefers, company, has)| Pod {
            name: String::new(),
            namespace,
            app,
            cpu_millis,
            memory_mib,
            priority,
            started,
            has_port: wishes.0,
            tolerates: wishes.1,
            zone: wishes.2,
            required: company.2,
            prefers: prefers.0,
            image: prefers.1,
            terms: company.0,
            spread: company.1,
            needs_feature: has.0,
            claims: has.1,
            devices: has.2,
            node: None,
        },
    )
}

fn world_strategy() -> impl Strategy<Value = (World, Pod)> {
    let on_node = || (pod_strategy(), any::<prop::sample::Index>());
    let placed = (prop::collection::vec(on_node(), 0..14), prop::collection::vec(on_node(), 0..3));
    let nodes = prop::collection::vec(node_strategy(), 1..7);
    let around = (any::<bool>(), objects::budgets(), objects::storage());
    (nodes, placed, pod_strategy(), around).prop_map(|(nodes, (placed, nominated), pod, around)| {
        let (has_service, budgets, storage) = around;
        let is_of =
            |pod: &Pod, claim: &usize| storage.claims.get(*claim).is_some_and(|it| it.namespace == pod.namespace);
        let place = |(idx, (mut pod, node)): (usize, (Pod, prop::sample::Index))| {
            let node = node.index(nodes.len());
            // Whoever has a node has its volumes, and its devices there.
            let claims = std::mem::take(&mut pod.claims).into_iter().filter(|it| is_of(&pod, it));
            pod.claims = claims.filter(|it| matches!(storage.claims[*it].state, State::Bound(_))).collect();
            if pod.devices != Devices::None {
                pod.devices = Devices::Own(1);
            }
            Pod { name: format!("p{idx}"), node: Some(node), priority: pod.priority - 1, ..pod }
        };
        let pods: Vec<Pod> = placed.into_iter().enumerate().map(place).collect();
        let nominate = |(idx, (pod, node)): (usize, (Pod, prop::sample::Index))| {
            let (name, node) = (format!("m{idx}"), Some(node.index(nodes.len())));
            Pod { name, node, claims: Vec::new(), devices: Devices::None, ..pod }
        };
        let nominated = nominated.into_iter().enumerate().map(nominate).collect();
        let mut pending = Pod { name: "new".into(), ..pod };
        pending.claims = std::mem::take(&mut pending.claims).into_iter().filter(|it| is_of(&pending, it)).collect();
        pending.claims.dedup();
        if let Devices::At(node) = &mut pending.devices {
            *node %= nodes.len();
        }
        let given = pods.iter().chain([&pending]).cloned().collect();
        (World { nodes, pods, has_service, budgets, storage, nominated, given }, pending)
    })
}

impl Node {
    fn object(&self, idx: usize) -> Value {
        let mut labels = json!({ "kubernetes.io/hostname": format!("n{idx}"), "cores": self.cores.to_string() });
        if let Some(zone) = self.zone {
            labels["zone"] = zone.into();
            labels["topology.kubernetes.io/zone"] = zone.into();
        }
        let taints = if self.taint.is_empty() { json!([]) } else { json!([{ "key": "t", "effect": self.taint }]) };
        let images: Vec<Value> =
            self.images.iter().map(|it| json!({ "names": [IMAGES[*it].0], "sizeBytes": IMAGES[*it].1 })).collect();
        let allocatable = json!({ "cpu": format!("{}m", self.cpu_millis), "memory": format!("{}Mi", self.memory_mib),
            "pods": self.pods_max.to_string() });
        json!({ "metadata": { "name": format!("n{idx}"), "labels": labels },
            "spec": { "taints": taints, "unschedulable": self.is_cordoned },
            "status": { "allocatable": allocatable, "images": images, "declaredFeatures": self.features() } })
    }

    fn features(&self) -> &'static [&'static str] {
        if self.has_feature { &["RestartAllContainersOnContainerExits"] } else { &[] }
    }
}

impl Requirement {
    fn term(&self) -> Value {
        let zone = |operator: &str, values: &[&str]| json!({ "key": "zone", "operator": operator, "values": values });
        let cores =
            |operator: &str, than: i64| json!({ "key": "cores", "operator": operator, "values": [than.to_string()] });
        let expression = match *self {
            Self::InZone(it) => zone("In", &[it]),
            Self::NotInZone(it) => zone("NotIn", &[it]),
            Self::HasZone => zone("Exists", &[]),
            Self::HasNoZone => zone("DoesNotExist", &[]),
            Self::MoreCores(than) => cores("Gt", than),
            Self::FewerCores(than) => cores("Lt", than),
            Self::Named(idx) => {
                let name = json!({ "key": "metadata.name", "operator": "In", "values": [format!("n{idx}")] });
                return json!({ "matchFields": [name] });
            }
        };
        json!({ "matchExpressions": [expression] })
    }
}

impl Term {
    fn object(&self) -> Value {
        let mut term = json!({ "topologyKey": self.key, "labelSelector": { "matchLabels": { "app": self.app } } });
        match self.company {
            Company::Own => {}
            Company::Named(name) => term["namespaces"] = json!([name]),
            Company::Team(team) => term["namespaceSelector"] = json!({ "matchLabels": { "team": team } }),
            Company::All => term["namespaceSelector"] = json!({}),
        }
        self.weight.map_or(term.clone(), |weight| json!({ "weight": weight, "podAffinityTerm": term }))
    }
}

impl Pod {
    fn object(&self) -> Value {
        let mut requests = json!({});
        if self.cpu_millis > 0 {
            requests["cpu"] = format!("{}m", self.cpu_millis).into();
        }
        if self.memory_mib > 0 {
            requests["memory"] = format!("{}Mi", self.memory_mib).into();
        }
        let mut container = json!({ "name": "c", "resources": { "requests": requests } });
        if self.has_port {
            container["ports"] = json!([{ "containerPort": 80, "hostPort": 80 }]);
        }
        if self.needs_feature {
            container["restartPolicyRules"] = json!([{ "action": "RestartAllContainers" }]);
        }
        if let Some(image) = self.image {
            container["image"] = IMAGES[image].0.into();
        }
        let mut spec = json!({ "priority": self.priority, "containers": [container], "affinity": self.affinity() });
        if self.tolerates {
            spec["tolerations"] = json!([{ "key": "t", "operator": "Exists" }]);
        }
        if let Some(zone) = self.zone {
            spec["nodeSelector"] = json!({ "zone": zone });
        }
        if let Some(it) = &self.spread {
            let when = if it.is_hard { "DoNotSchedule" } else { "ScheduleAnyway" };
            spec["topologySpreadConstraints"] = json!([{ "topologyKey": it.key, "maxSkew": it.max_skew,
                "whenUnsatisfiable": when, "labelSelector": { "matchLabels": { "app": self.app } } }]);
        }
        let volume = |it: &usize| json!({ "name": format!("c{it}"), "persistentVolumeClaim": { "claimName": format!("c{it}") } });
        spec["volumes"] = self.claims.iter().map(volume).collect();
        if self.devices != Devices::None {
            spec["resourceClaims"] = json!([{ "name": "r", "resourceClaimName": format!("rc-{}", self.name) }]);
        }
        if let Some(node) = self.node {
            spec["nodeName"] = format!("n{node}").into();
        }
        let started = format!("2026-11-20T11:{:02}:00Z", self.started);
        json!({ "metadata": { "name": self.name, "namespace": self.namespace, "uid": self.name, "labels": { "app": self.app } },
            "spec": spec, "status": { "startTime": started } })
    }

    fn affinity(&self) -> Value {
        let terms = |is_anti: bool, is_required: bool| -> Vec<Value> {
            let found = self.terms.iter().filter(|it| it.is_anti == is_anti && it.weight.is_none() == is_required);
            found.map(Term::object).collect()
        };
        let of = |is_anti| {
            json!({ "requiredDuringSchedulingIgnoredDuringExecution": terms(is_anti, true),
                "preferredDuringSchedulingIgnoredDuringExecution": terms(is_anti, false) })
        };
        let mut affinity = json!({ "podAffinity": of(false), "podAntiAffinity": of(true) });
        if !self.required.is_empty() {
            let terms: Vec<Value> = self.required.iter().map(|it| it.term()).collect();
            affinity["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] =
                json!({ "nodeSelectorTerms": terms });
        }
        if let Some((zone, weight)) = self.prefers {
            let expression = json!({ "key": "zone", "operator": "In", "values": [zone] });
            affinity["nodeAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] =
                json!([{ "weight": weight, "preference": { "matchExpressions": [expression] } }]);
        }
        affinity
    }
}

/// What the scheduler does with the pod in the world, and the node that it has for it.
fn scheduled(world: &World, pending: &Pod) -> (Vec<Effect>, Option<String>) {
    let now = Time::from_unix_seconds(1_800_000_000);
    let mut scheduler = Scheduler::new(Config::default());
    for (name, team) in [("default", "blue"), ("other", "red")] {
        let namespace = json!({ "metadata": { "name": name, "labels": { "team": team } } });
        scheduler.step(of_cluster::<Namespace>(&namespace), now);
    }
    if world.has_service {
        let service = json!({ "metadata": { "name": "web", "namespace": "default" }, "spec": { "selector": { "app": APPS[0] } } });
        scheduler.step(of_cluster::<Service>(&service), now);
    }
    let of_nodes = world.nodes.iter().enumerate().flat_map(|(idx, it)| it.events(idx));
    let objects = world.storage.events().into_iter().chain(world.device_events(pending)).chain(world.budget_events());
    objects.chain(of_nodes).for_each(|it| drop(scheduler.step(it, now)));
    world.nodes.iter().enumerate().for_each(|(idx, it)| drop(scheduler.step(node(&it.object(idx)), now)));
    world.pods.iter().for_each(|it| drop(scheduler.step(pod(&it.object()), now)));
    for it in &world.nominated {
        let mut waiting = it.object();
        waiting["status"]["nominatedNodeName"] = std::mem::replace(&mut waiting["spec"]["nodeName"], json!(""));
        waiting["spec"]["schedulingGates"] = json!([{ "name": "example.com/waits" }]);
        scheduler.step(pod(&waiting), now);
    }
    scheduler.step(pod(&pending.object()), now);
    let effects = scheduler.step(Event::Tick, now);
    let placed = scheduler.placed().find(|it| it.0.name == pending.name).map(|it| it.2.to_owned());
    (effects, placed)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn it_decides_as_the_naive_one((world, pending) in world_strategy()) {
        let (effects, bound) = scheduled(&world, &pending);
        let best = world.best_nodes(&pending);
        if !best.is_empty() {
            let names: Vec<String> = best.iter().map(|it| format!("n{it}")).collect();
            prop_assert!(bound.as_ref().is_some_and(|it| names.contains(it)), "{bound:?} is none of {names:?}");
            return Ok(());
        }
        prop_assert_eq!(bound, None);
        let told = effects.iter().find_map(|it| match it {
            Effect::Event { reason: "FailedScheduling", message, .. } => Some(message.clone()),
            _ => None,
        });
        let message = world.message(&pending);
        prop_assert!(told.as_ref().is_some_and(|it| it.starts_with(&message)), "{told:?} does not begin {message:?}");
        let mut victims: Vec<(String, String)> = effects.iter().filter_map(|it| match it {
            Effect::Evict(it) => Some((it.node.clone(), it.victim.name.clone())),
            _ => None,
        }).collect();
        victims.sort();
        let cheapest = world.cheapest_victims(&pending);
        let is_one = |it: &Vec<(String, String)>| *it == victims;
        prop_assert!(cheapest.iter().any(is_one) || (cheapest.is_empty() && victims.is_empty()), "{victims:?} is none of {cheapest:?}");
    }
}
