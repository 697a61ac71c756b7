//! Ports that are chosen for a Pod with its node's network: which those are is noted when it is created, and their numbers stand in
//! its spec from its binding on.

use core::ops::RangeInclusive;
use std::collections::{BTreeMap, BTreeSet};

use corten_api::host_ports::{HOST, HOST_PORTS, NETWORK, Noted, POD};
use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{Object, each, inner, made, text},
    read,
};
use serde_json::{Value, json};

/// What the API server has noted of a Pod. Nothing where that cannot be read.
pub fn noted(pod: &Value) -> Noted {
    let note = pod["metadata"]["annotations"][HOST_PORTS].as_str();
    note.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default()
}

/// Whether annotations ask for the node's network; `None` where they say nothing of it.
///
/// # Errors
/// They say something else.
pub fn wants(annotations: &Value) -> Result<Option<bool>, Violation> {
    let path = || format!("metadata.annotations[{NETWORK}]");
    match annotations[NETWORK].as_str() {
        None => Ok(None),
        Some(HOST) => Ok(Some(true)),
        Some(POD) => Ok(Some(false)),
        Some(other) => Err(Violation::not_supported(path(), other, &[HOST, POD])),
    }
}

/// The names of those that are still to be chosen.
pub(super) fn open(noted: &Noted) -> BTreeSet<&str> {
    noted.iter().filter(|it| *it.1 == 0).map(|it| &**it.0).collect()
}

/// Which ports of a Pod do not get the default of others. One that asks for its ports by itself may ask for the node's network in
/// Kubernetes's way, too.
pub(super) fn openness(pod: &Value) -> impl Fn(&Object) -> bool + use<> {
    let annotations = &pod["metadata"]["annotations"];
    let noted = annotations.get(HOST_PORTS).map(|_| noted(pod));
    let are_all = noted.is_none() && annotations[NETWORK] == HOST && !is_mirror(pod);
    move |port| are_all || noted.as_ref().is_some_and(|it| it.get(text(port, "name")) == Some(&0))
}

/// Does it show a static Pod, which has no binding?
pub fn is_mirror(pod: &Value) -> bool {
    pod["metadata"]["annotations"].get("kubernetes.io/config.mirror").is_some()
}

/// Gives a Pod its node's network, and notes which ports are to be chosen. What it did before it does again, and nothing else.
pub fn complete(pod: &mut Value) {
    let Some(spec) = inner_of(pod, "spec") else { return };
    spec.insert("hostNetwork".into(), true.into());
    if text(spec, "dnsPolicy") == "ClusterFirst" {
        spec.insert("dnsPolicy".into(), "ClusterFirstWithHostNet".into());
    }
    let mut open = Noted::new();
    for list in ["containers", "initContainers"] {
        for container in each(spec, list) {
            let may_choose = list == "containers" || text(container, "restartPolicy") == "Always";
            for port in each(container, "ports").filter(|it| is_unset(it.get("hostPort"))) {
                if may_choose {
                    open.insert(text(port, "name").to_owned(), 0);
                } else if let Some(number) = port.get("containerPort").cloned() {
                    // As Kubernetes fills it in. It ends before the others begin, and its port is not reserved.
                    port.insert("hostPort".into(), number);
                }
            }
        }
    }
    note(pod, &open);
}

/// Lets the ports of a Pod that was made of another's manifest, note and all, be chosen anew: `kubectl debug --copy-to` makes such,
/// and whoever restores what was saved.
pub fn reopen(pod: &mut Value) {
    let noted = noted(pod);
    let Some(spec) = inner_of(pod, "spec") else { return };
    for list in ["containers", "initContainers"] {
        for port in each(spec, list).flat_map(|it| each(it, "ports")) {
            let chosen = noted.get(text(port, "name")).map(|it| u64::from(*it));
            if chosen.is_some() && port.get("hostPort").and_then(Value::as_u64) == chosen {
                port.shift_remove("hostPort");
            }
        }
    }
}

/// Takes back what was noted, where the node's network is not asked for any more.
pub fn forget(pod: &mut Value) {
    note(pod, &Noted::new());
}

fn note(pod: &mut Value, ports: &Noted) {
    let Some(metadata) = inner_of(pod, "metadata") else { return };
    if !ports.is_empty() {
        if let Some(annotations) = made(metadata, "annotations") {
            annotations.insert(HOST_PORTS.into(), json!(ports).to_string().into());
        }
    } else if let Some(annotations) = inner(metadata, "annotations") {
        annotations.shift_remove(HOST_PORTS);
    }
}

fn inner_of<'v>(pod: &'v mut Value, field: &str) -> Option<&'v mut Object> {
    pod.as_object_mut().and_then(|it| inner(it, field))
}

fn is_unset(number: Option<&Value>) -> bool {
    number.is_none_or(|it| it.is_null() || *it == 0)
}

