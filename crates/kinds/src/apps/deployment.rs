//! Rolls ReplicaSets from one template to the next.

use corten_api::resources::DEPLOYMENTS;

use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use serde_json::{Value, json};

use super::workload;
use crate::{
    Kind, Policy, Subresource, Verb,
    columns::{AGE, CONTAINERS, IMAGES, SELECTOR, column, number},
    fill::{fill, made, text},
};

pub(crate) const KIND: Kind = Kind {
    resource: DEPLOYMENTS,
    singular: "deployment",
    short_names: &["deploy"],
    categories: &["all"],
    verbs: Verb::ALL,
    subresources: &[Subresource::Scale, Subresource::Status],
    schema: "io.k8s.api.apps.v1.Deployment",
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

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |deployment| workload::selector_stays(deployment, old))
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
            int_or_percent(unavailable);
            int_or_percent(surge);
            if is_zero(unavailable) && is_zero(surge) {
                unavailable.invalid("may not be 0 when `maxSurge` is 0");
            }
            for share in [unavailable, surge] {
                if percent(share.str()).is_some_and(|it| it > 100) {
                    share.invalid("must not be greater than 100%");
                }
            }
        }
        _ => strategy.at("type").unsupported(&["Recreate", "RollingUpdate"]),
    }
}

fn int_or_percent(value: Cursor<'_>) {
    if value.value().is_string() {
        if percent(value.str()).is_none() {
            value.invalid("a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')");
        }
    } else {
        value.non_negative_int();
    }
}

fn percent(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('%')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

fn is_zero(value: Cursor<'_>) -> bool {
    if value.value().is_string() { percent(value.str()) == Some(0) } else { value.int() == 0 }
}
