//! Snapshots that are not taken.

use corten_api::snapshots::VOLUME_SNAPSHOT_CLASSES;
use corten_reconcile::Actor;
use serde_json::Value;

use super::case::{Advice, Case};
use crate::why::{
    command::kubectl,
    fields::{one_line, text},
};

/// About a VolumeSnapshot.
pub(super) async fn of(case: &Case<'_>) -> Advice {
    let (subject, message) = (&case.at.subject, one_line(&case.wait.message));
    let claim = text(case.object, "/spec/source/persistentVolumeClaimName");
    let advice = Advice::run(case.describe());
    match &*case.wait.reason {
        "SnapshotNotReady" if message.contains(" are copied") => {
            let progress = message.rsplit(": ").next().unwrap_or(&message);
            advice
                .headline(format!("{subject} is copied: {progress}"))
                .who("nobody: who writes to its volume waits until it is whole")
        }
        "SnapshotNotReady" => {
            let said = message.split_once(" desc = ").map_or(&*message, |it| it.1);
            let said = without_end_of_quote(said);
            let advice = advice.headline(format!("{subject} is not taken yet: {said}"));
            if said.starts_with("not enough room") {
                advice.who("whoever runs the cluster: make room on its volume's node")
            } else if said.starts_with("driver ") {
                advice.hint("a driver of others is asked by csi-snapshotter, which runs beside it")
            } else if case.wait.actor == Actor::Operator {
                advice.who("whoever runs its driver")
            } else {
                advice
            }
        }
        "SnapshotContentCreationFailed" if message.contains("not found") && !claim.is_empty() => advice
            .headline(format!("{subject} is of persistentvolumeclaim/{claim}, which is not there"))
            .who(format!("whoever wrote {subject}: a snapshot's source cannot be changed, make another")),
        "GetSnapshotClassFailed" | "SetDefaultSnapshotClassFailed" => {
            let classes = case.reader.list(&VOLUME_SNAPSHOT_CLASSES, "").await;
            let names: Vec<&str> = classes.iter().map(|it: &Value| text(it, "/metadata/name")).take(5).collect();
            let there =
                if names.is_empty() { "there is none".to_owned() } else { format!("there are: {}", names.join(", ")) };
            Advice::run(kubectl("", &["get", "volumesnapshotclasses"])).hint(format!("of snapshot classes {there}"))
        }
        _ => advice,
    }
}

/// What a driver said stands in quotes that begin before it.
fn without_end_of_quote(said: &str) -> &str {
    let is_open = said.matches('"').count() % 2 == 1;
    said.strip_suffix('"').filter(|_| is_open).unwrap_or(said)
}
