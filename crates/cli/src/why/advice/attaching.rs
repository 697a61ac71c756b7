//! Pods whose volumes are not attached to their node yet: the driver refuses, another node still has them, or nobody attaches.

use corten_api::{
    resources::{PERSISTENT_VOLUMES, PODS, VOLUME_ATTACHMENTS},
    volumes::PROVISIONED_BY,
};
use corten_meta::Key;
use serde_json::Value;

use super::case::{Advice, Case};
use crate::why::{
    command::kubectl,
    fields::{items, text},
    findings::drivers::run_nowhere,
};

const REFUSED: &str = "AttachVolume.Attach failed for volume ";
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
        return advice
            .headline(format!("{subject} waits for volume {name}: attach refused by the driver: {why}"))
            .who(format!("whoever runs {driver}: it is asked again, after pauses that double"));
    }
    let attachments = case.reader.list(&VOLUME_ATTACHMENTS, "").await;
    let own = text(case.object, "/spec/nodeName");
    let of_volume = || attachments.iter().filter(|it| text(it, "/spec/source/persistentVolumeName") == name);
    if let Some(other) = of_volume().find(|it| text(it, "/spec/nodeName") != own) {
        let (node, since) = (text(other, "/spec/nodeName"), text(other, "/metadata/creationTimestamp"));
        let refused = text(other, "/status/detachError/message");
        return advice
            .headline(format!("{subject} waits for volume {name}, which is still attached to {node} since {since}"))
            .who(format!("nobody, while {node} ends what uses it; else whoever runs {node}"))
            .hints(users(case, node, &volume).await)
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

/// The driver of a volume is on no node.
pub(super) fn nowhere(advice: Advice, headline: String, driver: &str) -> Advice {
    advice
        .headline(format!("{headline}: no node runs driver {driver}"))
        .who(format!("whoever runs {driver}: it is not there, or not registered at any kubelet"))
}

/// The volume itself, of which that was found.
pub(super) fn of_volume(case: &Case<'_>) -> Advice {
    let advice = Advice::run(kubectl("", &["get", "csinodes"]));
    nowhere(advice, format!("{} is not attached", case.at.subject), text(case.object, "/spec/csi/driver"))
}

/// The Pods on that node that have the volume's claim.
async fn users(case: &Case<'_>, node: &str, volume: &Value) -> Option<String> {
    let (namespace, claim) = (text(volume, "/spec/claimRef/namespace"), text(volume, "/spec/claimRef/name"));
    let pods = case.reader.list(&PODS, namespace).await;
    let has_claim =
        |it: &Value| items(it, "/spec/volumes").iter().any(|it| text(it, "/persistentVolumeClaim/claimName") == claim);
    let on_node = pods.iter().filter(|it| text(it, "/spec/nodeName") == node && has_claim(it));
    let names: Vec<&str> = on_node.map(|it| text(it, "/metadata/name")).take(5).collect();
    (!names.is_empty()).then(|| format!("on {node} it is used by {}", names.join(", ")))
}
