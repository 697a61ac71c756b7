//! Patches as kubectl sends them, and a property: what a differ takes apart, the patch puts together.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::strategic;

const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";
const POD: &str = "io.k8s.api.core.v1.Pod";

fn pod(containers: Value) -> Value {
    json!({"spec": {"containers": containers}})
}

#[test]
fn kubectl_patches_apply() {
    let deployment = json!({
        "metadata": {"name": "web", "labels": {"app": "web"}, "finalizers": ["a", "b"]},
        "spec": {
            "replicas": 3,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
            "template": {"spec": {
                "containers": [
                    {"name": "user", "image": "user:1", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
                    {"name": "redis", "image": "redis:5.0", "args": ["--a", "--b"]}],
                "volumes": [{"name": "data", "emptyDir": {}}]}}}});
    let with = |change: fn(&mut Value)| {
        let mut copy = deployment.clone();
        change(&mut copy);
        copy
    };
    let cases: [(&str, Value, Value); 10] = [
        // kubectl set image
        (
            "set image",
            json!({"spec": {"template": {"spec": {
                "$setElementOrder/containers": [{"name": "user"}, {"name": "redis"}],
                "containers": [{"name": "redis", "image": "redis:6.0"}]}}}}),
            with(|it| it["spec"]["template"]["spec"]["containers"][1]["image"] = json!("redis:6.0")),
        ),
        ("scale", json!({"spec": {"replicas": 5}}), with(|it| it["spec"]["replicas"] = json!(5))),
        // kubectl apply: a container goes, another comes first.
        (
            "apply",
            json!({"spec": {"template": {"spec": {
                "$setElementOrder/containers": [{"name": "mysql"}, {"name": "user"}],
                "containers": [{"name": "mysql", "image": "mysql"}, {"$patch": "delete", "name": "redis"}]}}}}),
            with(|it| {
                let user = it["spec"]["template"]["spec"]["containers"][0].clone();
                it["spec"]["template"]["spec"]["containers"] = json!([{"name": "mysql", "image": "mysql"}, user]);
            }),
        ),
        (
            "retain keys",
            json!({"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}),
            with(|it| it["spec"]["strategy"] = json!({"type": "Recreate"})),
        ),
        (
            "a volume changes its source",
            json!({"spec": {"template": {"spec": {"volumes": [
                {"$retainKeys": ["name", "hostPath"], "name": "data", "hostPath": {"path": "/x"}, "emptyDir": null}]}}}}),
            with(|it| {
                it["spec"]["template"]["spec"]["volumes"] = json!([{"name": "data", "hostPath": {"path": "/x"}}]);
            }),
        ),
        (
            "sets",
            json!({"metadata": {
                "$deleteFromPrimitiveList/finalizers": ["a"],
                "$setElementOrder/finalizers": ["c", "b"],
                "finalizers": ["c"]}}),
            with(|it| it["metadata"]["finalizers"] = json!(["c", "b"])),
        ),
        (
            "null deletes, a list without a strategy is replaced",
            json!({"metadata": {"labels": {"app": null, "new": "x"}},
                "spec": {"template": {"spec": {"containers": [{"name": "redis", "args": ["--c"]}]}}}}),
            with(|it| {
                it["metadata"]["labels"] = json!({"new": "x"});
                // `normalizeElementOrder`: what the patch names and both have keeps the server's order.
                it["spec"]["template"]["spec"]["containers"][1]["args"] = json!(["--c"]);
            }),
        ),
        (
            "replace a list",
            json!({"spec": {"template": {"spec": {"containers": [{"$patch": "replace"}, {"name": "x"}]}}}}),
            with(|it| it["spec"]["template"]["spec"]["containers"] = json!([{"name": "x"}])),
        ),
        (
            "replace an object",
            json!({"spec": {"strategy": {"$patch": "replace", "type": "Recreate"}}}),
            with(|it| it["spec"]["strategy"] = json!({"type": "Recreate"})),
        ),
        (
            "ports merge by container port",
            json!({"spec": {"template": {"spec": {"containers": [
                {"name": "user", "ports": [{"containerPort": 81}, {"containerPort": 80, "name": "http"}]}]}}}}),
            with(|it| {
                it["spec"]["template"]["spec"]["containers"][0]["ports"] = json!([
                    {"containerPort": 81}, {"containerPort": 80, "protocol": "TCP", "name": "http"}]);
            }),
        ),
    ];
    for (name, patch, expected) in cases {
        assert_eq!(strategic(DEPLOYMENT, deployment.clone(), &patch).expect(name), expected, "{name}");
    }
}

#[test]
fn only_an_order_moves_elements_and_keeps_the_servers_own_between() {
    let original = pod(json!([{"name": "a"}, {"name": "own"}, {"name": "b"}]));
    let patch = json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]}});
    let expected = pod(json!([{"name": "own"}, {"name": "b"}, {"name": "a"}]));
    assert_eq!(strategic(POD, original, &patch), Ok(expected));
}