/// What keeps a Pod whose ports are to be chosen from being found at them.
pub fn refusals(pod: &Value) -> Vec<Violation> {
    violations(pod, |pod| {
        let spec = pod.at("spec");
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for port in lasting(spec).flat_map(|it| it.list("ports")) {
            *names.entry(port.at("name").str()).or_default() += 1;
        }
        let mut open = BTreeSet::new();
        for port in lasting(spec).flat_map(|it| it.list("ports")).filter(|it| it.at("hostPort").int() == 0) {
            let name = port.at("name");
            if name.is_empty() {
                name.missing("a port that is chosen is told by its name; one with a `hostPort` needs none");
            } else if names.get(name.str()).is_some_and(|it| *it > 1) {
                name.duplicate();
            }
            open.insert(port.at("containerPort").int());
        }
        for container in spec.list("containers").chain(spec.list("initContainers")) {
            for handler in handlers(container) {
                called_by_number(handler, &open);
            }
        }
    })
}

/// The containers that are there as long as the Pod.
fn lasting(spec: Cursor<'_>) -> impl Iterator<Item = Cursor<'_>> {
    let sidecars = spec.list("initContainers").filter(|it| it.at("restartPolicy").str() == "Always");
    spec.list("containers").chain(sidecars)
}

fn handlers(container: Cursor<'_>) -> impl Iterator<Item = Cursor<'_>> {
    let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|it| container.at(it));
    let hooks = ["postStart", "preStop"].map(|it| container.at("lifecycle").at(it));
    probes.into_iter().chain(hooks)
}

/// A handler that calls a port which will have another number.
fn called_by_number(handler: Cursor<'_>, open: &BTreeSet<i64>) {
    for call in ["httpGet", "tcpSocket"].map(|it| handler.at(it)) {
        // At another host it is not the Pod's.
        if call.at("host").is_empty() && open.contains(&call.at("port").int()) {
            call.at("port").invalid_int("must be the name of the port: its number is chosen when the Pod is bound");
        }
    }
    let port = handler.at("grpc").at("port");
    if open.contains(&port.int()) {
        port.invalid_int("must not be a port whose number is chosen when the Pod is bound: give that a `hostPort`");
    }
}

/// Are ports to be chosen by the write that makes `new` of `old`? That is the one which gives the Pod its node.
pub fn is_due(new: &Value, old: Option<&Value>) -> bool {
    let has_node = |it: &Value| !read::text(it, "/spec/nodeName").is_empty();
    new["metadata"]["annotations"].get(HOST_PORTS).is_some() && has_node(new) && !old.is_some_and(has_node)
}

/// Writes into the Pod's spec a free port for each that is noted. `taken` are those of the node's other Pods.
///
/// It may be asked again of the same Pod, with other `taken`. The first port that is looked at depends on the Pod's uid: clients of
/// the last Pod do not find the next one at its port.
///
/// # Errors
/// So many are free, which is too few.
pub fn choose(
    pod: &mut Value,
    taken: &BTreeSet<u16>,
    range: &RangeInclusive<u16>,
    is_for_others: impl Fn(u16) -> bool,
) -> Result<(), usize> {
    let names: Vec<String> = noted(pod).into_keys().collect();
    let fixed = of(pod, |it| !names.iter().any(|name| name == it));
    let n = u32::from(range.end() - range.start()) + 1;
    let start = corten_meta::stable_hash(read::text(pod, "/metadata/uid").as_bytes());
    // The upper half is the better mixed one of this hash.
    let start = u32::try_from((start >> 32) % u64::from(n)).unwrap_or_default();
    let around = (0..n).map(|it| u32::from(*range.start()) + (start + it) % n);
    let free = around.filter_map(|it| u16::try_from(it).ok());
    let free = free.filter(|it| !taken.contains(it) && !fixed.contains(it) && !is_for_others(*it));
    let chosen: Vec<u16> = free.take(names.len()).collect();
    if chosen.len() < names.len() {
        return Err(chosen.len());
    }
    let chosen: Noted = names.into_iter().zip(chosen).collect();
    if let Some(spec) = inner_of(pod, "spec") {
        for list in ["containers", "initContainers"] {
            for container in each(spec, list).filter(|it| list == "containers" || text(it, "restartPolicy") == "Always")
            {
                for port in each(container, "ports") {
                    if let Some(number) = chosen.get(text(port, "name")) {
                        port.insert("containerPort".into(), (*number).into());
                        port.insert("hostPort".into(), (*number).into());
                    }
                }
            }
        }
    }
    note(pod, &chosen);
    Ok(())
}

/// The ports of its node that a Pod has, those whose name `counts`.
fn of(pod: &Value, counts: impl Fn(&str) -> bool) -> BTreeSet<u16> {
    let sidecars = read::items(pod, "/spec/initContainers").iter().filter(|it| it["restartPolicy"] == "Always");
    let ports = read::items(pod, "/spec/containers").iter().chain(sidecars).flat_map(|it| read::items(it, "/ports"));
    let counted = ports.filter(|it| counts(read::text(it, "/name")));
    counted
        .filter_map(|it| it["hostPort"].as_u64())
        .filter_map(|it| u16::try_from(it).ok())
        .filter(|it| *it > 0)
        .collect()
}

/// The ports of its node that a Pod has, unless it has ended.
pub fn taken_by(pod: &Value) -> BTreeSet<u16> {
    if super::is_terminal(pod) { BTreeSet::new() } else { of(pod, |_| true) }
}

#[cfg(test)]
mod tests;
