//! What the author of a Pod or of a template should know of it, though it is accepted.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use corten_meta::field;
use corten_schema::Cursor;
use serde_json::Value;

/// Labels of nodes that nobody should ask for any more, and what to do instead (`deprecatedNodeLabels`).
const OLD_LABELS: [(&str, &str); 8] = [
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    ("beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    ("failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
];
/// Annotations that have become fields.
const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
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
pub enum Name {
    Nothing,
    /// It becomes a part of other names.
    OfPods,
    OfHost,
}

/// Of an object that has a Pod's spec at the end of `steps`; of an update that changes it. Only who makes it is told of its
/// name.
pub fn warnings(new: &Value, old: Option<&Value>, steps: &[&'static str], name: Name) -> Vec<String> {
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
    if let Some(used) = used.filter(|_| old.is_none() && !reasons.is_empty()) {
        let reasons = reasons.join(" ");
        found.push(format!("metadata.name: this is used in {used}, which can result in surprising behavior; a DNS label is recommended: [{reasons}]"));
    }
    corten_schema::violations(new, |object| {
        let template = steps[..steps.len() - 1].iter().fold(object, |object, step| object.at(step));
        let is_template = steps.len() > 1;
        found.extend(of_template(template, is_template));
    });
    found
}

/// Of volumes' sources that are going or gone, wherever they stand.
pub fn old_sources(volume: Cursor<'_>, found: &mut Vec<String>) {
    for (source, what) in OLD_SOURCES.iter().filter(|it| volume.at(it.0).exists()) {
        let path = volume.at(source).path();
        // The message has the field's name in Go.
        let path = path.strip_suffix("storageos").map_or_else(|| path.clone(), |it| format!("{it}storageOS"));
        found.push(format!("{path}: {what}"));
    }
}

/// Of a Pod, or of a template of Pods (warningsForPodSpecAndMeta).
fn of_template(template: Cursor<'_>, is_template: bool) -> Vec<String> {
    let mut found = of_spec(template.at("spec"));
    let (annotations, spec) = (template.at("metadata").at("annotations"), template.at("spec"));
    for (key, what) in OLD_ANNOTATIONS.iter().filter(|it| annotations.at(it.0).exists()) {
        found.push(format!("{}[{key}]: {what}", annotations.path()));
    }
    let mut use_field = |field: &str, since: &str, key: String| {
        if annotations.map().is_some_and(|it| it.contains_key(&key)) {
            found.push(format!("{}[{key}]: {since}; use the {field:?} field instead", annotations.path()));
        }
    };
    let context = spec.at("securityContext");
    if !context.at("seccompProfile").exists() {
        use_field("seccompProfile", NO_LONGER, "seccomp.security.alpha.kubernetes.io/pod".into());
    }
    for container in containers(spec) {
        let (own, name) = (container.at("securityContext"), container.at("name").str());
        if !own.at("seccompProfile").exists() {
            let key = format!("container.seccomp.security.alpha.kubernetes.io/{name}");
            use_field("seccompProfile", NO_LONGER, key);
        }
        // A Pod's annotation becomes the field: of that the Pod's own defaults tell.
        if is_template && !context.at("appArmorProfile").exists() && !own.at("appArmorProfile").exists() {
            let key = format!("container.apparmor.security.beta.kubernetes.io/{name}");
            use_field("appArmorProfile", "deprecated since v1.30", key);
        }
    }
    found
}

const NO_LONGER: &str = "non-functional in v1.27+";

fn containers(spec: Cursor<'_>) -> impl Iterator<Item = Cursor<'_>> {
    ["initContainers", "containers", "ephemeralContainers"].into_iter().flat_map(move |it| spec.list(it))
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
    old_terms(required.chain(preferred), &mut found);
    old_keys(spec.list("topologySpreadConstraints").map(|it| it.at("topologyKey")), &mut found);
    for volume in spec.list("volumes") {
        old_sources(volume, &mut found);
    }
    let mut aliases = BTreeSet::new();
    for ip in spec.list("hostAliases").map(|it| it.at("ip")) {
        if !aliases.insert(ip.str()) {
            found.push(format!("{}: duplicate ip {:?}", ip.path(), ip.str()));
        }
    }
    secrets(spec, &mut found);
    fractions(spec.at("overhead"), &mut found);
    for container in containers(spec) {
        self::container(container, &mut found);
    }
    ports(spec, &mut found);
    port_names(spec, &mut found);
    let grace = spec.at("terminationGracePeriodSeconds");
    if grace.int() < 0 {
        found.push(format!("{}: must be >= 0; negative values are invalid and will be treated as 1", grace.path()));
    }
    found
}

pub(crate) fn old_label(key: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|it| it.0 == key).map(|it| it.1)
}

/// Of keys in the terms of a selector of nodes.
pub(crate) fn old_terms<'a>(terms: impl Iterator<Item = Cursor<'a>>, found: &mut Vec<String>) {
    old_keys(terms.flat_map(|it| it.list("matchExpressions")).map(|it| it.at("key")), found);
}

fn old_keys<'a>(keys: impl Iterator<Item = Cursor<'a>>, found: &mut Vec<String>) {
    for key in keys {
        found.extend(old_label(key.str()).map(|what| format!("{}: {} is {what}", key.path(), key.str())));
    }
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
    for amounts in ["limits", "requests"].map(|it| container.at("resources").at(it)) {
        fractions(amounts, found);
    }
    let mut names = BTreeSet::new();
    for variable in container.list("env") {
        let name = variable.at("name").str();
        let builds_on_it = || {
            let (value, itself) = (variable.at("value").str(), format!("$({name})"));
            !variable.at("valueFrom").exists() && value != itself && value.contains(&itself)
        };
        if !names.insert(name) && !builds_on_it() {
            let path = variable.path();
            found.push(format!("{path}: hides previous definition of {name:?}, which may be dropped when using apply"));
        }
    }
}

