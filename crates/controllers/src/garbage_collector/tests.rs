//! Whom a change wakes: owners that there is something to do about, and no others.

use super::*;

fn view_of(objects: &[(Resource, &Value)]) -> View {
    let mut view = View::default();
    for resource in COLLECTED {
        view.declare(resource);
    }
    for (resource, object) in objects {
        let watch = any(resource, Wake::Nobody);
        view.insert(resource, watch.decode(object.to_string().as_bytes()).expect("an object"));
    }
    view
}

#[test]
fn a_healthy_replica_wakes_nobody_and_one_in_trouble_its_owners() {
    let set = |meta: Value| {
        let mut object = json!({"metadata": {"name": "s", "namespace": "a", "uid": "set"}});
        object["metadata"].as_object_mut().expect("an object").extend(meta.as_object().expect("an object").clone());
        object
    };
    let owners = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "s", "uid": "set"}]);
    let pod = json!({"metadata": {"name": "p", "namespace": "a", "uid": "pod", "ownerReferences": owners}});
    let dying = |finalizer: &str| set(json!({"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [finalizer]}));
    for (owner, pod_wakes, set_wakes) in [
        (Some(set(json!({}))), &[][..], &["set"][..]),
        (Some(dying(FOREGROUND)), &["set"], &["set"]),
        (Some(dying(ORPHAN)), &["set"], &["set"]),
        (Some(set(json!({"uid": "another"}))), &["set"], &[]),
        (None, &["set"], &[]),
    ] {
        let mut objects = vec![(resources::PODS, &pod)];
        objects.extend(owner.as_ref().map(|it| (resources::REPLICA_SETS, it)));
        let view = view_of(&objects);
        let woken = |resource: &Resource, name: &str| -> Vec<String> {
            let meta = view.meta(resource, &Key::new("a", name));
            meta.map_or(Vec::new(), |it| keys(&view, resource, it)).into_iter().map(|it| it.name).collect()
        };
        assert_eq!(woken(&resources::PODS, "p"), pod_wakes, "{owner:?}");
        assert_eq!(woken(&resources::REPLICA_SETS, "s"), set_wakes, "{owner:?}");
    }
}

#[test]
fn an_owner_that_went_is_woken_for_its_dependents() {
    let owners = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "s", "uid": "set"}]);
    let pod = json!({"metadata": {"name": "p", "namespace": "a", "uid": "pod", "ownerReferences": owners}});
    let gone = ObjectMeta { name: "s".into(), namespace: "a".into(), uid: "set".into(), ..ObjectMeta::default() };
    assert_eq!(keys(&view_of(&[(resources::PODS, &pod)]), &resources::REPLICA_SETS, &gone), [Key::cluster("set")]);
    assert!(keys(&view_of(&[]), &resources::REPLICA_SETS, &gone).is_empty());
}

/// So many that whoever looks at all of them for each of them does not come to an end.
const MANY: usize = 10_000;

fn config_map(name: &str, owners: impl Iterator<Item = String>) -> Value {
    let reference = |it: String| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": it, "uid": it, "blockOwnerDeletion": true});
    let owners: Vec<Value> = owners.map(reference).collect();
    json!({"metadata": {"name": name, "namespace": "a", "uid": name, "ownerReferences": owners}})
}

fn waiting(mut object: Value) -> Value {
    object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    object["metadata"]["finalizers"] = json!([FOREGROUND]);
    object
}

fn view_of_maps(maps: &[Value]) -> View {
    view_of(&maps.iter().map(|it| (resources::CONFIG_MAPS, it)).collect::<Vec<_>>())
}

fn plan(view: &View, key: &Key) -> Plan {
    GarbageCollector::default().reconcile(view, key, Time::from_unix_seconds(0))
}

