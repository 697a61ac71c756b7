//! Runs Pods until enough of them have succeeded.

mod columns;
mod failure;
mod rules;
mod selector;
mod status;
mod success;
mod update;

use corten_api::resources::JOBS;
use corten_meta::Violation;
use corten_schema::violations;
use corten_validation::{
    fill::{Object, each, fill, inner, is_absent, made},
    warnings,
};
use serde_json::Value;

use crate::{BuiltIn, MetadataChecks, Policy, SelectablePath, Subresource, Verb, core::workload};

pub(super) use rules::spec as validate_spec;

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: JOBS,
    singular: "job",
    short_names: &[],
    categories: &["all"],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.batch.v1.Job",
    view_of: None,
    selectable_fields: &["status.successful"],
    columns: columns::COLUMNS,
    policy: &Job,
};

struct Job;

/// As good as no limit: where every index has its own.
const NO_LIMIT: i32 = i32::MAX;

impl Policy for Job {
    /// The selector calls a field `successful` that the object calls `succeeded` (job.JobSelectableFields).
    fn selectable_path<'a>(&self, field: &'a str) -> SelectablePath<'a> {
        let path = if field == "status.successful" { "status.succeeded" } else { field };
        SelectablePath { path, instead: None }
    }

    fn default(&self, object: &mut Value) {
        let labels = object["spec"]["template"]["metadata"]["labels"].clone();
        let Some(object) = object.as_object_mut() else { return };
        if labels.as_object().is_some_and(|it| !it.is_empty())
            && let Some(metadata) = made(object, "metadata")
            && metadata.get("labels").and_then(Value::as_object).is_none_or(Object::is_empty)
        {
            metadata.insert("labels".into(), labels);
        }
        let Some(spec) = made(object, "spec") else { return };
        if is_absent(spec, "completions") && is_absent(spec, "parallelism") {
            fill(spec, "completions", 1);
        }
        fill(spec, "parallelism", 1);
        let per_index = !is_absent(spec, "backoffLimitPerIndex");
        fill(spec, "backoffLimit", if per_index { NO_LIMIT } else { 6 });
        fill(spec, "completionMode", "NonIndexed");
        fill(spec, "suspend", false);
        fill(spec, "manualSelector", false);
        let replacement = if is_absent(spec, "podFailurePolicy") { "TerminatingOrFailed" } else { "Failed" };
        fill(spec, "podReplacementPolicy", replacement);
        default_template(spec);
    }

    fn prepare_create(&self, object: &mut Value) {
        if let Some(object) = object.as_object_mut() {
            object.shift_remove("status");
        }
        // Labels that were taken over (`SetDefaults_Job`) are the template's own map, so what is generated into the
        // one is in the other.
        let template = |it: &Value| it["spec"]["template"]["metadata"]["labels"].clone();
        let labels = object["metadata"]["labels"].clone();
        let are_taken_over = labels.is_object() && labels == template(object);
        selector::generate(object);
        if are_taken_over {
            object["metadata"]["labels"] = template(object);
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |job| {
            selector::validate(job);
            rules::job(job);
        })
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        warnings::job(new, old, &["spec"])
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |job| update::validate(job, old))
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |job| status::validate(job, old))
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }
}

/// What a Job has by default wherever it stands: in a CronJob, too.
pub(super) fn default_template(spec: &mut Object) {
    workload::default_template(spec);
    if let Some(policy) = inner(spec, "podFailurePolicy") {
        for rule in each(policy, "rules") {
            for pattern in each(rule, "onPodConditions") {
                fill(pattern, "status", "True");
            }
        }
    }
}
