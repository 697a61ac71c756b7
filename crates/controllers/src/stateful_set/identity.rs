//! What makes each pod of a set itself: its ordinal, and from that its name, host name, labels and volumes.

use serde_json::{Value, json};

use super::claims;
use crate::{
    pod_template::pod_of,
    projections::{Pod, StatefulSet},
};

pub(super) const REVISION_LABEL: &str = "controller-revision-hash";
const POD_NAME_LABEL: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX_LABEL: &str = "apps.kubernetes.io/pod-index";

/// `web-3` is number 3 of `web`.
pub(super) fn parts(name: &str) -> Option<(&str, i64)> {
    let (parent, digits) = name.rsplit_once('-')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
    let ordinal = digits.parse::<i32>().ok().filter(|_| is_number)?;
    Some((parent, i64::from(ordinal)))
}

/// A pod's number in the set, if by its name it is one of its.
pub(super) fn ordinal(set: &str, pod: &str) -> Option<i64> {
    parts(pod).filter(|it| it.0 == set).map(|it| it.1)
}

pub(super) fn name(set: &StatefulSet, ordinal: i64) -> String {
    format!("{}-{ordinal}", set.metadata.name)
}

pub(super) fn revision(pod: &Pod) -> &str {
    pod.metadata.labels.get(REVISION_LABEL).map_or("", String::as_str)
}

/// The pod of an ordinal, made from one revision's template.
pub(super) fn pod(set: &StatefulSet, ordinal: i64, template: &Value, revision: &str) -> Value {
    let name = name(set, ordinal);
    let mut pod = pod_of::<StatefulSet>(template, &set.metadata, &name, &format!("{}-", set.metadata.name));
    let labels = &mut pod["metadata"]["labels"];
    labels[POD_NAME_LABEL] = json!(name);
    labels[POD_INDEX_LABEL] = json!(ordinal.to_string());
    labels[REVISION_LABEL] = json!(revision);
    let spec = &mut pod["spec"];
    spec["hostname"] = json!(name);
    if !set.spec.service_name.is_empty() {
        spec["subdomain"] = json!(set.spec.service_name);
    }
    if !set.spec.volume_claim_templates.is_empty() {
        spec["volumes"] = volumes(set, ordinal, &spec["volumes"]);
    }
    pod
}

/// The set's claims, and those of the template's volumes that have other names.
fn volumes(set: &StatefulSet, ordinal: i64, of_template: &Value) -> Value {
    let templates = &set.spec.volume_claim_templates;
    let claimed = templates.iter().map(|it| {
        let claim = claims::name(set, it, ordinal);
        json!({ "name": it["metadata"]["name"], "persistentVolumeClaim": { "claimName": claim } })
    });
    let is_other = |it: &&Value| !templates.iter().any(|template| template["metadata"]["name"] == it["name"]);
    let others = of_template.as_array().into_iter().flatten().filter(is_other).cloned();
    claimed.chain(others).collect()
}

/// The labels a pod lacks to be the one its name says.
pub(super) fn missing_labels(pod: &Pod, ordinal: i64) -> Option<Value> {
    let wanted = [(POD_NAME_LABEL, pod.metadata.name.clone()), (POD_INDEX_LABEL, ordinal.to_string())];
    let labels: serde_json::Map<String, Value> = wanted
        .into_iter()
        .filter(|(label, value)| pod.metadata.labels.get(*label) != Some(value))
        .map(|(label, value)| (label.to_owned(), json!(value)))
        .collect();
    (!labels.is_empty()).then(|| json!({ "metadata": { "labels": labels } }))
}