#[test]
fn a_dependent_of_many_is_looked_at_once_however_many_of_them_are_gone() {
    let dependent = config_map("dependent", (0..MANY).map(|it| format!("owner-{it}")));
    let mut view = view_of_maps(&[dependent]);
    let key = Key::new("configmaps", "a/dependent");
    let meta = view.meta(&resources::CONFIG_MAPS, &Key::new("a", "dependent")).expect("it was put in").clone();
    assert_eq!(keys(&view, &resources::CONFIG_MAPS, &meta), std::slice::from_ref(&key));
    for owner in &meta.owner_references {
        assert_eq!(plan(&view, &Key::cluster(&*owner.uid)), Plan::default(), "the dependent has a key of its own");
    }
    let mut n_asked = 0;
    let end = loop {
        let effects = plan(&view, &key).effects;
        assert!(effects.len() <= EFFECTS_MAX);
        if !effects.iter().all(|it| matches!(it, Effect::Ask { .. })) {
            break effects;
        }
        for effect in effects {
            let Effect::Ask { resource, key } = effect else { unreachable!("all are") };
            view.record_answer(resource, key, corten_reconcile::Answer::Missing);
            n_asked += 1;
        }
    };
    assert_eq!(n_asked, MANY, "each once");
    assert!(matches!(&end[..], [Effect::Delete { key, .. }] if key.name == "dependent"), "{end:?}");
}

#[test]
fn a_dependent_of_many_keeps_those_that_live() {
    let names = || (0..MANY).map(|it| format!("owner-{it}"));
    let living = |name: &String| !name.ends_with('7');
    let mut maps = vec![config_map("dependent", names())];
    maps.extend(names().filter(living).map(|it| config_map(&it, std::iter::empty())));
    let mut view = view_of_maps(&maps);
    for name in names().filter(|it| !living(it)) {
        view.record_answer(resources::CONFIG_MAPS, Key::new("a", name), corten_reconcile::Answer::Missing);
    }
    let effects = plan(&view, &Key::new("configmaps", "a/dependent")).effects;
    let [Effect::Patch { patch, .. }] = &effects[..] else { panic!("one patch") };
    let left = patch["metadata"]["ownerReferences"].as_array().expect("some are left");
    let left: Vec<&str> = left.iter().filter_map(|it| it["uid"].as_str()).collect();
    assert_eq!(left, names().filter(living).collect::<Vec<_>>());

    // The end of one owner wakes the dependent, and not each of the others.
    let gone = view.meta(&resources::CONFIG_MAPS, &Key::new("a", "owner-0")).expect("it lives").clone();
    view.remove(&resources::CONFIG_MAPS, &gone.key());
    let woken = keys(&view, &resources::CONFIG_MAPS, &gone);
    assert_eq!(woken, [Key::cluster("owner-0"), Key::new("configmaps", "a/dependent")]);
}

#[test]
fn owners_that_wait_are_let_go_however_many_wait_for_each_other() {
    // Each owns all others.
    let n = 60;
    let all = || (0..n).map(|it| format!("m{it}"));
    let maps: Vec<Value> = all().map(|me| waiting(config_map(&me, all().filter(|it| *it != me)))).collect();
    let view = view_of_maps(&maps);
    for name in all() {
        let plan = plan(&view, &Key::cluster(name));
        let references: usize = plan
            .effects
            .iter()
            .map(|it| match it {
                Effect::Patch { patch, .. } => patch["metadata"]["ownerReferences"].as_array().map_or(0, Vec::len),
                other => panic!("{other}"),
            })
            .sum();
        assert!(!plan.effects.is_empty() && references <= REFERENCES_MAX + n, "{references}");
        assert_eq!(plan.waits.len(), 1);
    }
    // Each owns the next: none is in a circle, and each waits for the one it owns.
    let owner = |it: usize| (it > 0).then(|| format!("m{}", it - 1)).into_iter();
    let maps: Vec<Value> = (0..300).map(|it| waiting(config_map(&format!("m{it}"), owner(it)))).collect();
    let view = view_of_maps(&maps);
    for it in 0..maps.len() {
        let plan = plan(&view, &Key::cluster(format!("m{it}")));
        let is_last = it + 1 == maps.len();
        assert_eq!((plan.effects.len(), plan.waits.len()), (usize::from(is_last), usize::from(!is_last)), "{it}");
    }
}

