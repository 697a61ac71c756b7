//! `pods/NAME/resize`: a running Pod's containers get more or less processor time and memory.

use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::means_the_same,
    pod_spec,
    read::{items, text},
};
use serde_json::Value;

use super::host_ports;
use crate::keep;

/// The old Pod with the resources and resize policies that were asked for, container by container of the same name.
pub(super) fn taken(asked: &Value, old: &Value) -> Value {
    let mut new = old.clone();
    keep(&mut new["metadata"], &asked["metadata"], "resourceVersion");
    for list in ["containers", "initContainers"] {
        let (before, after) = (items(&old["spec"], &format!("/{list}")), items(&asked["spec"], &format!("/{list}")));
        let names = |list: &[Value]| list.iter().map(|it| it["name"].clone()).collect::<Vec<_>>();
        if names(before) != names(after) {
            // Validation says what is wrong with it.
            keep(&mut new["spec"], &asked["spec"], list);
            continue;
        }
        for (at, container) in after.iter().enumerate() {
            for field in ["resources", "resizePolicy"] {
                keep(&mut new["spec"][list][at], container, field);
            }
        }
    }
    keep(&mut new["spec"], &asked["spec"], "resources");
    new
}

pub(super) fn violations_of(new: &Value, old: &Value) -> Vec<Violation> {
    let refused = |detail: &str| vec![Violation::forbidden(Violation::WHOLE_OBJECT, detail)];
    if !old["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null() {
        return refused("static pods cannot be resized");
    }
    if old["spec"]["os"]["name"] == "windows" {
        return refused("windows pods cannot be resized");
    }
    violations(new, |pod| {
        let spec = pod.at("spec");
        pod_spec::validate(spec, &host_ports::open(&host_ports::noted(new)));
        if pod_spec::qos_class(old) != pod_spec::qos_class(new) {
            let class = text(new, "/status/qosClass");
            spec.invalid_as(class, "Pod QOS Class may not change as a result of resizing");
        }
        if !is_possible(old) {
            spec.forbidden("Pod running on node without support for resize");
        }
        let ordered = ["containers", "initContainers"].map(|list| same_containers(spec, list, &old["spec"]));
        if ordered == [true, true] {
            containers(spec, &old["spec"]);
        }
    })
}

/// A node that can do it shows what it gave to a container that runs.
fn is_possible(pod: &Value) -> bool {
    let running = items(pod, "/status/containerStatuses").iter().find(|it| it["state"]["running"].is_object());
    running.is_none_or(|it| it["resources"].is_object())
}

fn same_containers(spec: Cursor<'_>, list: &'static str, old: &Value) -> bool {
    let before = items(old, &format!("/{list}"));
    let now = spec.at(list);
    if now.items().len() != before.len() {
        now.forbidden(&format!("{list} may not be added or removed on resize"));
        return false;
    }
    let moved = now.each().zip(before).filter(|(now, before)| now.at("name").value() != &before["name"]);
    let moved: Vec<_> = moved.collect();
    let refused = format!("{list} may not be renamed or reordered on resize");
    moved.iter().for_each(|(now, _)| now.at("name").forbidden(&refused));
    moved.is_empty()
}

fn containers(spec: Cursor<'_>, old: &Value) {
    for (now, before) in spec.list("containers").zip(items(old, "/containers")) {
        nothing_removed(now.at("resources"), &before["resources"]);
        if !means_the_same(&without_compute(now.value(), before), before) {
            now.at("resources").forbidden("only cpu and memory resources are mutable");
        }
    }
    for (now, before) in spec.list("initContainers").zip(items(old, "/initContainers")) {
        if before["restartPolicy"] == "Always" {
            nothing_removed(now.at("resources"), &before["resources"]);
            if !means_the_same(&without_compute(now.value(), before), before) {
                now.at("resources").forbidden("only cpu and memory resources for sidecar containers are mutable");
            }
        } else if !means_the_same(now.value(), before) {
            now.at("resources").forbidden("resources for non-sidecar init containers are immutable");
        }
    }
    let of_pod = spec.at("resources");
    nothing_removed(of_pod, &old["resources"]);
    let mut after = of_pod.value().clone();
    compute_as_before(&mut after, &old["resources"]);
    if !means_the_same(&after, &old["resources"]) {
        spec.forbidden("only cpu and memory resources are mutable at pod-level");
    }
}

fn nothing_removed(resources: Cursor<'_>, old: &Value) {
    for side in ["requests", "limits"] {
        let now = &resources.value()[side];
        if old[side].as_object().into_iter().flatten().any(|(name, _)| now[name].is_null()) {
            resources.at(side).forbidden(&format!("resource {side} cannot be removed"));
        }
    }
}

/// The container as it would be if only other things were asked for.
fn without_compute(container: &Value, old: &Value) -> Value {
    let mut container = container.clone();
    keep(&mut container, old, "resizePolicy");
    compute_as_before(&mut container["resources"], &old["resources"]);
    container
}

fn compute_as_before(resources: &mut Value, old: &Value) {
    for side in ["requests", "limits"] {
        for name in ["cpu", "memory"] {
            let before = &old[side][name];
            if !before.is_null() {
                resources[side][name] = before.clone();
            } else if let Some(amounts) = resources.get_mut(side).and_then(Value::as_object_mut) {
                amounts.shift_remove(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
}
