//! The scheduler against text worlds, and against random histories.

mod back_off;
mod configuration;
mod devices;
mod extenders;
mod gangs;
mod hints;
mod history;
mod observed;
mod preemption;
mod reference;
mod topology_pod_counts;
mod volumes;

use std::{fmt::Write as _, time::Duration};

use corten_api::resources::{
    CSI_DRIVERS, CSI_NODES, CSI_STORAGE_CAPACITIES, DEVICE_CLASSES, NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES, POD_DISRUPTION_BUDGETS, PODS, REPLICA_SETS, REPLICATION_CONTROLLERS, RESOURCE_CLAIMS,
    RESOURCE_SLICES, SERVICES, STATEFUL_SETS, STORAGE_CLASSES, VOLUME_ATTACHMENTS,
};
use corten_meta::{Key, Retry, Time};
use corten_reconcile::fixture::{self, World};
use serde_json::{Value, json};

use crate::{
    Attachment, Claim, ClusterObject, Config, CsiDriver, CsiNode, DeviceClaim, DeviceClass, DeviceSlice,
    DisruptionBudget, Effect, Event, ExtendedClaimWrite, Namespace, NewClaim, PLUGINS, ReplicaSet,
    ReplicationController, Scheduler, Service, StatefulSet, StorageCapacity, StorageClass, StorageObject, Volume,
    requests::Amounts,
};

fn node(object: &Value) -> Event {
    Event::Node(Box::new(serde_json::from_value(object.clone()).expect("it is a node")))
}

fn pod(object: &Value) -> Event {
    Event::Pod(Box::new(serde_json::from_value(object.clone()).expect("it is a pod")))
}

fn seen<T: serde::de::DeserializeOwned + Into<StorageObject>>(object: &Value) -> Event {
    let object: T = serde_json::from_value(object.clone()).expect("it is an object of storage");
    Event::Storage(Box::new(object.into()))
}

fn of_cluster<T: serde::de::DeserializeOwned + Into<ClusterObject>>(object: &Value) -> Event {
    let object: T = serde_json::from_value(object.clone()).expect("it is an object of the cluster");
    Event::Cluster(Box::new(object.into()))
}

/// All that a world holds beside nodes and pods.
fn storage(world: &World) -> Vec<Event> {
    let claims = world.list(&PERSISTENT_VOLUME_CLAIMS).map(|it| seen::<Claim>(it.1));
    let volumes = world.list(&PERSISTENT_VOLUMES).map(|it| seen::<Volume>(it.1));
    let classes = world.list(&STORAGE_CLASSES).map(|it| seen::<StorageClass>(it.1));
    let drivers = world.list(&CSI_DRIVERS).map(|it| seen::<CsiDriver>(it.1));
    let nodes = world.list(&CSI_NODES).map(|it| seen::<CsiNode>(it.1));
    let capacities = world.list(&CSI_STORAGE_CAPACITIES).map(|it| seen::<StorageCapacity>(it.1));
    let attachments = world.list(&VOLUME_ATTACHMENTS).map(|it| seen::<Attachment>(it.1));
    let slices = world.list(&RESOURCE_SLICES).map(|it| seen::<DeviceSlice>(it.1));
    let device_classes = world.list(&DEVICE_CLASSES).map(|it| seen::<DeviceClass>(it.1));
    let device_claims = world.list(&RESOURCE_CLAIMS).map(|it| seen::<DeviceClaim>(it.1));
    let devices = slices.chain(device_classes).chain(device_claims);
    let budgets = world.list(&POD_DISRUPTION_BUDGETS).map(|it| of_cluster::<DisruptionBudget>(it.1));
    let namespaces = world.list(&NAMESPACES).map(|it| of_cluster::<Namespace>(it.1));
    let services = world.list(&SERVICES).map(|it| of_cluster::<Service>(it.1));
    let controllers = world.list(&REPLICATION_CONTROLLERS).map(|it| of_cluster::<ReplicationController>(it.1));
    let replica_sets = world.list(&REPLICA_SETS).map(|it| of_cluster::<ReplicaSet>(it.1));
    let stateful_sets = world.list(&STATEFUL_SETS).map(|it| of_cluster::<StatefulSet>(it.1));
    let groupings = services.chain(controllers).chain(replica_sets).chain(stateful_sets);
    let devices = devices.chain(budgets).chain(namespaces).chain(groupings);
    let of_nodes = nodes.chain(attachments).chain(capacities);
    claims.chain(volumes).chain(classes).chain(drivers).chain(of_nodes).chain(devices).collect()
}

