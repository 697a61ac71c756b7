//! Divides names among teams.

use corten_api::resources::NAMESPACES;
use corten_meta::{Violation, field};
use corten_schema::violations;
use corten_validation::{
    fill::{fill, made},
    read::text,
};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Subresource, Verb,
    columns::{AGE, column},
    keep,
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: NAMESPACES,
    singular: "namespace",
    short_names: &["ns"],
    categories: &[],
    verbs: Verb::WITHOUT_COLLECTION,
    subresources: &[Subresource::Finalize, Subresource::Status],
    schema: "io.k8s.api.core.v1.Namespace",
    view_of: None,
    selectable_fields: &["status.phase"],
    columns: &[column("Status", "Active or Terminating.", |object, _| json!(text(object, "/status/phase"))), AGE],
    policy: &Namespace,
};

struct Namespace;

/// The finalizer in `spec` that stands until all content is gone.
const FINALIZER: &str = "kubernetes";

impl Policy for Namespace {
    /// Selectors find a namespace by its name through this label, and policies trust it: nobody else sets it
    /// (SetDefaults_Namespace).
    fn default(&self, object: &mut Value) {
        let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
        let Some(name) = metadata.get("name").cloned().filter(|it| *it != "") else { return };
        if let Some(labels) = made(metadata, "labels") {
            labels.insert("kubernetes.io/metadata.name".into(), name);
        }
    }

    /// The label of its name is a default: a status that takes it away, or another's, is not believed.
    fn defaults_status(&self) -> bool {
        true
    }

    fn prepare_create(&self, object: &mut Value) {
        let Some(object) = object.as_object_mut() else { return };
        object.insert("status".into(), json!({"phase": "Active"}));
        let Some(spec) = made(object, "spec") else { return };
        fill(spec, "finalizers", json!([]));
        if let Some(finalizers) = spec.get_mut("finalizers").and_then(Value::as_array_mut)
            && !finalizers.iter().any(|it| it == FINALIZER)
        {
            finalizers.push(FINALIZER.into());
        }
    }

    /// Finalizers go through the `finalize` subresource only.
    fn prepare_update(&self, new: &mut Value, old: &Value) {
        keep(new, old, "spec");
        keep(new, old, "status");
    }

    fn name_violations(&self, name: &str) -> Vec<String> {
        field::dns1123_label(name)
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |object| {
            for finalizer in object.at("spec").list("finalizers") {
                let reasons = field::qualified_name(finalizer.str());
                let known = finalizer.str() == FINALIZER;
                if reasons.is_empty() && !known && !finalizer.str().contains('/') {
                    finalizer.invalid("name is neither a standard finalizer name nor is it fully qualified");
                }
                finalizer.invalid_all(reasons);
            }
        })
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, |namespace| {
            let phase = namespace.at("status").at("phase");
            let shown = namespace.at("status").at("Phase").instead(phase);
            let ends = !namespace.at("metadata").at("deletionTimestamp").is_empty();
            if ends && phase.str() != "Terminating" {
                shown.invalid("may only be 'Terminating' if `deletionTimestamp` is not empty");
            } else if !ends && phase.str() != "Active" {
                shown.invalid("may only be 'Active' if `deletionTimestamp` is empty");
            }
        })
    }

    fn has_generation(&self) -> bool {
        false
    }
}
