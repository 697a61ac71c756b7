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
            meta.map_or(Vec::new(), |it| uids(&view, it)).into_iter().map(|it| it.name).collect()
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
    assert_eq!(uids(&view_of(&[(resources::PODS, &pod)]), &gone), [Key::cluster("set")]);
    assert!(uids(&view_of(&[]), &gone).is_empty());
}