/// All of a world, told at once.
fn told(world: &World) -> Scheduler {
    let mut scheduler = Scheduler::new(Config::default());
    storage(world).into_iter().for_each(|it| drop(scheduler.step(it, world.now)));
    for (_, object) in world.list(&NODES) {
        scheduler.step(node(object), world.now);
    }
    for (_, object) in world.list(&PODS) {
        let effects = scheduler.step(pod(object), world.now);
        assert!(!effects.iter().any(|it| matches!(it, Effect::Bind { .. })), "only a tick places pods");
    }
    scheduler
}

fn describe(effects: &[Effect], now: Time) -> String {
    let mut text = String::new();
    for effect in effects {
        let _ = match effect {
            Effect::Bind { pod, node, claims, extended, .. } => {
                for it in claims {
                    let _ = writeln!(text, "reserve {} {:?} {}", it.claim, it.finalizers, it.status);
                }
                describe_extended(extended.as_ref(), &mut text);
                writeln!(text, "bind {pod} to {node}")
            }
            Effect::Reserve { pod, claims, extended, .. } => {
                for it in claims {
                    let _ = writeln!(text, "reserve {} {:?} {}", it.claim, it.finalizers, it.status);
                }
                describe_extended(extended.as_ref(), &mut text);
                writeln!(text, "do not bind {pod} yet")
            }
            Effect::ReleaseClaims { claims, .. } => {
                claims.iter().try_for_each(|it| writeln!(text, "release {} {}", it.claim, it.patch))
            }
            Effect::DeleteClaim { claim, finalizers, .. } => writeln!(text, "delete claim {claim} {finalizers:?}"),
            Effect::BindVolumes { patches, .. } => patches
                .iter()
                .try_for_each(|(resource, key, patch)| writeln!(text, "patch {} {key} {patch}", resource.kind)),
            Effect::Evict(it) => writeln!(text, "evict {} from {} {}", it.victim_key(), it.node, it.patch["status"]),
            Effect::PatchGroup { group, patch } => writeln!(text, "patch group {group} {patch}"),
            Effect::Consult(it) => writeln!(text, "consult {}", it.pod),
            Effect::PatchCondition { pod, patch } => writeln!(text, "patch {pod} {patch}"),
            Effect::Event { about, event_type, reason, message } => {
                writeln!(text, "event {} {}/{} {reason}: {message}", event_type.as_str(), about.kind, about.name)
            }
            Effect::Record { pod, decision } => {
                let _ = writeln!(text, "step {pod} {:?}: {}", decision.steps[0].state, decision.steps[0].message);
                decision.waits.iter().try_for_each(|it| {
                    let on = it.on.as_ref().map(|it| format!(" on {it}")).unwrap_or_default();
                    writeln!(text, "  wait {}{on} ({:?}): {}", it.reason, it.actor, it.message)
                })
            }
            Effect::WakeAt(at) => writeln!(text, "wake in {} ms", at.unix_millis() - now.unix_millis()),
        };
    }
    text
}

fn describe_extended(extended: Option<&ExtendedClaimWrite>, text: &mut String) {
    let _ = match extended {
        None => Ok(()),
        Some(ExtendedClaimWrite::Forget) => writeln!(text, "forget the claim for extended resources"),
        Some(ExtendedClaimWrite::Make(it)) => {
            let NewClaim { claim, status, mappings } = &**it;
            let _ = writeln!(text, "make claim {} {}", claim["metadata"], claim["spec"]);
            let _ = writeln!(text, "  status {status}");
            let lines = mappings.as_array().into_iter().flatten();
            let field = |it: &Value, name: &str| it[name].as_str().unwrap_or_default().to_owned();
            lines.into_iter().try_for_each(|it| {
                let (container, resource) = (field(it, "containerName"), field(it, "resourceName"));
                writeln!(text, "  {container} has {resource} of {}", field(it, "requestName"))
            })
        }
    };
}

#[test]
fn one_tick() {
    fixture::check_with(&format!("{}/testdata/one_tick", env!("CARGO_MANIFEST_DIR")), |world| {
        // Gates are reported when the pod is seen, everything else at the tick.
        let mut scheduler = Scheduler::new(Config::default());
        let mut effects = Vec::new();
        storage(world).into_iter().for_each(|it| drop(scheduler.step(it, world.now)));
        world.list(&NODES).for_each(|it| drop(scheduler.step(node(it.1), world.now)));
        world.list(&PODS).for_each(|it| effects.extend(scheduler.step(pod(it.1), world.now)));
        effects.retain(|it| matches!(it, Effect::Record { .. }));
        effects.extend(scheduler.step(Event::Tick, world.now));
        describe(&effects, world.now)
    });
}

