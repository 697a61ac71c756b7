//! What `kubectl get jobs` prints.

use corten_meta::Time;
use corten_validation::read::{items, number, text};
use serde_json::{Value, json};

use crate::{
    Column,
    age::{human_duration, since},
    columns::{AGE, CONTAINERS, IMAGES, SELECTOR, column},
};

pub(super) const COLUMNS: &[Column] = &[
    column("Status", "What has become of it.", |object, _| json!(status(object))),
    column("Completions", "How many Pods have succeeded, of how many.", |object, _| json!(completions(object))),
    column("Duration", "How long it took, or has taken so far.", |object, now| json!(duration(object, now))),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn status(job: &Value) -> &'static str {
    let holds =
        |kind: &str| items(job, "/status/conditions").iter().any(|it| it["type"] == kind && it["status"] == "True");
    match () {
        () if holds("Complete") => "Complete",
        () if holds("Failed") => "Failed",
        () if !job["metadata"]["deletionTimestamp"].is_null() => "Terminating",
        () if holds("Suspended") => "Suspended",
        () if holds("FailureTarget") => "FailureTarget",
        () if holds("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(job: &Value) -> String {
    let done = number(job, "/status/succeeded");
    match (job["spec"]["completions"].as_i64(), number(job, "/spec/parallelism")) {
        (Some(wanted), _) => format!("{done}/{wanted}"),
        (None, at_once) if at_once > 1 => format!("{done}/1 of {at_once}"),
        (None, _) => format!("{done}/1"),
    }
}

fn duration(job: &Value, now: Time) -> String {
    let start = text(job, "/status/startTime");
    match (start.parse::<Time>(), text(job, "/status/completionTime").parse::<Time>()) {
        (Err(_), _) => String::new(),
        (Ok(start), Ok(end)) => human_duration((end.unix_millis() - start.unix_millis()).div_euclid(1000)),
        (Ok(_), Err(_)) => since(start, now),
    }
}
