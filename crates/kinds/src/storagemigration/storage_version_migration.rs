//! Asks for all objects of a resource to be stored again.

use corten_api::resources::{STORAGE_VERSION_MIGRATIONS, STORAGE_VERSION_MIGRATIONS_V1BETA1};
use corten_meta::Violation;
use corten_schema::violations;
use corten_validation::{
    read::{items, text},
    rules,
};
use serde_json::{Value, json};

use crate::{BuiltIn, Policy, Subresource, Verb, ViewOf, columns::column};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: STORAGE_VERSION_MIGRATIONS,
    singular: "storageversionmigration",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.storagemigration.v1.StorageVersionMigration",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Resource", "What is stored again.", |object, _| json!(resource(object))),
        column("Status", "How far it is.", |object, _| json!(status(object))),
    ],
    policy: &StorageVersionMigration,
};

pub(crate) const V1BETA1: BuiltIn = BuiltIn::view(
    STORAGE_VERSION_MIGRATIONS_V1BETA1,
    "io.k8s.api.storagemigration.v1beta1.StorageVersionMigration",
    ViewOf::same(STORAGE_VERSION_MIGRATIONS),
    KIND,
);

fn resource(migration: &Value) -> String {
    let (group, resource) = (text(migration, "/spec/resource/group"), text(migration, "/spec/resource/resource"));
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

fn holds(migration: &Value, kind: &str) -> bool {
    items(migration, "/status/conditions").iter().any(|it| it["type"] == kind && it["status"] == "True")
}

fn status(migration: &Value) -> &'static str {
    let known = ["Succeeded", "Failed", "Running"];
    known.into_iter().find(|it| holds(migration, it)).unwrap_or("Pending")
}

struct StorageVersionMigration;

impl Policy for StorageVersionMigration {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |migration| {
            let resource = migration.at("spec").at("resource").at("resource");
            if resource.is_empty() {
                resource.missing("resource is required");
            }
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |migration| {
            for field in ["group", "resource"] {
                let resource = migration.at("spec").at("resource");
                rules::immutable(resource.at(field), &old["spec"]["resource"][field]);
            }
        })
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |migration| {
            let (revision, conditions) =
                (migration.at("status").at("resourceVersion"), migration.at("status").at("conditions"));
            if !revision.is_empty() && revision.str().parse::<i64>().is_err() {
                revision.invalid(&format!(
                    "failed to parse resource version {0:?}: strconv.ParseInt: parsing {0:?}: invalid syntax",
                    revision.str()
                ));
            }
            let before = text(old, "/status/resourceVersion");
            if !before.is_empty() && before != revision.str() {
                revision.invalid("cannot be updated");
            }
            rules::conditions(conditions);
            let [succeeded, failed, running] = ["Succeeded", "Failed", "Running"].map(|it| holds(new, it));
            for (wrong, detail) in [
                (succeeded && failed, "Both success and failed conditions cannot be true at the same time"),
                (succeeded && running, "Running condition cannot be true when success condition is true"),
                (failed && running, "Running condition cannot be true when failed condition is true"),
                (holds(old, "Succeeded") && !succeeded, "Success condition cannot be set to false once it is true"),
                (holds(old, "Failed") && !failed, "Failed condition cannot be set to false once it is true"),
            ] {
                if wrong {
                    conditions.invalid(detail);
                }
            }
        })
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn status_keeps(&self) -> &'static [&'static str] {
        crate::policy::RESET_METADATA
    }
}