/// Pods and nodes may name the largest numbers there are: a tick comes to an end, and what goes takes away what it brought.
#[test]
fn numbers_may_stand_at_their_ends() {
    fixture::each_extreme(&format!("{}/testdata/one_tick", env!("CARGO_MANIFEST_DIR")), |world| {
        let mut scheduler = Scheduler::new(Config::default());
        storage(world).into_iter().for_each(|it| drop(scheduler.step(it, world.now)));
        world.list(&NODES).for_each(|it| drop(scheduler.step(node(it.1), world.now)));
        world.list(&PODS).for_each(|it| drop(scheduler.step(pod(it.1), world.now)));
        let effects = scheduler.step(Event::Tick, world.now);
        for effect in effects {
            if let Effect::Bind { pod, uid, node, .. } = effect {
                scheduler.step(Event::Bound { pod, uid, node }, world.now);
            }
        }
        scheduler.step(Event::Tick, world.now.after(Duration::from_secs(600)));
        world.list(&PODS).for_each(|it| drop(scheduler.step(Event::PodGone(it.0.clone()), world.now)));
        let left: Vec<String> = scheduler
            .snapshot
            .nodes()
            .filter(|it| *it.requested != Amounts::default())
            .map(|it| format!("{:?}", it.requested))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    });
}

