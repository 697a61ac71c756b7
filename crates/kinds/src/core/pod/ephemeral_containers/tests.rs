use serde_json::json;

use super::*;
use crate::{KINDS, Subresource};
use corten_validation::fill::made;

fn pod(ephemeral: &Value) -> Value {
    let mut pod = json!({
        "metadata": { "name": "p", "resourceVersion": "1" },
        "spec": { "containers": [{ "name": "c", "image": "i" }], LIST: ephemeral },
    });
    let spec = pod.as_object_mut().and_then(|it| made(it, "spec")).expect("there is a spec");
    pod_spec::default(spec);
    pod
}

#[test]
fn they_only_come() {
    let (a, b) = (json!({ "name": "a", "image": "i" }), json!({ "name": "b", "image": "i" }));
    let changed = json!({ "name": "a", "image": "j" });
    let path = "spec.ephemeralContainers";
    for (old, new, expected) in [
        (json!([]), json!([a]), vec![]),
        (json!([a]), json!([b, a]), vec![]),
        (
            json!([a]),
            json!([b]),
            vec![format!("{path}: Forbidden: existing ephemeral containers \"a\" may not be removed\n")],
        ),
        (
            json!([a]),
            json!([changed]),
            vec![format!(
                "{path}: Forbidden: existing ephemeral containers \"a\" may not be changed\nimage: \"i\" -> \"j\""
            )],
        ),
        (json!([]), json!([{ "name": "c", "image": "i" }]), vec![format!("{path}[0].name: Duplicate value: \"c\"")]),
        (
            json!([]),
            json!([{ "name": "d", "image": "i", "targetContainerName": "x", "ports": [{ "containerPort": 1 }] }]),
            vec![
                format!("{path}[0].targetContainerName: Not found: \"x\""),
                format!("{path}[0].ports: Forbidden: cannot be set for an Ephemeral Container"),
            ],
        ),
    ] {
        let (old, new) = (pod(&old), pod(&new));
        let found: Vec<String> = violations_of(&new, &old).iter().map(ToString::to_string).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn nothing_else_changes() {
    let policy = &KINDS.iter().find(|it| it.resource.plural == "pods").expect("pods are a row").policy;
    let old = pod(&json!([]));
    let mut asked = pod(&json!([{ "name": "a", "image": "i" }]));
    asked["spec"]["containers"][0]["image"] = json!("other");
    let new = policy.take_part(Subresource::EphemeralContainers, &asked, &old);
    assert_eq!(new["spec"]["containers"], old["spec"]["containers"]);
    assert_eq!(new["spec"][LIST], asked["spec"][LIST]);
}
