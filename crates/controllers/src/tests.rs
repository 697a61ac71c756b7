//! Every controller against its text worlds, and the workload controllers together in a world that lives.

mod cluster;
mod life;
mod rollout;
mod wide;
mod workloads;

use std::collections::{BTreeMap, VecDeque};

use corten_api::{load_balancer::AddressPool, resources};
use corten_kinds::KINDS;
use corten_meta::{Key, Resource};
use corten_reconcile::{
    Controller, DEFINED, EFFECTS_MAX, Effect, Plan, Verb, Wait, Write,
    fixture::{self, World},
};

use crate::{
    AttachDetach, AttributesClassProtection, CONTROLLERS, Deployments, DeviceClaimRelease, DeviceClaims,
    DeviceTaintEviction, DeviceTaintRuleStatus, EphemeralVolumes, EventExpiry, GarbageCollector, LoadBalancers,
    Namespaces, PolicyStatus, ReplicaSets, ServiceAccounts, Settings, VolumeBinder, VolumeSnapshots,
};

fn check(controller: &dyn Controller, folder: &str) {
    fixture::check(controller, &format!("{}/testdata/{folder}", env!("CARGO_MANIFEST_DIR")));
}

#[test]
fn deployment() {
    check(&Deployments, "deployment");
}

#[test]
fn garbage_collector() {
    check(&GarbageCollector::default(), "garbage_collector");
}

#[test]
fn namespace() {
    check(&Namespaces::default(), "namespace");
}

#[test]
fn load_balancer() {
    check(&LoadBalancers::default(), "load_balancer");
}

#[test]
fn load_balancer_pool() {
    let pool = AddressPool::parse(&["10.0.0.10-10.0.0.12", "fd00::10/127"]).expect("a pool");
    let balancers = LoadBalancers::new(&Settings { load_balancer_pool: pool, ..Settings::default() });
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/load_balancer_pool");
    fixture::check_with(dir, |world| shared_out(&balancers, world));
    fixture::each_extreme(dir, |world| drop(shared_out(&balancers, world)));
}

/// What comes of each Service of the world: they are asked about in turn, and once more where only a note was made.
fn shared_out(controller: &dyn Controller, world: &World) -> String {
    let mut view = world.view(&controller.watches());
    let mut queue: VecDeque<Key> = world.list(&resources::SERVICES).map(|it| it.0.clone()).collect();
    let mut plans: BTreeMap<Key, String> = BTreeMap::new();
    for _ in 0..3 * queue.len() {
        let Some(key) = queue.pop_front() else { break };
        let plan = controller.reconcile(&view, &key, world.now);
        if let [Effect::Remember { note }] = &*plan.effects
            && plan.wake_at == Some(world.now)
        {
            view.record_note(&key, note.clone());
            queue.push_back(key);
            continue;
        }
        let effects = plan.effects.iter().map(|it| format!("{it}\n"));
        let wait = |it: &Wait| format!("wait {} of {key} ({:?}): {}\n", it.reason, it.actor, it.message);
        let plan = effects.chain(plan.waits.iter().map(wait)).collect();
        plans.insert(key, plan);
    }
    assert!(queue.is_empty(), "{queue:?} are noted again and again");
    plans.into_values().collect()
}

#[test]
fn volume_binder() {
    check(&VolumeBinder, "volume_binder");
}

#[test]
fn attach_detach() {
    check(&AttachDetach, "attach_detach");
}

#[test]
fn snapshots() {
    check(&VolumeSnapshots, "snapshots");
}

#[test]
fn ephemeral_volumes() {
    check(&EphemeralVolumes, "ephemeral_volumes");
}

#[test]
fn device_claims() {
    check(&DeviceClaims, "device_claims");
}

#[test]
fn device_claim_release() {
    check(&DeviceClaimRelease, "device_claim_release");
}

#[test]
fn device_taint_eviction() {
    check(&DeviceTaintEviction, "device_taint_eviction");
}

#[test]
fn device_taint_rule_status() {
    check(&DeviceTaintRuleStatus, "device_taint_rule_status");
}

#[test]
fn attributes_class_protection() {
    check(&AttributesClassProtection, "attributes_class_protection");
}

#[test]
fn replica_set() {
    check(&ReplicaSets, "replica_set");
}

#[test]
fn event_expiry() {
    check(&EventExpiry, "event_expiry");
}

#[test]
fn policy_status() {
    check(&PolicyStatus, "policy_status");
}

#[test]
fn service_account() {
    check(&ServiceAccounts, "service_account");
}

#[test]
fn names_are_sorted_and_all_that_is_written_is_watched_or_made() {
    let names: Vec<&str> = CONTROLLERS.iter().map(|it| it(&Settings::default()).name()).collect();
    assert!(names.is_sorted(), "{names:?}");
    for controller in CONTROLLERS.iter().map(|it| it(&Settings::default())) {
        let watches = controller.watches();
        let leads_on = watches.iter().any(|it| it.leads_to.is_some());
        let watched: Vec<_> = watches.into_iter().map(|it| it.resource).collect();
        // Of what definitions describe a controller says here what it writes, and watches it once it is described.
        let is_built_in = |it: &Resource| KINDS.iter().any(|kind| kind.resource == *it);
        let is_known = |it: &&Write| it.resource != DEFINED && (!leads_on || is_built_in(&it.resource));
        for write in controller.writes().iter().filter(is_known) {
            assert!(watched.contains(&write.resource), "{} writes {} unseen", controller.name(), write.resource);
            assert_eq!(write.fields.is_empty(), write.verb != Verb::Patch, "{} {}", controller.name(), write.resource);
        }
    }
}

