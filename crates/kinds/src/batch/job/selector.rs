//! The labels and the selector by which a Job knows its Pods: made of its uid, unless its author takes that upon himself.

use corten_meta::Violation;
use corten_schema::Cursor;
use corten_validation::{fill::made, read::text};
use serde_json::Value;

const UID: &str = "batch.kubernetes.io/controller-uid";
const NAME: &str = "batch.kubernetes.io/job-name";
/// From before labels of Kubernetes had a prefix.
const OLD_UID: &str = "controller-uid";
const OLD_NAME: &str = "job-name";

pub(super) fn generate(job: &mut Value) {
    if job["spec"]["manualSelector"] == true {
        return;
    }
    let (uid, name) = (text(job, "/metadata/uid").to_owned(), text(job, "/metadata/name").to_owned());
    let Some(spec) = job.as_object_mut().and_then(|it| made(it, "spec")) else { return };
    let Some(metadata) = made(spec, "template").and_then(|it| made(it, "metadata")) else { return };
    let Some(labels) = made(metadata, "labels") else { return };
    for (label, value) in [(OLD_NAME, &name), (NAME, &name), (OLD_UID, &uid), (UID, &uid)] {
        // What the author set himself is for validation to refuse.
        labels.entry(label).or_insert_with(|| value.clone().into());
    }
    if let Some(wanted) = made(spec, "selector").and_then(|it| made(it, "matchLabels")) {
        wanted.entry(UID).or_insert_with(|| uid.into());
    }
}

/// Is the generated selector the Job's own?
pub(super) fn validate(job: Cursor<'_>) {
    let spec = job.at("spec");
    if spec.at("manualSelector").bool() || !spec.at("selector").exists() {
        return;
    }
    let (uid, name) = (job.at("metadata").at("uid"), job.at("metadata").at("name"));
    if uid.is_empty() {
        uid.missing("");
    }
    let labels = spec.at("template").at("metadata").at("labels");
    let expected = [(OLD_UID, uid.str()), (OLD_NAME, name.str()), (UID, uid.str()), (NAME, name.str())];
    for (label, wanted) in expected {
        let found = labels.key(label);
        if !found.exists() {
            found.missing(&format!("must be '{wanted}'"));
        } else if found.str() != wanted {
            found.report(Violation::invalid(found.path(), labels.value(), &format!("must be '{wanted}'")));
        }
    }
    let own = expected.map(|(label, value)| (label.to_owned(), value.to_owned())).into();
    let selector: corten_meta::LabelSelector =
        serde::Deserialize::deserialize(spec.at("selector").value()).unwrap_or_default();
    if !selector.matches(&own) {
        spec.at("selector").invalid("`selector` not auto-generated");
    }
}