/// A pod asks for all there can be, twice over, and goes: the other's request is still known.
#[test]
fn a_sum_beyond_numbers_is_added_up_anew() {
    let most = i64::MAX.to_string();
    let large = |name: &str| {
        let resources = json!({"requests": {"cpu": most, "memory": most, "example.com/gpu": most}});
        json!({"metadata": {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": resources}, {"name": "d", "resources": resources}]}})
    };
    let small = json!({"metadata": {"name": "small", "namespace": "default", "uid": "small", "resourceVersion": "1"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]}});
    let mut scheduler = Scheduler::new(Config::default());
    let now = Time::from_unix_seconds(0);
    [large("a"), large("b"), small].iter().for_each(|it| drop(scheduler.step(pod(it), now)));
    ["a", "b"].iter().for_each(|it| drop(scheduler.step(Event::PodGone(Key::new("default", *it)), now)));
    let row = scheduler.snapshot.row("n1").expect("a row");
    assert_eq!((row.requested.cpu_millis, row.requested.memory_bytes, row.requested.extended.len()), (500, 0, 0));
}

/// The one it breaks at waits and is named, and whoever comes after it has a node.
#[test]
fn a_pod_that_breaks_it_costs_no_other_its_place() {
    let lines = "node n1 cpu=4 memory=4Gi pods=10\npod bad priority=9\npod good";
    let mut world = World::parse(lines).expect("a world");
    let bad = Key::new("default", "bad");
    world.get_mut(&PODS, &bad).expect("it is there")["metadata"]["labels"] = json!({"breaks": "yes"});
    let mut scheduler = told(&world);
    let mut named = Vec::new();
    let effects = scheduler.step_telling(Event::Tick, world.now, &mut |it| named.push(it.name.clone()));
    assert_eq!(named, ["bad", "good"]);
    let text = describe(&effects, world.now);
    assert!(text.contains("bind default/good to n1"), "{text}");
    assert!(text.contains("wait LoopPanicked (Operator)"), "{text}");
    assert!(text.contains("event Warning Pod/bad FailedScheduling: internal error of the scheduler"), "{text}");
}

#[test]
fn plugins_have_names_and_say_who_must_act() {
    for plugin in PLUGINS {
        assert!(!plugin.name.is_empty());
        let can_refuse = plugin.filter.is_some()
            || plugin.filter_among.is_some()
            || plugin.pre_enqueue.is_some()
            || plugin.pre_filter.is_some();
        assert_eq!(can_refuse, !plugin.wait.is_empty(), "{}", plugin.name);
    }
}

/// Steps a scheduler and keeps only what places or parks.
fn binds(scheduler: &mut Scheduler, event: Event, now: Time) -> Vec<String> {
    let effects = scheduler.step(event, now);
    let bind = |it: &Effect| match it {
        Effect::Bind { pod, node, .. } => Some(format!("{}>{node}", pod.name)),
        Effect::Event { reason: "FailedScheduling", about, .. } => Some(format!("{}!", about.name)),
        _ => None,
    };
    effects.iter().filter_map(bind).collect()
}

fn world(lines: &str) -> World {
    World::parse(lines).expect("the world can be read")
}

fn object(lines: &str, name: &str) -> Value {
    let world = world(lines);
    let found = world.list(&NODES).chain(world.list(&PODS)).find(|it| it.0.name == name);
    found.expect("it is in the world").1.clone()
}

#[test]
fn the_most_important_pod_goes_first_then_the_oldest() {
    let world = world("node n1\npod a\npod b priority=5\npod c\npod d priority=-1");
    let mut scheduler = told(&world);
    let order = binds(&mut scheduler, Event::Tick, world.now);
    assert_eq!(order, ["b>n1", "a>n1", "c>n1", "d>n1"]);
}

#[test]
fn a_parked_pod_waits_for_what_helps_it() {
    let lines = "node n1 cpu=1\nnode n2 cpu=1 taint=gpu=yes:NoSchedule\npod first cpu=1\npod second cpu=1";
    let later = |seconds| world(lines).now.after(Duration::from_secs(seconds));
    let mut scheduler = told(&world(lines));
    assert_eq!(binds(&mut scheduler, Event::Tick, later(0)), ["first>n1", "second!"]);
    // A heartbeat, and a new node that is too small: no reason for another try.
    for line in ["node n1 cpu=1 labels=beat=1", "node n3 cpu=500m"] {
        let name = line.split(' ').nth(1).expect("a name");
        assert_eq!(binds(&mut scheduler, node(&object(line, name)), later(20)), [""; 0]);
        assert_eq!(binds(&mut scheduler, Event::Tick, later(20)), [""; 0], "{line}");
    }
    // The taint goes: that node fits now.
    scheduler.step(node(&object("node n2 cpu=1", "n2")), later(30));
    assert_eq!(binds(&mut scheduler, Event::Tick, later(30)), ["second>n2"]);
}

#[test]
fn a_parked_pod_waits_for_what_happens_elsewhere() {
    const APART: &str = r#"spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution=[{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"web"}}}]"#;
    const NEAR: &str = r#"spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution=[{"topologyKey":"zone","labelSelector":{"matchLabels":{"app":"web"}}}]"#;
    const SPREAD: &str = r#"spec.topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{"matchLabels":{"app":"web"}}}]"#;
    let gone = |name: &str| Event::PodGone(Key::new("default", name));
    let nodes = "node n1 labels=zone=a cpu=1\nnode n2 labels=zone=a cpu=1\n";
    for (what, lines, happening, outcome) in [
        // The pod to keep away from is on n1, which is full; n2 is of the same zone.
        (
            "anti-affinity",
            format!("pod a node=n1 running labels=app=web\npod b node=n1 cpu=1 running\npod c {APART} cpu=1"),
            gone("a"),
            "c>n2",
        ),
        // The same, seen from the other side.
        (
            "symmetry",
            format!("pod a node=n1 running {APART}\npod b node=n1 cpu=1 running\npod c labels=app=web cpu=1"),
            gone("a"),
            "c>n2",
        ),
        (
            "affinity",
            format!("pod c {NEAR} cpu=1\npod b node=n1 cpu=1 running"),
            pod(&object("pod a node=n1 running labels=app=web", "a")),
            "c>n2",
        ),
        (
            "relabelled",
            format!("pod a node=n1 running labels=app=db\npod b node=n1 cpu=1 running\npod c {NEAR} cpu=1"),
            pod(&object("pod a node=n1 running labels=app=web", "a")),
            "c>n2",
        ),
        // A zone without a pod, and without room, keeps the other from having two; then it is gone.
        (
            "spread",
            format!(
                "node n3 labels=zone=b cordoned\npod a node=n1 running labels=app=web cpu=1\npod c {SPREAD} labels=app=web cpu=1"
            ),
            Event::NodeGone("n3".into()),
            "c>n2",
        ),
    ] {
        let world = world(&format!("{nodes}{lines}"));
        let later = world.now.after(Duration::from_secs(20));
        let mut scheduler = told(&world);
        assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["c!"], "{what}");
        scheduler.step(happening, later);
        assert_eq!(binds(&mut scheduler, Event::Tick, later), [outcome], "{what}");
    }
}

#[test]
fn an_unschedulable_pod_is_tried_again_after_minutes_whatever_happens() {
    let world = world("node n1 cpu=1\npod big cpu=2");
    let mut scheduler = told(&world);
    let first = scheduler.step(Event::Tick, world.now);
    let retry_at = world.now.after(Duration::from_secs(300));
    assert_eq!(first.last(), Some(&Effect::WakeAt(retry_at)));
    assert_eq!(binds(&mut scheduler, Event::Tick, retry_at), ["big!"]);
}

#[test]
fn a_condition_is_written_once_for_the_same_words() {
    let lines = "node n1 cpu=1\npod big cpu=2";
    let world = world(lines);
    let mut scheduler = told(&world);
    let patch = |effects: Vec<Effect>| {
        effects.into_iter().find_map(|it| match it {
            Effect::PatchCondition { patch, .. } => Some(patch),
            _ => None,
        })
    };
    let first = patch(scheduler.step(Event::Tick, world.now)).expect("nobody knows yet");
    let mut seen = object(lines, "big");
    seen["status"]["conditions"] = first["status"]["conditions"].clone();
    scheduler.step(pod(&seen), world.now);
    let later = world.now.after(Duration::from_secs(301));
    assert_eq!(patch(scheduler.step(Event::Tick, later)), None);
}

#[test]
fn a_refused_binding_gives_its_room_back_and_is_tried_again() {
    let lines = "node n1 cpu=1\npod a cpu=1";
    let world = world(lines);
    let mut scheduler = told(&world);
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["a>n1"]);
    let key = Key::new("default", "a");
    let failed = |uid: &str| Event::BindFailed {
        pod: key.clone(),
        uid: uid.into(),
        retry: Retry::After,
        message: "the server is busy".into(),
    };
    assert_eq!(binds(&mut scheduler, failed("another"), world.now), [""; 0], "not this pod's answer");
    assert_eq!(binds(&mut scheduler, failed("pod-a"), world.now), ["a!"]);
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now), [""; 0], "it backs off");
    let later = world.now.after(Duration::from_secs(1));
    assert_eq!(binds(&mut scheduler, Event::Tick, later), ["a>n1"]);
    // The watch is faster than the answer: the answer changes nothing then.
    scheduler.step(pod(&object("pod a cpu=1 node=n1", "a")), later);
    assert_eq!(binds(&mut scheduler, failed("pod-a"), later), [""; 0]);
    let bound = Event::Bound { pod: key, uid: "pod-a".into(), node: "n1".into() };
    let effects = scheduler.step(bound, later);
    assert!(
        describe(&effects, later).starts_with("event Normal Pod/a Scheduled: Successfully assigned default/a to n1\n")
    );
}

