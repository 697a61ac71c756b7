//! VolumeSnapshots: their own status says what they wait for, whoever looks after them. Custom kinds have no journal.

use corten_api::{resources::PERSISTENT_VOLUME_CLAIMS, snapshots::VOLUME_SNAPSHOT_CONTENTS};
use corten_meta::Key;
use corten_reconcile::{Actor, Wait};
use serde_json::Value;

use super::found::Findings;
use crate::why::{
    State,
    fields::{one_line, text, time},
    reader::Reader,
};

/// How messages of upstream's snapshot controller begin, and the reasons it tells them by.
const REFUSALS: [(&str, &str); 3] = [
    ("Failed to create snapshot content with error ", "SnapshotContentCreationFailed"),
    ("Failed to get snapshot class with error ", "GetSnapshotClassFailed"),
    ("Failed to set default snapshot class with error ", "SetDefaultSnapshotClassFailed"),
];

pub(super) async fn snapshot(reader: &Reader<'_>, object: &Value, found: &mut Findings) {
    if object["status"]["readyToUse"] == true {
        let at = text(object, "/status/creationTime");
        found.verdict = Some((State::Fine, format!("it is ready to use, and was taken at {at}")));
        return;
    }
    let message = one_line(text(object, "/status/error/message"));
    let mut wait = if message.is_empty() {
        let content = text(object, "/status/boundVolumeSnapshotContentName");
        let key = Key::cluster(content);
        let found = if content.is_empty() { None } else { reader.get(&VOLUME_SNAPSHOT_CONTENTS, &key).await };
        match found.map(|it| text(&it, "/spec/driver").to_owned()) {
            Some(driver) => Wait::new("SnapshotNotReady", format!("driver {driver} is to take it"), Actor::External),
            None => Wait::new("SnapshotNotReady", "nobody has made a content for it yet", Actor::Cluster),
        }
    } else {
        let refusal = REFUSALS.iter().find(|it| message.starts_with(it.0));
        match refusal {
            Some((_, reason)) => of_claim(reader, object, Wait::new(reason, message, Actor::Author)).await,
            None => Wait::new("SnapshotNotReady", message, Actor::Operator),
        }
    };
    wait.since = time(&object["status"]["error"]["time"]).or_else(|| time(&object["metadata"]["creationTimestamp"]));
    found.wait(wait);
}

/// What has no volume yet cannot be taken a snapshot of: the claim says why that is.
async fn of_claim(reader: &Reader<'_>, snapshot: &Value, wait: Wait) -> Wait {
    let name = text(snapshot, "/spec/source/persistentVolumeClaimName");
    let key = Key::new(text(snapshot, "/metadata/namespace"), name);
    let claim = if name.is_empty() { None } else { reader.get(&PERSISTENT_VOLUME_CLAIMS, &key).await };
    match claim {
        Some(claim) if text(&claim, "/status/phase") != "Bound" => wait.on("PersistentVolumeClaim", name),
        _ => wait,
    }
}

/// What a driver says of the snapshot that it is to take or to remove.
pub(super) fn content(object: &Value, found: &mut Findings) {
    let message = one_line(text(object, "/status/error/message"));
    if object["status"]["readyToUse"] == true || message.is_empty() {
        return;
    }
    let mut wait = Wait::new("SnapshotNotReady", message, Actor::Operator);
    wait.since = time(&object["status"]["error"]["time"]).or_else(|| time(&object["metadata"]["creationTimestamp"]));
    found.wait(wait);
}
