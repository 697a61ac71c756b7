//! Claims whose volume a driver is to make: is there a driver, and what did it say when it was last asked?
//!
//! Drivers are asked beside the loops that keep journals: what they said is read off the claim's events.

use corten_api::{
    resources::{CSI_DRIVERS, CSI_NODES, EVENTS, LEASES, NODES, PERSISTENT_VOLUME_CLAIMS, PODS},
    snapshots::VOLUME_SNAPSHOTS,
    volumes::{CONTROLLER_NODES, DRIVERS_OF_OTHERS, SELECTED_NODE, STORAGE_PROVISIONER},
};
use corten_meta::{Key, Resource};
use corten_provisioner::{PROVISIONER_SIDECAR, RING, RING_OF_ONE, leases};
use serde_json::{Value, json};

use super::{
    case::{Advice, Case},
    volumes::{NAMES_MAX, asks, rooms, selector_of},
};
use crate::why::{
    command::kubectl,
    fields::{condition, items, key_of, one_line, text, time},
    findings::claims::REFUSAL_LASTS,
    gather::{warning_events, when},
    nearest::nearest,
};

/// A Pod that was placed where its volume cannot be so often is placed there by its scores.
const TRIES: u64 = 3;
/// Of a claim that a populator is to make the volume for (`Assuming an external populator will provision the volume`).
const OF_POPULATOR: &str = "external populator";

pub(super) async fn of(case: &Case<'_>) -> Advice {
    let annotation = |name: &str| case.object["metadata"]["annotations"][name].as_str().unwrap_or_default();
    let (provisioner, node) = (annotation(STORAGE_PROVISIONER), annotation(SELECTED_NODE));
    let nodes = case.reader.list(&CSI_NODES, "").await;
    let has = |it: &&Value| items(it, "/spec/drivers").iter().any(|it| it["name"] == provisioner);
    let with: Vec<String> = nodes.iter().filter(has).map(|it| text(it, "/metadata/name").to_owned()).collect();
    let advice = Advice::run(case.describe()).hint(asks(case.object));
    if with.is_empty() {
        return advice
            .headline(not_yet(case, format!("no node has the driver {provisioner}")))
            .who(format!("whoever runs {provisioner}: it is not there, or not registered at any kubelet"))
            .hint("a provisioner that is no CSI driver is not seen here: its own log says more");
    }
    if !node.is_empty() && case.reader.is_missing(&NODES, &Key::cluster(node)).await {
        let undo = format!("{SELECTED_NODE}-");
        return Advice { next: kubectl(case.namespace, &["annotate", &case.at.subject, &undo]), ..advice }
            .headline(not_yet(case, format!("it is to be made for node {node}, and there is no such node")))
            .who(format!("whoever wrote {}: its annotation {SELECTED_NODE} must go", case.at.subject))
            .hint("then it is made where its next pod is placed");
    }
    let advice = advice.hint(format!("its driver is on {}", with[..with.len().min(NAMES_MAX)].join(", ")));
    if !node.is_empty() && !with.iter().any(|it| it == node) {
        return advice
            .headline(not_yet(case, format!("{provisioner} is to make it for node {node}, which has no such driver")))
            .who(format!("whoever runs {provisioner} on {node}"));
    }
    match said(case).await {
        Some(said) => refused(case, advice, (provisioner, node), &said).await,
        None => {
            // Those beside the control plane are asked without a word.
            let named = json!(provisioner).to_string();
            let tells = |it: &Value| {
                it["metadata"]["annotations"][DRIVERS_OF_OTHERS].as_str().is_some_and(|it| it.contains(&named))
            };
            let are_joined = nodes.iter().filter(has).all(tells);
            if are_joined && !is_led(case, provisioner).await {
                return advice
                    .headline(not_yet(case, format!("no node acts for {provisioner}")))
                    .hints(acting(case, provisioner).await)
                    .who(format!("whoever runs {provisioner}: name nodes, or run csi-provisioner beside it"));
            }
            let advice = match are_joined {
                true => advice.hint(format!(
                    "without sidecars, nodes that csidriver/{provisioner} names in its annotation {CONTROLLER_NODES} make it"
                )),
                false => advice,
            };
            let place = if node.is_empty() { String::new() } else { format!(" for node {node}") };
            let advice = advice.hints(idle_sidecar(case).await);
            advice
                .headline(not_yet(case, format!("{provisioner} is making it{place}")))
                .who(format!("nobody, if it comes soon; else whoever runs {provisioner}"))
        }
    }
}

