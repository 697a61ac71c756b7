//! Pods without a node: what each reason asks of whom.

use corten_api::{
    host_ports::{ContainerPort, HOST_PORTS, HostPort, Noted},
    resources::{ENDPOINT_SLICES, NODES, PODS},
};
use corten_meta::{Key, Quantity, address::is_reachable};
use corten_policies::quota::{Side, of_pod};
use serde_json::{Value, json};

use super::case::{Advice, Case};
use crate::why::{
    command::kubectl,
    fields::{items, text},
    findings::manager_of,
    nearest::nearest,
    taints::{taint_of, toleration_of},
};

/// The node the scheduler calls the nearest, with what it says of it.
async fn nearest_node(case: &Case<'_>) -> Option<(String, std::rc::Rc<Value>, String)> {
    let cause = case.at.causes.iter().find(|it| it.wait.reason == "NearestNode")?;
    let name = cause.wait.on.as_deref()?.strip_prefix("node/")?.to_owned();
    let node = case.reader.get(&NODES, &Key::cluster(&*name)).await?;
    Some((name, node, cause.wait.message.clone()))
}

pub(super) async fn no_nodes(case: &Case<'_>) -> Advice {
    let nodes = case.reader.list(&NODES, "").await;
    // The loop that waits has not been told of it, or will not have it.
    if let Some(node) = nodes.first() {
        let name = text(node, "/metadata/name");
        let advice = Advice::run(format!("corten why node/{name}"));
        return advice.headline(format!("no node of the cluster can be used: node/{name} is there"));
    }
    let place = &case.reader.place;
    if let Some(up) = place.up() {
        return Advice::run(up).hint("this machine has the cluster's node, which has not come or was deleted");
    }
    if !place.is_loopback() || is_served_elsewhere(case).await {
        return Advice::run(format!("corten token create{}", place.options))
            .hint("a machine becomes its node by the line that `corten token create` prints, run there");
    }
    let advice = Advice::run(place.listener())
        .hint(format!("it is served at {}, to this machine alone: no other can be its node", place.server));
    advice.hint(match place.up_after_server() {
        Some(up) => format!("as root, once the process that serves it has ended, the same cluster with a node: {up}"),
        None => "the process that serves it must do so where other machines reach it: --bind ADDRESS".into(),
    })
}

/// Do other machines reach it, though it was asked as this machine's own?
async fn is_served_elsewhere(case: &Case<'_>) -> bool {
    let slices = case.reader.list(&ENDPOINT_SLICES, "default").await;
    let of_server = slices.iter().filter(|it| it["metadata"]["labels"]["kubernetes.io/service-name"] == "kubernetes");
    let mut addresses = of_server.flat_map(|it| items(it, "/endpoints")).flat_map(|it| items(it, "/addresses"));
    addresses.any(|it| it.as_str().and_then(|it| it.parse().ok()).is_some_and(is_reachable))
}

pub(super) async fn resources(case: &Case<'_>) -> Option<Advice> {
    let (name, node, nearest) = nearest_node(case).await?;
    let lacks = nearest.split("which lacks ").nth(1).unwrap_or_default();
    let mut advice = Advice::run(kubectl("", &["describe", &format!("node/{name}")]))
        .headline(format!("no node has room for it: {}", case.wait.message))
        .hint(if lacks.is_empty() { nearest.clone() } else { format!("nearest: node {name}, which lacks {lacks}") });
    let mut fits_empty = true;
    let requests = of_pod(case.object, Side::Requests);
    for resource in ["cpu", "memory", "ephemeral-storage"] {
        let asked = requests.get(resource).copied().unwrap_or_default();
        let whole: Quantity = text(&node, &format!("/status/allocatable/{resource}")).parse().unwrap_or_default();
        if asked > whole {
            fits_empty = false;
            advice = advice.hint(format!(
                "it asks for {} {resource}; the node has {whole} in all: no room can be made there",
                plain(asked)
            ));
        }
    }
    if fits_empty {
        return Some(advice.who("whoever runs the cluster: make room or add a node; or its author: ask for less"));
    }
    advice.next = case.edit();
    Some(
        advice
            .who(format!("whoever wrote it: {} must ask for less, or a larger node must come", case.author))
            .hints(case.edit_hints()),
    )
}

/// A thousand is no `1k` to people who count processors.
fn plain(amount: Quantity) -> String {
    if amount.milli_value() % 1000 == 0 && amount.value() < 100_000 {
        amount.value().to_string()
    } else {
        amount.to_string()
    }
}

pub(super) fn cordoned(case: &Case<'_>) -> Advice {
    let own = case.at.subject.strip_prefix("node/").map(str::to_owned);
    let cause = case.at.causes.iter().find(|it| it.wait.reason == "NearestNode");
    let near = cause.and_then(|it| it.wait.on.as_deref()?.strip_prefix("node/").map(str::to_owned));
    let Some(node) = own.or(near) else { return Advice::run(kubectl("", &["get", "nodes"])) };
    Advice::run(kubectl("", &["uncordon", &node]))
        .headline(format!("node {node} is cordoned: it takes no new pods"))
        .who("whoever runs the cluster: somebody cordoned it on purpose")
}