#[test]
fn large_sets_and_keyed_lists_merge() {
    let names: Vec<String> = (0..100_000).map(|it| format!("e{it}")).collect();
    let reversed: Vec<&String> = names.iter().rev().collect();
    let object = json!({"metadata": {"finalizers": reversed}});
    let merged = strategic(POD, object.clone(), &json!({"metadata": {"finalizers": names}})).expect("it merges");
    assert_eq!(merged, json!({"metadata": {"finalizers": names}}));
    let gone = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": &names[1..]}});
    assert_eq!(strategic(POD, object, &gone).expect("it merges"), json!({"metadata": {"finalizers": ["e0"]}}));

    let before: Vec<Value> = names.iter().map(|it| json!({"name": it, "image": "a"})).collect();
    let changes: Vec<Value> = names.iter().rev().map(|it| json!({"name": it, "image": "b"})).collect();
    let patch = json!({"spec": {"$setElementOrder/containers": changes, "containers": changes}});
    let merged = strategic(POD, pod(json!(before)), &patch).expect("it merges");
    assert_eq!(merged["spec"]["containers"], json!(changes));
}

#[test]
fn bad_patches_are_refused() {
    for (patch, message) in [
        (json!([]), "invalid JSON document"),
        (
            json!({"spec": {"containers": [{"image": "x"}]}}),
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (json!({"spec": {"$patch": "merge"}}), "unknown patch type: merge in map: map[$patch:merge]"),
        (json!({"spec": {"$retainKeys": "x"}}), "invalid patch format of retainKeys"),
        (json!({"spec": {"$retainKeys": ["a"], "b": 1}}), "invalid patch format of retainKeys"),
        (json!({"metadata": {"$deleteFromPrimitiveList/finalizers": 1}}), "invalid patch format of primitive list"),
        (json!({"spec": {"$setElementOrder/containers": {}}}), "invalid patch format of setElementOrder list"),
        (
            json!({"spec": {"$setElementOrder/containers": [{"name": "x"}], "containers": [{"name": "a", "image": "y"}]}}),
            "The order in patch list:\n[map[image:y name:a]]\n doesn't match $setElementOrder list:\n[map[name:x]]\n",
        ),
    ] {
        let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "i"}]}});
        let error = strategic(POD, pod, &patch).expect_err(message);
        assert_eq!(error.to_string(), message);
        // Some errors have a code, the others are the server's own.
        let has_code = message.starts_with("invalid");
        assert_eq!(error.status().code, if has_code { 400 } else { 500 }, "{message}");
    }
}

/// A Pod with a keyed list, a set, a map and an atomic list.
fn some_pod() -> impl Strategy<Value = Value> {
    let names = || proptest::sample::subsequence(vec!["a", "b", "c", "d", "e"], 0..=5).prop_shuffle();
    (names(), names(), names(), names(), 0..3_u8).prop_map(|(containers, finalizers, labels, args, image)| {
        let containers: Vec<Value> =
            containers.iter().map(|it| json!({"name": it, "image": format!("{it}:{image}"), "args": args})).collect();
        let labels: serde_json::Map<String, Value> =
            labels.iter().map(|it| ((*it).to_owned(), json!(image.to_string()))).collect();
        json!({"metadata": {"labels": labels, "finalizers": finalizers}, "spec": {"containers": containers}})
    })
}

/// The patch a client that knows both objects sends.
fn difference(old: &Value, new: &Value) -> Value {
    let list = |of: &Value, at: &str| of.pointer(at).and_then(Value::as_array).cloned().unwrap_or_default();
    let (old_containers, new_containers) = (list(old, "/spec/containers"), list(new, "/spec/containers"));
    let named = |list: &[Value], item: &Value| list.iter().any(|it| it["name"] == item["name"]);
    let mut containers: Vec<Value> = new_containers.iter().filter(|it| !old_containers.contains(it)).cloned().collect();
    let gone = old_containers.iter().filter(|it| !named(&new_containers, it));
    containers.extend(gone.map(|it| json!({"$patch": "delete", "name": it["name"]})));
    let (old_set, new_set) = (list(old, "/metadata/finalizers"), list(new, "/metadata/finalizers"));
    let mut labels = new["metadata"]["labels"].clone();
    for key in old["metadata"]["labels"].as_object().expect("labels").keys() {
        if labels.get(key).is_none() {
            labels[key] = Value::Null;
        }
    }
    json!({
        "metadata": {
            "labels": labels,
            "finalizers": new_set.iter().filter(|it| !old_set.contains(it)).collect::<Vec<_>>(),
            "$deleteFromPrimitiveList/finalizers": old_set.iter().filter(|it| !new_set.contains(it)).collect::<Vec<_>>(),
            "$setElementOrder/finalizers": new_set},
        "spec": {
            "containers": containers,
            "$setElementOrder/containers":
                new_containers.iter().map(|it| json!({"name": it["name"]})).collect::<Vec<_>>()}})
}

proptest! {
    #[test]
    fn a_difference_applied_gives_the_new_object(old in some_pod(), new in some_pod()) {
        let patched = strategic(POD, old.clone(), &difference(&old, &new)).expect("a sound patch");
        prop_assert_eq!(&patched["spec"], &new["spec"]);
        prop_assert_eq!(&patched["metadata"]["finalizers"], &new["metadata"]["finalizers"]);
        // Maps keep no order.
        prop_assert!(patched["metadata"]["labels"] == new["metadata"]["labels"]);
        let again = strategic(POD, patched.clone(), &difference(&patched, &new)).expect("a sound patch");
        prop_assert_eq!(again, patched);
    }
}
