use serde_json::json;

use super::*;
use corten_validation::fill::made;

fn pod(resources: &Value) -> Value {
    let mut pod = json!({
        "metadata": { "name": "p", "resourceVersion": "1" },
        "spec": { "containers": [{ "name": "c", "image": "i", "resources": resources }] },
        "status": { "qosClass": "Burstable" },
    });
    let spec = pod.as_object_mut().and_then(|it| made(it, "spec")).expect("there is a spec");
    pod_spec::default(spec);
    pod_spec::default_requests(spec, |_| false);
    pod
}

#[test]
fn only_compute_changes() {
    let at = "spec.containers[0].resources";
    for (old, new, expected) in [
        (json!({ "requests": { "cpu": "1" } }), json!({ "requests": { "cpu": "2" } }), vec![]),
        (
            json!({ "requests": { "cpu": "1" } }),
            json!({ "requests": { "cpu": "1", "memory": "1Gi" }, "limits": { "memory": "2Gi" } }),
            vec![],
        ),
        (
            json!({ "requests": { "cpu": "1", "memory": "1" } }),
            json!({ "requests": { "cpu": "1" } }),
            vec![format!("{at}.requests: Forbidden: resource requests cannot be removed")],
        ),
        (
            json!({ "requests": { "cpu": "1" } }),
            json!({ "requests": { "cpu": "1", "ephemeral-storage": "1" } }),
            vec![format!("{at}: Forbidden: only cpu and memory resources are mutable")],
        ),
        (
            json!({ "requests": { "cpu": "1", "memory": "1" } }),
            json!({ "requests": { "cpu": "1", "memory": "1" }, "limits": { "cpu": "1", "memory": "1" } }),
            vec!["spec: Invalid value: \"Burstable\": Pod QOS Class may not change as a result of resizing".into()],
        ),
    ] {
        let (old, asked) = (pod(&old), pod(&new));
        let found = violations_of(&taken(&asked, &old), &old);
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{new}");
    }
}

#[test]
fn some_pods_stay_as_they_are() {
    let old = pod(&json!({ "requests": { "cpu": "1" } }));
    for (pointer, value, expected) in [
        ("/metadata/annotations", json!({ "kubernetes.io/config.mirror": "x" }), "static pods cannot be resized"),
        ("/spec/os", json!({ "name": "windows" }), "windows pods cannot be resized"),
        (
            "/status/containerStatuses",
            json!([{ "name": "c", "state": { "running": {} } }]),
            "Pod running on node without support for resize",
        ),
    ] {
        let mut old = old.clone();
        let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
        old.pointer_mut(parent).expect("there").as_object_mut().expect("an object").insert(key.into(), value);
        let found = violations_of(&old, &old);
        assert!(found.iter().any(|it| it.message.contains(expected)), "{found:?}");
    }
}

#[test]
fn containers_stay_who_they_are() {
    let old = pod(&json!({}));
    let mut asked = old.clone();
    asked["spec"]["containers"][0]["name"] = json!("other");
    let found = violations_of(&taken(&asked, &old), &old);
    assert_eq!(
        found[0].to_string(),
        "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"
    );
}
