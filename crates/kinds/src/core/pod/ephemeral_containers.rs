//! `pods/NAME/ephemeralcontainers`: containers that join a Pod for a look around. They are added, and never changed.

use std::collections::{BTreeMap, BTreeSet};

use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::{fill::means_the_same, pod_spec};
use serde_json::Value;

use super::host_ports;
use crate::keep;

const LIST: &str = "ephemeralContainers";
/// What makes a container part of the Pod's work is not for one that only looks.
const NOT_THEIRS: [&str; 8] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];
const NOT_FOR_THEM: &str = "cannot be set for an Ephemeral Container";

pub(super) fn taken(asked: &Value, old: &Value) -> Value {
    let mut new = old.clone();
    keep(&mut new["spec"], &asked["spec"], LIST);
    keep(&mut new["metadata"], &asked["metadata"], "resourceVersion");
    new
}

pub(super) fn violations_of(new: &Value, old: &Value) -> Vec<Violation> {
    if !old["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_null() {
        return vec![Violation::forbidden(Violation::WHOLE_OBJECT, "static pods do not support ephemeral containers")];
    }
    violations(new, |pod| {
        let spec = pod.at("spec");
        pod_spec::validate(spec, &host_ports::open(&host_ports::noted(new)));
        let containers = spec.list("containers").chain(spec.list("initContainers"));
        let targets: BTreeSet<&str> = containers.map(|it| it.at("name").str()).collect();
        spec.list(LIST).for_each(|it| particular(&targets, it));
        let mut now: BTreeMap<&str, &Value> = BTreeMap::new();
        for container in spec.at(LIST).items() {
            now.entry(container["name"].as_str().unwrap_or_default()).or_insert(container);
        }
        for before in old["spec"][LIST].as_array().into_iter().flatten() {
            kept(spec.at(LIST), &now, before);
        }
    })
}

fn particular(targets: &BTreeSet<&str>, container: Cursor<'_>) {
    let wanted = container.at("targetContainerName");
    if !wanted.is_empty() && !targets.contains(wanted.str()) {
        wanted.not_found();
    }
    for field in NOT_THEIRS.map(|it| container.at(it)) {
        // Defaults give every container an empty `resources`.
        if !field.is_empty() {
            field.forbidden(NOT_FOR_THEM);
        }
    }
    for mount in container.list("volumeMounts") {
        for field in ["subPath", "subPathExpr"].map(|it| mount.at(it)) {
            if !field.is_empty() {
                field.forbidden(NOT_FOR_THEM);
            }
        }
    }
}

/// A patch may reorder them: they are known by their names.
fn kept(list: Cursor<'_>, now: &BTreeMap<&str, &Value>, before: &Value) {
    let name = before["name"].as_str().unwrap_or_default();
    match now.get(name) {
        None => list.forbidden(&format!("existing ephemeral containers {name:?} may not be removed\n")),
        Some(now) if !means_the_same(now, before) => {
            let difference = corten_validation::difference("", before, now);
            list.forbidden(&format!("existing ephemeral containers {name:?} may not be changed\n{difference}"));
        }
        Some(_) => {}
    }
}

#[cfg(test)]
mod tests;
