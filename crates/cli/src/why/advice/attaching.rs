//! Pods whose volumes are not attached to their node yet: the driver refuses, another node still has them, or nobody attaches.

use corten_api::{
    resources::{NODES, PERSISTENT_VOLUMES, PODS, VOLUME_ATTACHMENTS},
    volumes::PROVISIONED_BY,
};
use corten_meta::Key;
use serde_json::Value;

use super::case::{Advice, Case};
use crate::why::{
    command::kubectl,
    fields::{condition, key_of, text},
    findings::{claims::uses, drivers::run_nowhere},
};

const REFUSED: &str = "AttachVolume.Attach failed for volume ";
/// How Corten says that it cannot ask a driver yet.
const NOT_LISTED: &str = " does not contain driver ";
const NOT_YET: &str = " is not attached to this node yet";

pub(super) fn is_about(case: &Case<'_>) -> bool {
    case.wait.message.contains(REFUSED) || case.wait.message.contains(NOT_YET)
}

pub(super) async fn of(case: &Case<'_>) -> Advice {
    let (subject, message) = (&case.at.subject, &case.wait.message);
    let name = message.split('"').nth(1).unwrap_or_default();
    let volume = case.reader.get(&PERSISTENT_VOLUMES, &Key::cluster(name)).await.unwrap_or_default();
    let driver = match text(&volume, "/spec/csi/driver") {
        "" => volume["metadata"]["annotations"][PROVISIONED_BY].as_str().unwrap_or("its driver").to_owned(),
        it => it.to_owned(),
    };
    let advice = Advice::run(kubectl("", &["get", "volumeattachments"]));
    if let Some((_, why)) = message.split_once(" : ").filter(|_| message.contains(REFUSED)) {
        let (said, who) = unlisted(why, &driver)
            .unwrap_or_else(|| (format!("attach refused by the driver: {why}"), asked_again(&driver)));
        return advice.headline(format!("{subject} waits for volume {name}: {said}")).who(who);
    }
    let attachments = case.reader.list(&VOLUME_ATTACHMENTS, "").await;
    let own = text(case.object, "/spec/nodeName");
    let of_volume = || attachments.iter().filter(|it| text(it, "/spec/source/persistentVolumeName") == name);
    if let Some(other) = of_volume().find(|it| text(it, "/spec/nodeName") != own) {
        let (node, since) = (text(other, "/spec/nodeName"), text(other, "/metadata/creationTimestamp"));
        let refused = text(other, "/status/detachError/message");
        let users = users(case, node, &volume).await;
        return held(case, advice, node, &users)
            .await
            .headline(format!("{subject} waits for volume {name}, which is still attached to {node} since {since}"))
            .hints(named(node, &users))
            .hints((!refused.is_empty()).then(|| format!("detach refused by the driver: {refused}")));
    }
    if run_nowhere(case.reader, &driver).await {
        return nowhere(advice, format!("{subject} waits for volume {name}"), &driver);
    }
    let said = match of_volume().next() {
        Some(_) => format!("{driver} has not attached it yet"),
        None => "nobody has asked for it to be attached yet".to_owned(),
    };
    advice
        .headline(format!("{subject} waits for volume {name}: {said}"))
        .who(format!("nobody, if it comes soon; else whoever runs {driver}"))
        .hint("a driver that attaches nothing says so: attachRequired: false in its CSIDriver")
}

/// Who must act while another node has the volume: whoever runs the Pod that has it, where that goes on to run.
async fn held(case: &Case<'_>, advice: Advice, node: &str, users: &[Value]) -> Advice {
    let object = case.reader.get(&NODES, &Key::cluster(node)).await;
    if object.is_some_and(|it| condition(&it, "Ready").is_some_and(|it| it["status"] != "True")) {
        return advice
            .who(format!("whoever runs {node}: it is not ready, and does not say that what uses it has ended"));
    }
    let goes_on = |it: &&Value| {
        !it["metadata"]["deletionTimestamp"].is_string()
            && !["Succeeded", "Failed"].contains(&text(it, "/status/phase"))
    };
    let Some(user) = users.iter().find(goes_on) else {
        return advice.who(format!("nobody, while {node} ends what uses it; else whoever runs {node}"));
    };
    let Key { namespace, name } = key_of(user);
    Advice { next: kubectl(&namespace, &["describe", &format!("pod/{name}")]), ..advice }.who(format!(
        "whoever runs pod/{name}: it must end first; or whoever wrote {}: have it run on {node}, or use another volume",
        case.author
    ))
}

fn asked_again(driver: &str) -> String {
    format!("whoever runs {driver}: it is asked again, after pauses that double")
}

/// The driver was not asked, for the node does not say that it has it.
fn unlisted(why: &str, driver: &str) -> Option<(String, String)> {
    let node = why.split_once(NOT_LISTED)?.0.rsplit(' ').next()?;
    let who =
        format!("whoever runs {driver} on {node}: when it is registered at the kubelet there, it goes on by itself");
    Some((format!("node {node} does not list driver {driver} yet"), who))
}

/// The driver of a volume is on no node.
pub(super) fn nowhere(advice: Advice, headline: String, driver: &str) -> Advice {
    advice
        .headline(format!("{headline}: no node runs driver {driver}"))
        .who(format!("whoever runs {driver}: it is not there, or not registered at any kubelet"))
}

/// The volume itself or its attachment, of which that was found.
pub(super) fn of_volume(case: &Case<'_>) -> Advice {
    let advice = Advice::run(kubectl("", &["get", "csinodes"]));
    let driver = [text(case.object, "/spec/attacher"), text(case.object, "/spec/csi/driver")];
    let driver = driver.into_iter().find(|it| !it.is_empty()).unwrap_or_default();
    let headline = format!("{} is not attached", case.at.subject);
    let refused = |what: &str| {
        Advice::run(case.describe())
            .headline(format!("{} is not {what}: {}", case.at.subject, case.wait.message))
            .who(asked_again(driver))
    };
    match &*case.wait.reason {
        "AttachRefused" => match unlisted(&case.wait.message, driver) {
            Some((said, who)) => {
                Advice::run(kubectl("", &["get", "csinodes"])).headline(format!("{headline}: {said}")).who(who)
            }
            None => refused("attached"),
        },
        "DetachRefused" => refused("detached"),
        "AttachPending" => Advice::run(case.describe())
            .headline(format!("{headline}: {driver} has not done so yet"))
            .who(format!("nobody, if it comes soon; else whoever runs {driver}")),
        _ => nowhere(advice, headline, driver),
    }
}

/// The Pods on that node that have the volume's claim.
async fn users(case: &Case<'_>, node: &str, volume: &Value) -> Vec<Value> {
    let (namespace, claim) = (text(volume, "/spec/claimRef/namespace"), text(volume, "/spec/claimRef/name"));
    let pods = case.reader.list(&PODS, namespace).await;
    pods.iter().filter(|it| text(it, "/spec/nodeName") == node && uses(it, claim)).cloned().collect()
}

fn named(node: &str, users: &[Value]) -> Option<String> {
    let names: Vec<&str> = users.iter().map(|it| text(it, "/metadata/name")).take(5).collect();
    (!names.is_empty()).then(|| format!("on {node} it is used by {}", names.join(", ")))
}