/// Who has bound it sends the event.
#[test]
fn of_a_pod_that_another_scheduler_bound_no_event_is_sent() {
    for node in ["n1", "n2"] {
        let world = world("node n1 cpu=1\npod a cpu=1");
        let mut scheduler = told(&world);
        assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["a>n1"]);
        let (pod, uid) = (Key::new("default", "a"), "pod-a".to_owned());
        let effects = scheduler.step(Event::BoundByAnother { pod, uid, node: node.into() }, world.now);
        let told = describe(&effects, world.now);
        assert!(told.contains(&format!("on node {node}")) && !told.contains("event "), "{told}");
    }
}

#[test]
fn an_old_copy_of_a_pod_does_not_undo_its_placement() {
    let lines = "node n1 cpu=1\npod a cpu=1\npod b cpu=1";
    let world = world(lines);
    let mut scheduler = told(&world);
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["a>n1", "b!"]);
    let mut old = object(lines, "a");
    old["metadata"]["labels"] = json!({ "x": "y" });
    assert_eq!(binds(&mut scheduler, pod(&old), world.now), [""; 0]);
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now.after(Duration::from_secs(60))), [""; 0]);
    // A namesake is another pod: the room of the first is free.
    old["metadata"]["uid"] = json!("new");
    scheduler.step(pod(&old), world.now.after(Duration::from_secs(61)));
    assert_eq!(scheduler.placed().count(), 0);
}

#[test]
fn the_last_gate_lets_a_pod_in() {
    let world = world("node n1\npod a gate=example.com/x");
    let mut scheduler = told(&world);
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now), [""; 0]);
    scheduler.step(pod(&object("pod a", "a")), world.now);
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["a>n1"]);
}