#[test]
fn one_plan_writes_a_bounded_number_of_references() {
    let mut maps: Vec<Value> =
        (0..50).map(|it| config_map(&format!("dependent-{it}"), (0..1_000).map(|it| format!("owner-{it}")))).collect();
    let mut owner = waiting(config_map("owner-0", std::iter::empty()));
    owner["metadata"]["finalizers"] = json!([ORPHAN]);
    maps.push(owner);
    let n = plan(&view_of_maps(&maps), &Key::cluster("owner-0")).effects.len();
    assert!((1..=REFERENCES_MAX / 1_000 + 1).contains(&n), "{n}");
}

#[test]
fn after_a_start_owners_wait_for_what_other_servers_hold_but_not_for_ever() {
    let service = |available: &str| {
        let conditions = json!([{"type": "Available", "status": available, "message": ""}]);
        let spec = json!({"group": "wardle.example.com", "version": "v1", "service": {}});
        json!({"metadata": {"name": "v1.wardle.example.com"}, "spec": spec, "status": {"conditions": conditions}})
    };
    let (begun, soon, later) = (0, 29, 30);
    for (available, at, waits) in
        [("True", soon, true), ("Unknown", soon, true), ("False", soon, false), ("True", later, false)]
    {
        for finalizer in [FOREGROUND, ORPHAN] {
            let mut owner = waiting(config_map("owner", std::iter::empty()));
            owner["metadata"]["finalizers"] = json!([finalizer]);
            let objects = [(resources::CONFIG_MAPS, &owner), (resources::API_SERVICES, &service(available))];
            let mut view = view_of(&objects);
            view.begin(Time::from_unix_seconds(begun));
            let plan =
                GarbageCollector::default().reconcile(&view, &Key::cluster("owner"), Time::from_unix_seconds(at));
            let reasons: Vec<&str> = plan.waits.iter().map(|it| &*it.reason).collect();
            let expected: &[&str] = if waits { &["DependentsUndiscovered"] } else { &[] };
            assert_eq!(reasons, expected, "{available} {at} {finalizer}");
            assert_eq!(
                (plan.effects.is_empty(), plan.wake_at.is_some()),
                (waits, waits),
                "{available} {at} {finalizer}"
            );
        }
    }
}

/// A server of another version: it serves one kind that this program knows in another version, and others not at all.
#[test]
fn an_owner_of_a_kind_that_is_not_served_is_not_taken_for_gone() {
    let cron_jobs = Resource { version: "v1beta1".into(), ..resources::CRON_JOBS };
    let settings = Settings {
        served: Some(vec![resources::PODS, resources::JOBS, cron_jobs.clone(), resources::EVENTS]),
        ..Settings::default()
    };
    let collector = GarbageCollector::new(&settings);
    let watched: BTreeSet<Resource> = collector.watches().into_iter().map(|it| it.resource).collect();
    assert!(watched.contains(&cron_jobs) && !watched.contains(&resources::CRON_JOBS));
    assert!(!watched.contains(&resources::DEPLOYMENTS) && !watched.contains(&resources::EVENTS));

    let mut view = View::default();
    [&resources::PODS, &resources::JOBS, &cron_jobs].into_iter().for_each(|it| view.declare(it));
    let mut put = |resource: &Resource, kind: &str, api_version: &str| {
        let owners = json!([{"apiVersion": api_version, "kind": kind, "name": "o", "uid": kind}]);
        let object = json!({"metadata": {"name": kind, "namespace": "a", "uid": format!("of {kind}"), "ownerReferences": owners}});
        let watch = any(resource, Wake::Nobody);
        view.insert(resource, watch.decode(object.to_string().as_bytes()).expect("an object"));
    };
    put(&resources::PODS, "Workload", "scheduling.k8s.io/v1alpha1");
    put(&resources::JOBS, "CronJob", "batch/v1beta1");
    let effects = |owner: &str| collector.reconcile(&view, &Key::cluster(owner), Time::from_unix_seconds(0)).effects;
    assert_eq!(effects("Workload"), [], "nobody knows whether it is gone");
    let asked = Effect::Ask { resource: cron_jobs.clone(), key: Key::new("a", "o") };
    assert_eq!(effects("CronJob"), [asked], "in the version that is served");
}