pub(super) async fn taint(case: &Case<'_>) -> Option<Advice> {
    let (name, node, _) = nearest_node(case).await?;
    let taint = untolerated(case.object, &node)?;
    let (key, value, effect) = (text(taint, "/key"), text(taint, "/value"), text(taint, "/effect"));
    let written = if value.is_empty() { format!("{key}:{effect}") } else { format!("{key}={value}:{effect}") };
    let near = items(case.object, "/spec/tolerations").iter().find(|it| it["key"] == *key);
    let advice = Advice::default()
        .headline(format!("it does not tolerate the taint {written} of node {name}"))
        .hints(near.map(|it| near_miss(it, taint)));
    Some(if key.starts_with("node.kubernetes.io/") {
        let mut advice = advice.hint("the cluster set that taint, and takes it away when the node is well");
        advice.next = format!("corten why node/{name}");
        advice
    } else {
        let mut advice = advice.who("whoever runs the cluster: take the taint away; or its author: tolerate it");
        advice.next = kubectl("", &["taint", "nodes", &name, &format!("{written}-")]);
        advice
    })
}

/// A toleration with the taint's key, and another value or effect.
fn near_miss(toleration: &Value, taint: &Value) -> String {
    let key = text(toleration, "/key");
    let (value, effect) = (text(toleration, "/value"), text(toleration, "/effect"));
    if toleration["operator"] != "Exists" && value != text(taint, "/value") {
        return format!(
            "near: it tolerates {key} with the value {value:?}, and the taint has {:?}",
            text(taint, "/value")
        );
    }
    format!("near: it tolerates {key} with the effect {effect}, and the taint has {}", text(taint, "/effect"))
}

/// The first taint that keeps the Pod off the node.
fn untolerated<'n>(pod: &Value, node: &'n Value) -> Option<&'n Value> {
    let is_tolerated =
        |of: &Value| items(pod, "/spec/tolerations").iter().any(|it| toleration_of(it).tolerates(taint_of(of)));
    let mut strict = items(node, "/spec/taints").iter().filter(|it| it["effect"] != "PreferNoSchedule");
    strict.find(|it| !is_tolerated(it))
}

pub(super) async fn affinity(case: &Case<'_>) -> Option<Advice> {
    let (name, node, nearest_text) = nearest_node(case).await?;
    let wanted = case.object.pointer("/spec/nodeSelector").and_then(Value::as_object);
    let missing = wanted.into_iter().flatten().find(|(key, value)| node["metadata"]["labels"][key.as_str()] != **value);
    let Some((key, value)) = missing else {
        return Some(Advice::run(kubectl("", &["get", "nodes", "--show-labels"])).hint(nearest_text));
    };
    let value = value.as_str().unwrap_or_default();
    let labels = node["metadata"]["labels"].as_object();
    let has = labels.and_then(|it| it.get(key)).and_then(Value::as_str);
    let near = nearest(key, labels.into_iter().flatten().map(|it| it.0.as_str()));
    let hint = match (has, near) {
        (Some(has), _) => format!("nearest: node {name}, where {key} is {has:?}"),
        (None, Some(near)) => format!("nearest: node {name}, which has no label {key:?}, but {near:?}"),
        (None, None) => format!("nearest: node {name}, which has no label {key:?}"),
    };
    let advice = Advice::default().headline(format!("no node has the label {key}={value} it asks for")).hint(hint);
    // Machines and clouds set these, and programs believe them.
    if WELL_KNOWN.iter().any(|it| key.split('/').next().is_some_and(|domain| is_within(domain, it))) {
        return Some(
            Advice { next: case.edit(), ..advice }
                .who(format!("whoever wrote {}: name a label that is there; this one is the node's own", case.author))
                .hints(case.edit_hints()),
        );
    }
    let mut words = vec!["label".to_owned(), "node".into(), name.clone(), format!("{key}={value}")];
    words.extend(has.map(|_| "--overwrite".to_owned()));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Some(Advice { next: kubectl("", &words), ..advice }.who(format!(
        "whoever wrote {}: name a label that is there; or whoever runs the nodes: label one",
        case.author
    )))
}

/// Domains whose labels are not for anybody to set by hand.
const WELL_KNOWN: [&str; 2] = ["kubernetes.io", "k8s.io"];

fn is_within(domain: &str, of: &str) -> bool {
    // Roles are for whoever runs the nodes to give.
    domain != "node-role.kubernetes.io" && (domain == of || domain.ends_with(&format!(".{of}")))
}

