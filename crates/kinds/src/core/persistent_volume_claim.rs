//! Asks for storage: a volume that fits is bound to it, or made for it.

use corten_api::{resources::PERSISTENT_VOLUME_CLAIMS, volumes::BETA_CLASS};
use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::{
    difference,
    fill::{Object, fill, fill_pointer, inner, made, means_the_same},
    read::text,
    rules::{self, amount},
    volume_claim, warnings,
};
use serde_json::{Value, json};

use super::storage;
use crate::{
    BuiltIn, Policy, Subresource, Verb,
    columns::{AGE, column, or_unset, wide},
    keep,
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: PERSISTENT_VOLUME_CLAIMS,
    singular: "persistentvolumeclaim",
    short_names: &["pvc"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.core.v1.PersistentVolumeClaim",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Status", "Pending, Bound or Lost.", |object, _| json!(storage::phase(object))),
        column("Volume", "The volume it is bound to.", |object, _| json!(text(object, "/spec/volumeName"))),
        column("Capacity", "How much that volume holds.", |object, _| {
            json!(if text(object, "/spec/volumeName").is_empty() {
                ""
            } else {
                text(object, "/status/capacity/storage")
            })
        }),
        column("Access Modes", "Who may mount that volume.", |object, _| {
            let is_bound = !text(object, "/spec/volumeName").is_empty();
            json!(if is_bound { storage::modes_text(object, "/status/accessModes") } else { String::new() })
        }),
        column("StorageClass", "The class of its volume.", |object, _| json!(storage::class_of(object))),
        column("VolumeAttributesClass", "How fast its volume is.", |object, _| {
            json!(or_unset(object, "/spec/volumeAttributesClassName"))
        }),
        AGE,
        wide("VolumeMode", "A file system or a block device.", |object, _| json!(or_unset(object, "/spec/volumeMode"))),
    ],
    policy: &PersistentVolumeClaim,
};

struct PersistentVolumeClaim;

const ONLY: &str =
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";

/// Defaults of a claim, alone or in the template of a StatefulSet.
pub(crate) fn default(claim: &mut Object) {
    if let Some(status) = made(claim, "status") {
        fill(status, "phase", "Pending");
    }
    if let Some(spec) = inner(claim, "spec") {
        fill_pointer(spec, "volumeMode", "Filesystem");
    }
}

impl Policy for PersistentVolumeClaim {
    fn default(&self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else { return };
        if made(object, "spec").is_some() {
            default(object);
        }
        if let Some(spec) = inner(object, "spec") {
            same_sources(spec);
        }
    }

    /// The phase.
    fn defaults_status(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        object["status"] = json!({"phase": "Pending"});
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |claim| volume_claim::validate(claim.at("spec")))
    }

    fn warnings(&self, new: &Value, _old: Option<&Value>) -> Vec<String> {
        warnings::persistent_volume_claim(new)
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |claim| {
            let (spec, before) = (claim.at("spec"), &old["spec"]);
            beta_class(claim, old);
            let allowed = with_allowed_changes(spec.value(), before, old);
            if !means_the_same(&allowed, before) {
                spec.forbidden(&format!("{ONLY}\n{}", difference("spec", before, &allowed)));
            }
            let (asked, had) = (spec.at("resources").at("requests").key("storage"), &before["resources"]["requests"]);
            let had = had["storage"].as_str().and_then(|it| it.parse::<corten_meta::Quantity>().ok());
            if asked.quantity() < had {
                let floor = claim.at("status").at("capacity").key("storage").quantity();
                if floor.is_none_or(|floor| asked.quantity() <= Some(floor)) {
                    let path = spec.at("resources").at("requests").at("storage").path();
                    claim.report(Violation::forbidden(path, "field can not be less than status.capacity"));
                }
            }
            // Kubernetes's path does not say `spec`.
            rules::immutable(claim.at("volumeMode").instead(spec.at("volumeMode")), &before["volumeMode"]);
            attributes_class(spec.at("volumeAttributesClassName"), old);
        })
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, |claim| {
            for (name, quantity) in claim.at("status").at("capacity").entries() {
                amount::quantity(name, quantity);
            }
        })
    }

    fn has_generation(&self) -> bool {
        false
    }
}

/// The class of times before there was a field stays, but for a claim that says it in the field from now on
/// (`validateStorageClassUpgradeFromAnnotation`).
fn beta_class(claim: Cursor<'_>, old: &Value) {
    let annotation = |it: &Value| it["metadata"]["annotations"][BETA_CLASS].as_str().map(str::to_owned);
    let (before, now) = (annotation(old), annotation(claim.value()));
    let class = claim.at("spec").at("storageClassName");
    let is_upgrade = before.is_some()
        && old["spec"]["storageClassName"].is_null()
        && class.value().as_str() == before.as_deref()
        && (now.is_none() || now == before);
    let now = now.unwrap_or_default();
    if !is_upgrade && now != before.unwrap_or_default() {
        let path = format!("metadata.annotations.{BETA_CLASS}");
        claim.report(Violation::invalid(path, format!("{now:?}"), "field is immutable"));
    }
}

/// Once a class was applied there is one.
fn attributes_class(class: Cursor<'_>, old: &Value) {
    let is_applied = !old["status"]["currentVolumeAttributesClassName"].is_null();
    if is_applied && class.is_empty() && *class.value() != old["spec"]["volumeAttributesClassName"] {
        let what = if class.exists() { "empty string" } else { "nil" };
        class.forbidden(&format!(
            "update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil"
        ));
    }
}

/// The old field and the new one name the same source, where the old one can.
fn same_sources(spec: &mut Object) {
    let (old, new) = (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned());
    let given = |it: &Option<Value>| it.as_ref().is_some_and(|it| !it.is_null());
    if given(&old) && !given(&new) {
        spec.insert("dataSourceRef".into(), old.unwrap_or_default());
    } else if given(&new) && !given(&old) {
        let new = new.unwrap_or_default();
        let known = new["kind"] == "PersistentVolumeClaim" && new["apiGroup"].as_str().unwrap_or_default().is_empty()
            || new["kind"] == "VolumeSnapshot" && new["apiGroup"] == "snapshot.storage.k8s.io";
        if known && new["namespace"].as_str().unwrap_or_default().is_empty() {
            spec.insert("dataSource".into(), new);
        }
    }
}

/// The new spec with everything that may change as it was before.
fn with_allowed_changes(new: &Value, old: &Value, claim: &Value) -> Value {
    let mut spec = new.clone();
    let unset = |it: &Value| it.as_str().unwrap_or_default().is_empty();
    // The binder names the volume, once.
    if unset(&old["volumeName"]) {
        keep(&mut spec, old, "volumeName");
    }
    // A class may come late, from the default; one that an annotation said already stays.
    let beta = &claim["metadata"]["annotations"][BETA_CLASS];
    if old["storageClassName"].is_null() && (beta.is_null() || *beta == new["storageClassName"]) {
        keep(&mut spec, old, "storageClassName");
    }
    if claim["status"]["phase"] == "Bound" {
        if let Some(requests) = old["resources"]["requests"].get("storage") {
            spec["resources"]["requests"]["storage"] = requests.clone();
        }
        keep(&mut spec, old, "volumeAttributesClassName");
    }
    spec
}

#[cfg(test)]
mod tests;