/// A Pod with a sidecar that makes volumes and is not ready: where it is the driver's, Corten leaves that to it.
async fn idle_sidecar(case: &Case<'_>) -> Option<String> {
    let pods = case.reader.list(&PODS, "").await;
    let is_sidecar = |it: &Value| PROVISIONER_SIDECAR.iter().any(|name| text(it, "/image").contains(name));
    let has_sidecar = |it: &&Value| items(it, "/spec/containers").iter().any(is_sidecar);
    let is_ready = |it: &Value| condition(it, "Ready").is_some_and(|it| it["status"] == "True");
    let is_over = |it: &Value| ["Succeeded", "Failed"].contains(&text(it, "/status/phase"));
    let pod = pods.iter().filter(has_sidecar).find(|it| !is_ready(it) && !is_over(it))?;
    let Key { namespace, name } = key_of(pod);
    Some(format!(
        "pod/{name} in {namespace} runs {} and is not ready: if it is this driver's, it is to make it",
        PROVISIONER_SIDECAR[0]
    ))
}

/// Who may act for the driver, and what is wrong with that.
async fn acting(case: &Case<'_>, driver: &str) -> Vec<String> {
    let may =
        format!("of joined nodes those may act that csidriver/{driver} names in its annotation {CONTROLLER_NODES}");
    let settings = case.reader.get(&CSI_DRIVERS, &Key::cluster(driver)).await.unwrap_or_default();
    let named = settings["metadata"]["annotations"][CONTROLLER_NODES].as_str().unwrap_or_default();
    let mut unknown = Vec::new();
    for name in named.split(',').map(str::trim).filter(|it| !it.is_empty() && *it != "*").take(NAMES_MAX) {
        if case.reader.is_missing(&NODES, &Key::cluster(name)).await {
            unknown.push(name);
        }
    }
    let missing = (!unknown.is_empty()).then(|| format!("it names {}, and there is no such node", unknown.join(", ")));
    [may].into_iter().chain(missing).collect()
}

/// Does a node act for the driver? Where that cannot be seen it is believed to.
async fn is_led(case: &Case<'_>, driver: &str) -> bool {
    let key = Key::new(leases::NAMESPACE, leases::of_driver(driver));
    match case.reader.get(&LEASES, &key).await {
        Some(lease) => leases::is_held(lease.get("spec"), case.reader.now),
        None => !case.reader.is_missing(&LEASES, &key).await,
    }
}

fn not_yet(case: &Case<'_>, why: impl std::fmt::Display) -> String {
    format!("{} has no volume yet: {why}", case.at.subject)
}

/// So often its driver has refused, as far as events tell.
async fn n_refusals(case: &Case<'_>) -> u64 {
    let events = warning_events(case.reader, case.object).await;
    let refusals = events.iter().filter(|it| text(it, "/reason") == "ProvisioningFailed");
    refusals.map(|it| it["count"].as_u64().unwrap_or(1)).sum()
}

/// What came of the last time that somebody wanted to make it.
async fn said(case: &Case<'_>) -> Option<String> {
    let name = text(case.object, "/metadata/name");
    let fields = format!("involvedObject.kind=PersistentVolumeClaim,involvedObject.name={name}");
    let events = case.reader.list_where(&EVENTS, case.namespace, &fields).await;
    let uid = text(case.object, "/metadata/uid");
    let is_new = |it: &Value| time(&json!(when(it))).is_some_and(|it| it.after(REFUSAL_LASTS) >= case.reader.now);
    let is_said = |it: &&Value| {
        let is_refusal = text(it, "/reason") == "ProvisioningFailed" && is_new(it);
        (is_refusal || text(it, "/message").contains(OF_POPULATOR)) && text(it, "/involvedObject/uid") == uid
    };
    let last = events.iter().filter(is_said).max_by_key(|it| when(it))?;
    let message = one_line(text(last, "/message"));
    Some(match message.split_once("failed to provision volume with StorageClass ") {
        Some((_, rest)) => rest.split_once(": ").map_or(rest, |it| it.1).to_owned(),
        None => message,
    })
}