#[test]
fn a_tick_places_a_bounded_number_and_asks_for_the_next() {
    let mut scheduler = Scheduler::new(Config { pods_per_tick_max: 2, ..Config::default() });
    let world = world("node n1\npod a\npod b\npod c");
    world.list(&NODES).for_each(|it| drop(scheduler.step(node(it.1), world.now)));
    world.list(&PODS).for_each(|it| drop(scheduler.step(pod(it.1), world.now)));
    let effects = scheduler.step(Event::Tick, world.now);
    assert_eq!(describe(&effects, world.now), "bind default/a to n1\nbind default/b to n1\nwake in 0 ms\n");
    assert_eq!(binds(&mut scheduler, Event::Tick, world.now), ["c>n1"]);
}

/// So many that whoever looks at all of them for each of them does not come to an end.
const MANY: usize = 20_000;

fn placed(spec: &Value, others: &[Value]) -> String {
    let now = Time::from_unix_seconds(1_800_000_000);
    let mut scheduler = Scheduler::new(Config::default());
    let amounts = json!({ "cpu": "1000", "memory": "1000Gi", "pods": "100000" });
    let metadata = json!({ "name": "n1", "labels": { "kubernetes.io/hostname": "n1" } });
    scheduler.step(node(&json!({ "metadata": metadata, "status": { "allocatable": amounts } })), now);
    let named = |name: String, spec: &Value| json!({ "metadata": { "name": name, "namespace": "a", "uid": name, "labels": { "app": "a" } }, "spec": spec });
    for (it, spec) in others.iter().enumerate() {
        let mut other = named(format!("other-{it}"), spec);
        other["spec"]["nodeName"] = "n1".into();
        scheduler.step(pod(&other), now);
    }
    scheduler.step(pod(&named("p".into(), spec)), now);
    let effects = scheduler.step(Event::Tick, now);
    // Whatever comes and goes is told to who waits.
    for it in 0..others.len().min(50) {
        scheduler.step(Event::PodGone(Key::new("a", format!("other-{it}"))), now);
    }
    describe(&effects, now)
}

#[test]
fn a_pod_may_ask_for_much() {
    let names = || (0..MANY).map(|it| format!("v{it}"));
    let of_names = |name: fn(String) -> Value| names().map(name).collect::<Vec<Value>>();
    let expression =
        |operator: &str| json!({ "key": "app", "operator": operator, "values": names().collect::<Vec<_>>() });
    let term = |selector: Value| json!({ "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchExpressions": [selector] } });
    let hostname =
        json!({ "key": "kubernetes.io/hostname", "operator": "NotIn", "values": names().collect::<Vec<_>>() });
    let anti_affinity = |terms: Vec<Value>| json!({ "affinity": { "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": terms } } });
    let requests = |it: usize| json!({ "resources": { "requests": { format!("example.com/r{it}"): "1" } }, "restartPolicy": "Always" });
    let ports = |third: usize| {
        let port = |it: usize| json!({ "containerPort": 1, "hostPort": 80, "hostIP": format!("10.{third}.{}.{}", it / 256, it % 256) });
        json!({ "containers": [{ "ports": (0..MANY).map(port).collect::<Vec<_>>() }] })
    };
    let others = |n: usize| vec![json!({}); n];
    for (spec, others, expected) in [
        (anti_affinity(vec![term(expression("In")); 10]), others(2_000), "bind"),
        (
            anti_affinity(of_names(|it| json!({ "topologyKey": it, "labelSelector": {} }))[..1_000].to_vec()),
            others(1_000),
            "bind",
        ),
        (
            json!({ "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{ "matchExpressions": [hostname] }] } } } }),
            others(10),
            "bind",
        ),
        (ports(0), vec![ports(1)], "bind"),
        (ports(0), vec![ports(0)], "didn't have free ports"),
        (json!({ "initContainers": (0..MANY).map(requests).collect::<Vec<_>>() }), others(0), "and 19900 more"),
        (json!({ "tolerations": of_names(|it| json!({ "key": it, "operator": "Exists" })) }), others(100), "bind"),
        (
            json!({ "topologySpreadConstraints": of_names(|it| json!({ "topologyKey": it, "maxSkew": 1, "labelSelector": {} })) }),
            others(50),
            "missing required label",
        ),
    ] {
        let told = placed(&spec, &others);
        assert!(told.contains(expected), "{expected}: {}", told.chars().take(500).collect::<String>());
        assert!(told.len() < 100_000, "{}", told.len());
    }
}
