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
mod tests;