async fn refused(case: &Case<'_>, advice: Advice, (driver, node): (&str, &str), said: &str) -> Advice {
    let (code, said) = said.split_once(" desc = ").unwrap_or(("", said));
    let source = &case.object["spec"]["dataSourceRef"];
    let source = if source.is_object() { source } else { &case.object["spec"]["dataSource"] };
    let (kind, name) = (text(source, "/kind"), text(source, "/name"));
    if said.contains(OF_POPULATOR) {
        let what = format!("{kind}.{}", text(source, "/apiGroup"));
        return advice
            .headline(not_yet(case, format!("a populator for {what} is to make it, and none has")))
            .who(format!("whoever runs the populator for {what}; or whoever installs one, if there is none"));
    }
    if said.starts_with("no node acts for ") {
        let (what, _) = said.split_once(": ").unwrap_or((said, ""));
        return advice
            .headline(not_yet(case, what))
            .hints(acting(case, driver).await)
            .who(format!("whoever runs {driver}: name a node of that place; else whoever keeps the pod from others"));
    }
    if let Some((_, rest)) = said.split_once("not enough room: ") {
        let place = if node.is_empty() { String::new() } else { format!(" on node {node}") };
        let rooms = rooms(case, text(case.object, "/spec/storageClassName")).await;
        return advice
            .headline(not_yet(case, format!("there is no room for it{place}: {rest}")))
            .who(format!("whoever runs the cluster: make room; or whoever wrote {}: ask for less", case.at.subject))
            .hints(rooms);
    }
    if said.contains(" is being made: ") {
        let of = if name.is_empty() { String::new() } else { format!(" from {}/{name}", kind.to_lowercase()) };
        let progress = said.rsplit(": ").next().unwrap_or(said);
        return advice
            .headline(not_yet(case, format!("it is copied{of}: {progress}")))
            .who("nobody: it goes on by itself");
    }
    if let Some(advice) = unaskable(case, &advice, driver, said) {
        return advice;
    }
    if said.ends_with("not found") && !name.is_empty() {
        return missing_source(case, advice, kind, name).await;
    }
    if said.ends_with("is not Ready") || said.ends_with("not bound") {
        return unready_snapshot(case, advice, name).await;
    }
    if said.contains(RING) || said.contains(RING_OF_ONE) {
        return advice
            .headline(not_yet(case, said))
            .who(format!("whoever wrote {}: a claim cannot be changed, make another", case.at.subject));
    }
    if said.contains("must be bound to a PersistentVolume") {
        return advice
            .headline(not_yet(case, format!("it begins with persistentvolumeclaim/{name}, which has none itself")))
            .who(format!("whoever acts for persistentvolumeclaim/{name}: this one goes on by itself then"));
    }
    if said.contains("is less than the size") || said.contains("must be greater than or equal in size") {
        return advice
            .headline(not_yet(case, said))
            .who(format!("whoever wrote {}: a claim cannot be changed, make a larger one", case.at.subject));
    }
    if said.contains(" is on node ") || said.contains(" is on another node") || said.contains(" is in another place ") {
        let node = said.split_once(" is on node ").and_then(|it| it.1.split([' ', ',', ';', ':']).next());
        let who = match node.filter(|it| !it.is_empty()) {
            Some(node) if n_refusals(case).await >= TRIES => format!(
                "whoever wrote its pod, if that is placed elsewhere each time: give it nodeSelector kubernetes.io/hostname: {node}"
            ),
            _ => "nobody, where its pod may run on that node; else whoever keeps the pod from it".into(),
        };
        return advice.headline(not_yet(case, said)).who(who);
    }
    let who = if code.ends_with("InvalidArgument") {
        let class = text(case.object, "/spec/storageClassName");
        format!("whoever wrote storageclass/{class} or {}: neither can be changed, make another", case.at.subject)
    } else {
        format!("whoever runs {driver}: it is asked again, after pauses")
    };
    advice.headline(not_yet(case, format!("{driver} says: {said}"))).who(who)
}

