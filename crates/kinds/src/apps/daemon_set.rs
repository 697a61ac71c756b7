//! Runs one Pod on every node, or on every node of a kind.

use corten_api::resources::DAEMON_SETS;
use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{fill, made, means_the_same, text},
    labels, pod_spec,
    read::number,
    rules::{self, int_or_percent},
};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Subresource, Verb,
    columns::{AGE, CONTAINERS, IMAGES, SELECTOR, column, integer, labels_text},
    core::workload,
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: DAEMON_SETS,
    singular: "daemonset",
    short_names: &["ds"],
    categories: &["all"],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.apps.v1.DaemonSet",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        integer("Desired", "How many nodes are to run its Pod.", |object, _| {
            json!(number(object, "/status/desiredNumberScheduled"))
        }),
        integer("Current", "How many of these have its Pod.", |object, _| {
            json!(number(object, "/status/currentNumberScheduled"))
        }),
        integer("Ready", "How many of these Pods are ready.", |object, _| json!(number(object, "/status/numberReady"))),
        integer("Up-to-date", "How many follow the newest template.", |object, _| {
            json!(number(object, "/status/updatedNumberScheduled"))
        }),
        integer("Available", "How many have been ready for long enough.", |object, _| {
            json!(number(object, "/status/numberAvailable"))
        }),
        column("Node Selector", "Which nodes it is for.", |object, _| {
            json!(labels_text(&object["spec"]["template"]["spec"]["nodeSelector"]))
        }),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    policy: &DaemonSet,
};

struct DaemonSet;

/// Counts the templates there have been: a field before `apps/v1`, an annotation since.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
const STATUS_COUNTS: &[&str] = &[
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
];

impl Policy for DaemonSet {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object.as_object_mut().and_then(|it| made(it, "spec")) else { return };
        workload::default_template(spec);
        fill(spec, "revisionHistoryLimit", 10);
        let Some(strategy) = made(spec, "updateStrategy") else { return };
        fill(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = made(strategy, "rollingUpdate")
        {
            fill(rolling, "maxUnavailable", 1);
            fill(rolling, "maxSurge", 0);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        let given = template_generation(object);
        set_template_generation(object, given.max(1));
        if let Some(object) = object.as_object_mut() {
            object.shift_remove("status");
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        crate::keep(new, old, "status");
        let changed = !means_the_same(&new["spec"]["template"], &old["spec"]["template"]);
        set_template_generation(new, template_generation(old).saturating_add(i64::from(changed)));
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |set| {
            let spec = set.at("spec");
            let (selector, template) = (spec.at("selector"), spec.at("template"));
            let is_selector = labels::label_selector(selector);
            let labels = template.at("metadata").at("labels");
            if is_selector && !workload::matches(selector, labels) {
                labels.invalid(workload::MISMATCH);
            }
            if selector.exists() && workload::is_all(selector) {
                selector.invalid("empty selector is invalid for daemonset");
            }
            pod_spec::validate_template(template);
            workload::lasting(template, "DaemonSet");
            spec.at("minReadySeconds").non_negative_int();
            strategy(spec.at("updateStrategy"));
            spec.at("revisionHistoryLimit").non_negative_int();
        })
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        pod_spec::warnings(new, old, &["spec", "template", "spec"], pod_spec::Name::Nothing)
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |set| workload::selector_stays(set, old))
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |set| {
            let status = set.at("status");
            rules::counts(status, STATUS_COUNTS);
            rules::never_less(status.at("collisionCount"), &old["status"]["collisionCount"]);
        })
    }
}

fn template_generation(object: &Value) -> i64 {
    let written = object["metadata"]["annotations"][TEMPLATE_GENERATION].as_str();
    written.and_then(|it| it.parse().ok()).unwrap_or_default()
}

fn set_template_generation(object: &mut Value, generation: i64) {
    let metadata = object.as_object_mut().and_then(|it| made(it, "metadata"));
    if let Some(annotations) = metadata.and_then(|it| made(it, "annotations")) {
        annotations.insert(TEMPLATE_GENERATION.into(), generation.to_string().into());
    }
}

fn strategy(strategy: Cursor<'_>) {
    match strategy.at("type").str() {
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = strategy.at("rollingUpdate");
            if !rolling.exists() {
                return rolling.missing("");
            }
            let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            int_or_percent::int_or_percent(unavailable);
            int_or_percent::int_or_percent(surge);
            int_or_percent::at_most_all(unavailable);
            int_or_percent::at_most_all(surge);
            match (int_or_percent::is_zero(unavailable), int_or_percent::is_zero(surge)) {
                (false, false) => surge.invalid("may not be set when maxUnavailable is non-zero"),
                (true, true) => unavailable.missing("cannot be 0 when maxSurge is 0"),
                _ => {}
            }
        }
        _ => strategy.at("type").unsupported(&["OnDelete", "RollingUpdate"]),
    }
}