/// Every address in the API's list, as `<plural>.<group>` and whether it is namespaced:
/// `pub const NAME: Resource = Resource::namespaced(group, version, kind, plural);`.
fn served() -> BTreeMap<String, bool> {
    let text = include_str!("../../api/src/resources.rs");
    let addresses = text.split("pub const ").skip(1).filter_map(|it| it.split_once(';')).map(|it| it.0);
    let addresses: BTreeMap<_, _> = addresses
        .filter(|it| it.contains(": Resource ="))
        .map(|it| {
            let quoted: Vec<&str> = it.split('"').skip(1).step_by(2).collect();
            (format!("{}.{}", quoted[3], quoted[0]), it.contains("::namespaced("))
        })
        .collect();
    assert!(addresses.len() > 60, "the list has another form than this test reads");
    addresses
}

#[test]
fn no_kind_is_forgotten() {
    // Asked, not stored.
    let is_stored = |it: &str| {
        let plural = it.split('.').next().unwrap_or_default();
        !it.ends_with(".metrics.k8s.io")
            && !plural.ends_with("reviews")
            && !matches!(plural, "journals" | "bindings" | "componentstatuses")
    };
    let watched = |it: &dyn Controller| -> Vec<String> {
        it.watches().into_iter().map(|it| format!("{}.{}", it.resource.plural, it.resource.group)).collect()
    };
    let (collected, emptied) = (watched(&GarbageCollector::default()), watched(&Namespaces::default()));
    for (address, namespaced) in served().into_iter().filter(|it| is_stored(&it.0)) {
        // Events refer to objects without being owned by them; those of the newer group are the same objects.
        if !address.starts_with("events.") {
            assert!(collected.contains(&address), "the garbage collector must know of {address}");
        }
        if namespaced && address != "events.events.k8s.io" {
            assert!(emptied.contains(&address), "the namespace controller must know of {address}");
        }
    }
}

#[test]
fn a_plan_is_bounded() {
    let many_pods = |owner: &str, words: &str| {
        let pods: Vec<String> = (0..700).map(|it| format!("pod p{it:03} owner={owner} {words}")).collect();
        pods.join("\n")
    };
    let plan = |controller: &dyn Controller, text: &str, key: Key| {
        let world = World::parse(text).expect("the world can be read");
        controller.reconcile(&world.view(&controller.watches()), &key, world.now)
    };
    let count = |plan: &Plan, verb: &str| plan.effects.iter().filter(|it| it.to_string().starts_with(verb)).count();

    let web = Key::new("default", "web");
    assert_eq!(count(&plan(&ReplicaSets, "replica-set web replicas=2000", web.clone()), "create"), EFFECTS_MAX);
    let surplus = format!("replica-set web replicas=0\n{}", many_pods("replica-set/web", "ready"));
    assert_eq!(count(&plan(&ReplicaSets, &surplus, web), "delete"), EFFECTS_MAX);
    let lost = format!("{}\nmissing replica-set/web", many_pods("replica-set/web", ""));
    assert_eq!(
        count(&plan(&GarbageCollector::default(), &lost, Key::cluster("replica-set-web")), "delete"),
        EFFECTS_MAX
    );
    let going = format!("namespace team deleting\n{}", many_pods("replica-set/web", "ns=team"));
    assert_eq!(count(&plan(&Namespaces::default(), &going, Key::cluster("team")), "delete"), EFFECTS_MAX);
}

/// Whether a controller declared what this effect does.
fn is_declared(controller: &dyn Controller, effect: &Effect) -> bool {
    let (verb, resource, patch) = match effect {
        Effect::Create { resource, .. } => (Verb::Create, resource, None),
        Effect::Delete { resource, .. } => (Verb::Delete, resource, None),
        Effect::Patch { resource, patch, .. } | Effect::StrategicPatch { resource, patch, .. } => {
            (Verb::Patch, resource, Some(patch))
        }
        Effect::Sequence(parts) => return parts.iter().all(|it| is_declared(controller, it)),
        Effect::Event { .. }
        | Effect::Ask { .. }
        | Effect::AskAccess { .. }
        | Effect::Fetch(_)
        | Effect::FetchForAll(_)
        | Effect::Remember { .. }
        | Effect::Count(_) => return true,
    };
    let mut writes = controller.writes().iter().filter(|it| it.verb == verb && it.resource == *resource);
    let Some(patch) = patch else { return writes.next().is_some() };
    writes.any(|write| paths(patch).iter().all(|path| write.fields.iter().any(|it| path.starts_with(it))))
}

/// The paths a merge patch touches, two steps deep, without the preconditions.
fn paths(patch: &serde_json::Value) -> Vec<String> {
    let members = patch.as_object().expect("a patch is an object");
    let deep = members.iter().flat_map(|(name, value)| {
        value.as_object().into_iter().flatten().map(move |(inner, _)| format!("{name}.{inner}"))
    });
    deep.filter(|it| it != "metadata.uid" && it != "metadata.resourceVersion").collect()
}
