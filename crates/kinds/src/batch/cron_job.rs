//! Makes Jobs by the clock.

use corten_api::resources::CRON_JOBS;
use corten_meta::{Schedule, Violation, schedule::time_zone};
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{fill, made},
    read::{items, text},
    rules, warnings,
};
use serde_json::{Value, json};

use super::job;
use crate::{
    BuiltIn, MetadataChecks, Policy, Subresource, Verb,
    age::since,
    columns::{AGE, column, integer, of_each, selector_text, wide},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: CRON_JOBS,
    singular: "cronjob",
    short_names: &["cj"],
    categories: &["all"],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.batch.v1.CronJob",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Schedule", "When it makes a Job.", |object, _| json!(text(object, "/spec/schedule"))),
        column("Timezone", "By whose clock.", |object, _| {
            json!(object.pointer("/spec/timeZone").and_then(Value::as_str).unwrap_or("<none>"))
        }),
        column("Suspend", "Does it wait?", |object, _| {
            json!(match object["spec"]["suspend"].as_bool() {
                None => "<unset>",
                Some(true) => "True",
                Some(false) => "False",
            })
        }),
        integer("Active", "How many of its Jobs run.", |object, _| json!(items(object, "/status/active").len())),
        column("Last Schedule", "How long ago it last made a Job.", |object, now| {
            let last = text(object, "/status/lastScheduleTime");
            json!(if last.is_empty() { "<none>".to_owned() } else { since(last, now) })
        }),
        AGE,
        wide("Containers", "The names of the template's containers.", |object, _| json!(containers(object, "name"))),
        wide("Images", "The images of the template's containers.", |object, _| json!(containers(object, "image"))),
        wide("Selector", "Which Pods its Jobs count as their own.", |object, _| {
            json!(selector_text(&object["spec"]["jobTemplate"]["spec"]["selector"]))
        }),
    ],
    policy: &CronJob,
};

struct CronJob;

/// A Job's name is the CronJob's and eleven characters for the time.
const NAME_BYTES_MAX: usize = 52;

fn containers(object: &Value, field: &str) -> String {
    of_each(items(object, "/spec/jobTemplate/spec/template/spec/containers"), field)
}

impl Policy for CronJob {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object.as_object_mut().and_then(|it| made(it, "spec")) else { return };
        fill(spec, "concurrencyPolicy", "Allow");
        fill(spec, "suspend", false);
        fill(spec, "successfulJobsHistoryLimit", 3);
        fill(spec, "failedJobsHistoryLimit", 1);
        if let Some(template) = made(spec, "jobTemplate") {
            fill(template, "metadata", json!({}));
            if let Some(spec) = made(template, "spec") {
                job::default_template(spec);
            }
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |cron| {
            let name = cron.at("metadata").at("name");
            if name.str().len() > NAME_BYTES_MAX {
                name.invalid(&format!("must be no more than {NAME_BYTES_MAX} characters"));
            }
            spec(cron.at("spec"));
        })
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        warnings::job(new, old, &["spec", "jobTemplate", "spec"])
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }
}

fn spec(spec: Cursor<'_>) {
    let (schedule, zone) = (spec.at("schedule"), spec.at("timeZone"));
    if schedule.required() {
        if let Err(reason) = Schedule::parse(schedule.str()) {
            schedule.invalid(&reason);
        }
        if schedule.str().contains("TZ") {
            schedule.invalid("cannot use TZ or CRON_TZ in schedule, use timeZone field instead");
        }
    }
    spec.at("startingDeadlineSeconds").non_negative_int();
    if zone.exists() {
        if zone.is_empty() {
            zone.invalid("timeZone must be nil or non-empty string");
        } else if zone.str().eq_ignore_ascii_case("local") {
            zone.invalid("timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones");
        } else if let Err(reason) = time_zone(zone.str()) {
            zone.invalid(&reason);
        }
    }
    rules::required_one_of(spec.at("concurrencyPolicy"), &["Allow", "Forbid", "Replace"]);
    template(spec.at("jobTemplate").at("spec"));
    spec.at("successfulJobsHistoryLimit").non_negative_int();
    spec.at("failedJobsHistoryLimit").non_negative_int();
}

/// As a Job's own, but for the selector, which each Job gets when it is made.
fn template(spec: Cursor<'_>) {
    job::validate_spec(spec);
    if spec.at("selector").exists() {
        spec.at("selector").invalid("`selector` will be auto-generated");
    }
    let manual = spec.at("manualSelector");
    if manual.bool() {
        let message = "Unsupported value: true: supported values: \"nil\", \"false\"".to_owned();
        manual.report(Violation { path: manual.path(), rule: corten_meta::Rule::NotSupported, message });
    }
}
