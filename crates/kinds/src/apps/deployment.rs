//! Rolls ReplicaSets from one template to the next.

use corten_api::resources::DEPLOYMENTS;
use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{fill, made, text},
    pod_spec,
    read::number,
    rules::{self, int_or_percent},
};
use serde_json::{Value, json};

use crate::{
    BuiltIn, MetadataChecks, Policy, Subresource, Verb,
    columns::{AGE, CONTAINERS, IMAGES, SELECTOR, column},
    core::workload,
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: DEPLOYMENTS,
    singular: "deployment",
    short_names: &["deploy"],
    categories: &["all"],
    verbs: Verb::ALL,
    subresources: &[Subresource::Scale, Subresource::Status],
    schema: "io.k8s.api.apps.v1.Deployment",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Ready", "How many of its Pods are ready, of how many.", |object, _| {
            let of = number(object, "/spec/replicas");
            json!(format!("{}/{of}", number(object, "/status/readyReplicas")))
        }),
        column("Up-to-date", "How many Pods follow the newest template.", |object, _| {
            json!(number(object, "/status/updatedReplicas"))
        }),
        column("Available", "How many Pods have been ready for long enough.", |object, _| {
            json!(number(object, "/status/availableReplicas"))
        }),
        AGE,
        CONTAINERS,
        IMAGES,
        SELECTOR,
    ],
    policy: &Deployment,
};

struct Deployment;

const STATUS_COUNTS: &[&str] = &[
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "collisionCount",
];

impl Policy for Deployment {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object.as_object_mut().and_then(|it| made(it, "spec")) else { return };
        workload::default(spec);
        fill(spec, "revisionHistoryLimit", 10);
        fill(spec, "progressDeadlineSeconds", 600);
        let Some(strategy) = made(spec, "strategy") else { return };
        fill(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = made(strategy, "rollingUpdate")
        {
            fill(rolling, "maxUnavailable", "25%");
            fill(rolling, "maxSurge", "25%");
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |deployment| {
            let spec = deployment.at("spec");
            workload::validate(spec);
            strategy(spec.at("strategy"));
            spec.at("revisionHistoryLimit").non_negative_int();
            let deadline = spec.at("progressDeadlineSeconds");
            deadline.non_negative_int();
            if deadline.exists() && deadline.int() <= spec.at("minReadySeconds").int() {
                deadline.invalid("must be greater than minReadySeconds");
            }
        })
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        pod_spec::warnings(new, old, &["spec", "template", "spec"], pod_spec::Name::OfPods)
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |deployment| workload::selector_stays(deployment, old))
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |deployment| {
            let status = deployment.at("status");
            rules::counts(status, STATUS_COUNTS);
            let of_all = ["updatedReplicas", "readyReplicas", "availableReplicas"];
            rules::at_most(status, &of_all, "replicas", "status.replicas");
            rules::at_most(status, &["availableReplicas"], "readyReplicas", "readyReplicas");
            rules::never_less(status.at("collisionCount"), &old["status"]["collisionCount"]);
        })
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }

    fn counted_metadata(&self) -> &'static [&'static str] {
        &["annotations"]
    }

    fn status_keeps(&self) -> &'static [&'static str] {
        &["labels"]
    }
}

fn strategy(strategy: Cursor<'_>) {
    let rolling = strategy.at("rollingUpdate");
    match strategy.at("type").str() {
        "Recreate" => {
            if rolling.exists() {
                rolling.forbidden("may not be specified when strategy `type` is 'Recreate'");
            }
        }
        "RollingUpdate" => {
            if !rolling.exists() {
                return rolling.missing("this should be defaulted and never be nil");
            }
            let (unavailable, surge) = (rolling.at("maxUnavailable"), rolling.at("maxSurge"));
            int_or_percent::int_or_percent(unavailable);
            int_or_percent::int_or_percent(surge);
            if int_or_percent::is_zero(unavailable) && int_or_percent::is_zero(surge) {
                unavailable.invalid("may not be 0 when `maxSurge` is 0");
            }
            int_or_percent::at_most_all(unavailable);
            int_or_percent::at_most_all(surge);
        }
        // `ValidateDeploymentStrategy`: it is the strategy that is reported.
        _ => strategy.instead(strategy.at("type")).unsupported(&["Recreate", "RollingUpdate"]),
    }
}
