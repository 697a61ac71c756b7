//! Pods that wait for a claim that is for one Pod alone (`ReadWriteOncePod`), and who has it.

use corten_api::resources::{PERSISTENT_VOLUME_CLAIMS, PODS};
use corten_meta::Key;
use serde_json::Value;

use super::case::{Advice, Case};
use crate::why::{
    command::kubectl,
    fields::{items, text},
    findings::claims::uses,
};

/// How the kubelet refuses a second Pod.
const IN_USE: &str = "ReadWriteOncePod access mode and is already in use";

pub(super) fn is_about(case: &Case<'_>) -> bool {
    case.wait.message.contains(IN_USE)
}

pub(super) async fn of(case: &Case<'_>) -> Advice {
    let subject = &case.at.subject;
    let pods = case.reader.list(&PODS, case.namespace).await;
    let own = text(case.object, "/metadata/uid");
    let has_begun = |it: &&Value| {
        let is_over = matches!(text(it, "/status/phase"), "Succeeded" | "Failed");
        !is_over && text(it, "/metadata/uid") != own && !text(it, "/spec/nodeName").is_empty()
    };
    let claims = exclusive_claims(case).await;
    let held = claims.iter().find_map(|claim| {
        let user = pods.iter().filter(has_begun).find(|it| uses(it, claim))?;
        Some((claim, user))
    });
    let Some((claim, user)) = held else {
        let claims = if claims.is_empty() { "its claim".to_owned() } else { claims.join(", ") };
        return Advice::run(kubectl(case.namespace, &["get", "pods"])).headline(format!(
            "{subject} waits for {claims}, which another pod has: ReadWriteOncePod is for one alone"
        ));
    };
    let (user, node) = (format!("pod/{}", text(user, "/metadata/name")), text(user, "/spec/nodeName"));
    Advice::run(kubectl(case.namespace, &["describe", &user]))
        .headline(format!("{subject} waits for persistentvolumeclaim/{claim}, which {user} on {node} has"))
        .who(format!("whoever runs {user}: it must end first; or whoever wrote {}: use another claim", case.author))
        .hint("the claim is ReadWriteOncePod: one pod of the whole cluster has it at a time")
}

/// The Pod's claims that are for one Pod alone.
async fn exclusive_claims(case: &Case<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for volume in items(case.object, "/spec/volumes") {
        let name = text(volume, "/persistentVolumeClaim/claimName");
        if name.is_empty() {
            continue;
        }
        let claim = case.reader.get(&PERSISTENT_VOLUME_CLAIMS, &Key::new(case.namespace, name)).await;
        let is_exclusive = |it: &Value| items(it, "/spec/accessModes").iter().any(|it| it == "ReadWriteOncePod");
        if claim.is_some_and(|it| is_exclusive(&it)) {
            found.push(name.to_owned());
        }
    }
    found
}