pub(super) async fn ports(case: &Case<'_>) -> Advice {
    let wanted = host_ports(case.object);
    let node = text(case.object, "/spec/nodeName");
    let fields = if node.is_empty() { String::new() } else { format!("spec.nodeName={node}") };
    let pods = case.reader.list_where(&PODS, "", &fields).await;
    let own = text(case.object, "/metadata/uid");
    let holds = |it: &&Value| {
        it["metadata"]["uid"] != own
            && !text(it, "/spec/nodeName").is_empty()
            && host_ports(it).iter().any(|it| wanted.iter().any(|wanted| wanted.collides(*it)))
    };
    let wanted_text = wanted.iter().map(|it| format!("{}/{}", it.port, it.protocol)).collect::<Vec<_>>().join(", ");
    let Some(holder) = pods.iter().find(holds) else {
        return Advice::run(kubectl("", &["get", "pods", "-A", "-o", "wide"]))
            .headline(format!("every node has given away the port {wanted_text}"));
    };
    let (holder, namespace) = (text(holder, "/metadata/name"), text(holder, "/metadata/namespace"));
    let is_sibling = crate::why::gather::owner(case.object).is_some_and(|it| {
        pods.iter().any(|pod| {
            text(pod, "/metadata/name") == holder && crate::why::gather::owner(pod).map(|it| it.1) == Some(it.1.clone())
        })
    });
    let advice = Advice::run(format!("corten why pod/{holder} -n {namespace}"))
        .headline(format!("port {wanted_text} of the node is taken by pod/{holder} in {namespace}"))
        .who(format!("whoever wrote {}: ask for another hostPort, or for none", case.author));
    if is_sibling {
        advice.hint("both are of the same workload: with a hostPort a node can run only one of them")
    } else {
        advice
    }
}

/// Sidecars count and other init containers do not (`GetHostPorts`), nor does a port that is still to be chosen.
fn host_ports(pod: &Value) -> Vec<HostPort<'_>> {
    let in_host_network = pod["spec"]["hostNetwork"] == true;
    let note = pod["metadata"]["annotations"][HOST_PORTS].as_str();
    let noted: Noted = note.and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
    let sidecars = items(pod, "/spec/initContainers").iter().filter(|it| it["restartPolicy"] == "Always");
    let ports = items(pod, "/spec/containers").iter().chain(sidecars).flat_map(|it| items(it, "/ports"));
    let number = |it: &Value| it.as_i64().and_then(|it| it.try_into().ok()).unwrap_or_default();
    let ports = ports.filter(|it| noted.get(text(it, "/name")) != Some(&0)).map(|it| ContainerPort {
        host_port: number(&it["hostPort"]),
        container_port: number(&it["containerPort"]),
        protocol: text(it, "/protocol"),
        host_ip: text(it, "/hostIP"),
    });
    ports.filter_map(|it| HostPort::of(it, in_host_network)).collect()
}

pub(super) fn gated(case: &Case<'_>) -> Advice {
    let gates: Vec<&str> = items(case.object, "/spec/schedulingGates").iter().map(|it| text(it, "/name")).collect();
    let first = gates.first().copied().unwrap_or_default();
    let patch = json!([
        {"op": "test", "path": "/spec/schedulingGates/0/name", "value": first},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
    ]);
    let set_by = manager_of(case.object, "f:schedulingGates", first).map(|it| format!("the gate was set by {it}"));
    Advice::run(kubectl(case.namespace, &["patch", &case.at.subject, "--type=json", "-p", &patch.to_string()]))
        .headline(format!("it is held by the scheduling gate {}", gates.join(", ")))
        .who(format!("the program that {first} belongs to: it opens the gate when it allows the pod to start"))
        .hints(set_by)
        .hint("the command opens the gate in its place")
}

pub(super) async fn other(case: &Case<'_>) -> Advice {
    let name = text(case.object, "/spec/schedulerName");
    let pods = case.reader.list(&PODS, "").await;
    let has = pods.iter().any(|it| {
        text(it, "/metadata/name").contains(name)
            && text(it, "/status/phase") == "Running"
            && it["metadata"]["uid"] != case.object["metadata"]["uid"]
    });
    let hint = if has {
        format!("a running pod has {name:?} in its name: look at its log")
    } else {
        format!("no running pod has {name:?} in its name, as far as can be seen")
    };
    Advice::run(format!("{} | grep {}", kubectl("", &["get", "pods", "-A"]), super::case::shell(name)))
        .headline(case.wait.message.clone())
        .who(format!("the scheduler {name:?}: it is not part of this cluster; without it, schedulerName must go"))
        .hint(hint)
}

pub(super) fn node_gone(case: &Case<'_>) -> Advice {
    let advice = Advice::run(kubectl("", &["get", "nodes"]));
    if !case.is_bare_pod() {
        return advice;
    }
    let pod = &case.at.subject;
    advice
        .who(format!("nobody, for {pod} to go; who wants it back makes it anew then, or has a controller make it"))
        .hint("it goes on where it was only if its machine comes back as that node before")
}

pub(super) fn clocks(case: &Case<'_>) -> Advice {
    let node = &case.at.subject;
    Advice::run("timedatectl set-ntp true".to_owned())
        .who(format!("whoever runs {node}: on its machine, or on that of the server where that one's clock is wrong"))
        .hint("`date -u` on both shows which")
}

#[cfg(test)]
mod tests;