fn fractions(amounts: Cursor<'_>, found: &mut Vec<String>) {
    let amounts = amounts.entries().filter(|it| matches!(it.0, "memory" | "ephemeral-storage"));
    found.extend(amounts.filter_map(|(_, amount)| fraction(amount, &amount.path())));
}

/// Of an amount of bytes that is said to be at `path`.
pub(crate) fn fraction(amount: Cursor<'_>, path: &str) -> Option<String> {
    let is_fraction = amount.quantity().is_some_and(|it| it != corten_meta::Quantity::units(it.value()));
    let shown = amount.str();
    is_fraction.then(|| format!("{path}: fractional byte value {shown:?} is invalid, must be an integer"))
}

/// Ports of one number, in whichever container.
fn ports(spec: Cursor<'_>, found: &mut Vec<String>) {
    let mut known: BTreeMap<(i64, &str), Vec<Cursor<'_>>> = BTreeMap::new();
    for port in containers(spec).flat_map(|it| it.list("ports")) {
        let others = known.entry((port.at("containerPort").int(), port.at("protocol").str())).or_default();
        let place = |it: Cursor<'_>| (it.at("hostPort").int(), it.at("hostIP").str().to_owned());
        let (host_port, host_ip) = place(port);
        for other in &*others {
            let (other_port, other_ip) = place(*other);
            let how = if (host_port, &host_ip) == (other_port, &other_ip) {
                "duplicate"
            } else if host_port == 0 || other_port == 0 {
                "overlapping"
            } else if host_port == other_port && host_ip.is_empty() != other_ip.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            found.push(format!("{}: {how} port definition with {}", port.path(), other.path()));
        }
        // Each is compared with some: whoever lists ten thousand of them is told of a few.
        if others.len() < OTHERS_MAX {
            others.push(port);
        }
    }
}

const OTHERS_MAX: usize = 16;

/// A name of a port that several containers that run at one time have: who looks for it finds the first.
fn port_names(spec: Cursor<'_>, found: &mut Vec<String>) {
    let sidecars = spec.list("initContainers").filter(|it| it.at("restartPolicy").str() == "Always");
    let mut known: BTreeMap<&str, String> = BTreeMap::new();
    for port in sidecars.chain(spec.list("containers")).flat_map(|it| it.list("ports")) {
        let name = port.at("name").str();
        match known.entry(name) {
            _ if name.is_empty() => {}
            Entry::Vacant(first) => drop(first.insert(port.path())),
            Entry::Occupied(first) => {
                let first = first.get();
                found.push(format!(
                    "{}: duplicate port name {name:?} with {first}, services and probes that select ports by name will use {first}",
                    port.path()
                ));
            }
        }
    }
}
