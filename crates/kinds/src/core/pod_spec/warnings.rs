//! What the author of a Pod or of a template should know of it, though it is accepted.

use std::collections::{BTreeMap, BTreeSet};

use corten_meta::field;
use corten_schema::Cursor;
use serde_json::Value;

/// Labels of nodes that have newer names, and since when.
const OLD_LABELS: [(&str, &str, &str); 5] = [
    ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "v1.17", "node.kubernetes.io/instance-type"),
    ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
    ("failure-domain.beta.kubernetes.io/region", "v1.17", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "v1.17", "topology.kubernetes.io/zone"),
];
const OLD_SOURCES: [(&str, &str); 9] = [
    ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
];

/// What a kind's name is used for beside naming it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Name {
    Nothing,
    /// It becomes a part of other names.
    OfPods,
    OfHost,
}

/// Of an object that has a Pod's spec at the end of `steps`; of an update that changes it.
pub(crate) fn warnings(new: &Value, old: Option<&Value>, steps: &[&'static str], name: Name) -> Vec<String> {
    let pointer = format!("/{}", steps.join("/"));
    if old.is_some_and(|old| old.pointer(&pointer) == new.pointer(&pointer)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let used = match name {
        Name::Nothing => None,
        Name::OfPods => Some("Pod names and hostnames"),
        Name::OfHost => Some("the Pod's hostname"),
    };
    let reasons = field::dns1123_label(new["metadata"]["name"].as_str().unwrap_or_default());
    if let Some(used) = used.filter(|_| !reasons.is_empty()) {
        let reasons = reasons.join(" ");
        found.push(format!("metadata.name: this is used in {used}, which can result in surprising behavior; a DNS label is recommended: [{reasons}]"));
    }
    corten_schema::violations(new, |object| {
        found.extend(of_spec(steps.iter().fold(object, |object, step| object.at(step))));
    });
    found
}

/// Of a Pod's or a template's spec.
fn of_spec(spec: Cursor<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for (key, it) in spec.at("nodeSelector").entries() {
        found.extend(old_label(key).map(|what| format!("{}: {what}", it.path())));
    }
    let affinity = spec.at("affinity").at("nodeAffinity");
    let required = affinity.at("requiredDuringSchedulingIgnoredDuringExecution").list("nodeSelectorTerms");
    let preferred = affinity.list("preferredDuringSchedulingIgnoredDuringExecution").map(|it| it.at("preference"));
    let keys = required.chain(preferred).flat_map(|it| it.list("matchExpressions")).map(|it| it.at("key"));
    let spread = spec.list("topologySpreadConstraints").map(|it| it.at("topologyKey"));
    for key in keys.chain(spread) {
        found.extend(old_label(key.str()).map(|what| format!("{}: {} is {what}", key.path(), key.str())));
    }
    for volume in spec.list("volumes") {
        let old = OLD_SOURCES.iter().filter(|it| volume.at(it.0).exists());
        found.extend(old.map(|(source, what)| format!("{}: {what}", volume.at(source).path())));
    }
    secrets(spec, &mut found);
    for container in ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(|it| spec.list(it)) {
        self::container(container, &mut found);
    }
    let grace = spec.at("terminationGracePeriodSeconds");
    if grace.int() < 0 {
        found.push(format!("{}: must be >= 0; negative values are invalid and will be treated as 1", grace.path()));
    }
    found
}

fn old_label(key: &str) -> Option<String> {
    let (_, since, new) = OLD_LABELS.iter().find(|it| it.0 == key)?;
    Some(format!("deprecated since {since}; use {new:?} instead"))
}

fn secrets(spec: Cursor<'_>, found: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for name in spec.list("imagePullSecrets").map(|it| it.at("name")) {
        if name.is_empty() {
            found.push(format!("{}: invalid empty name \"\"", name.path()));
        } else if seen.contains(name.str()) {
            found.push(format!("{}: duplicate name {:?}", name.path(), name.str()));
        }
        seen.insert(name.str());
    }
}

fn container(container: Cursor<'_>, found: &mut Vec<String>) {
    let mut names = BTreeSet::new();
    for variable in container.list("env") {
        let name = variable.at("name").str();
        if !names.insert(name) {
            let path = variable.path();
            found.push(format!("{path}: hides previous definition of {name:?}, which may be dropped when using apply"));
        }
    }
    let mut ports: BTreeMap<(i64, i64, &str, &str), String> = BTreeMap::new();
    for port in container.list("ports") {
        let place = (
            port.at("containerPort").int(),
            port.at("hostPort").int(),
            port.at("protocol").str(),
            port.at("hostIP").str(),
        );
        match ports.get(&place) {
            Some(first) => found.push(format!("{}: duplicate port definition with {first}", port.path())),
            None => {
                ports.insert(place, port.path());
            }
        }
    }
    for amount in ["limits", "requests"].into_iter().flat_map(|it| container.at("resources").at(it).entries()) {
        let (name, amount) = amount;
        let is_fraction = amount.quantity().is_some_and(|it| it != corten_meta::Quantity::units(it.value()));
        if matches!(name, "memory" | "ephemeral-storage") && is_fraction {
            let shown = amount.str();
            found.push(format!("{}: fractional byte value {shown:?} is invalid, must be an integer", amount.path()));
        }
    }
}