/// What the claim asks for keeps its driver from being asked at all.
fn unaskable(case: &Case<'_>, advice: &Advice, driver: &str, said: &str) -> Option<Advice> {
    let (subject, advice) = (&case.at.subject, advice.clone());
    if said.contains("claim Selector is not supported") {
        let selector = selector_of(case.object).unwrap_or_default();
        let class = text(case.object, "/spec/storageClassName");
        return Some(
            advice
                .headline(not_yet(case, format!("it has a selector, and {driver} makes no volumes for one")))
                .who(format!("whoever wrote {subject}: make it anew without the selector"))
                .hint(format!("or make a persistentvolume of class {class:?} with labels for it: {selector}")),
        );
    }
    let attributes = text(case.object, "/spec/volumeAttributesClassName");
    if said.contains("volumeattributesclass") && said.ends_with("not found") {
        let headline = format!("there is no volumeattributesclass {attributes:?}, and {driver} was not asked");
        return Some(
            advice
                .headline(not_yet(case, headline))
                .who(format!("whoever wrote {subject}, or whoever makes the class")),
        );
    }
    if said.contains("VolumeAttributesClass (MODIFY_VOLUME)") || said.contains(" referenced in PVC is for driver ") {
        return Some(
            advice
                .headline(not_yet(case, said))
                .who(format!("whoever wrote {subject}: name another volumeattributesclass, or none")),
        );
    }
    let is_of_other = said.contains(" is not of driver ") || said.contains(", and the class is of ");
    if is_of_other || said.contains("must have the same volume mode") || said.contains(" modifies the mode of ") {
        return Some(advice.headline(not_yet(case, said)).who(format!(
            "whoever wrote {subject}: a claim cannot be changed, make another, of a class of the source's driver and mode"
        )));
    }
    None
}

/// What the volume is to begin with is not there.
async fn missing_source(case: &Case<'_>, advice: Advice, kind: &str, name: &str) -> Advice {
    let resource: &Resource = if kind == "VolumeSnapshot" { &VOLUME_SNAPSHOTS } else { &PERSISTENT_VOLUME_CLAIMS };
    let list = case.reader.list(resource, case.namespace).await;
    let names = list.iter().map(|it| text(it, "/metadata/name"));
    let own = text(case.object, "/metadata/name");
    let near = nearest(name, names.filter(|it| *it != own));
    let kind = kind.to_lowercase();
    advice
        .headline(not_yet(case, format!("it is to begin with {kind}/{name}, which is not there")))
        .who(format!("whoever wrote {}, or whoever makes the {kind}", case.at.subject))
        .hints(near.map(|it| format!("if {it:?} is meant: a claim cannot be changed, make another")))
}

/// The snapshot's own status says why.
async fn unready_snapshot(case: &Case<'_>, mut advice: Advice, name: &str) -> Advice {
    let snapshot = case.reader.get(&VOLUME_SNAPSHOTS, &Key::new(case.namespace, name)).await.unwrap_or_default();
    let why = one_line(text(&snapshot, "/status/error/message"));
    advice.next = kubectl(case.namespace, &["describe", &format!("volumesnapshot/{name}")]);
    let advice =
        advice.headline(not_yet(case, format!("it is to begin with volumesnapshot/{name}, which is not ready")));
    if why.is_empty() {
        return advice.who("nobody: it goes on when the snapshot is taken");
    }
    advice.hint(format!("of the snapshot it is said: {why}")).who(format!("whoever acts for volumesnapshot/{name}"))
}
