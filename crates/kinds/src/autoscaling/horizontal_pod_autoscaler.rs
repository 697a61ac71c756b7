//! Sets the number of replicas of a workload by what is measured of it.

mod columns;
mod rules;
mod v1;

use corten_api::resources::{HORIZONTAL_POD_AUTOSCALERS, HORIZONTAL_POD_AUTOSCALERS_V1};
use corten_meta::Violation;
use corten_schema::violations;
use corten_validation::fill::{Object, fill, inner, is_absent, made};
use serde_json::{Value, json};

use crate::{BuiltIn, MetadataChecks, Policy, Subresource, Verb, ViewOf};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: HORIZONTAL_POD_AUTOSCALERS,
    singular: "horizontalpodautoscaler",
    short_names: &["hpa"],
    categories: &["all"],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.autoscaling.v2.HorizontalPodAutoscaler",
    view_of: None,
    selectable_fields: &[],
    columns: columns::COLUMNS,
    policy: &HorizontalPodAutoscaler,
};

pub(crate) const V1: BuiltIn = BuiltIn::view(
    HORIZONTAL_POD_AUTOSCALERS_V1,
    "io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler",
    ViewOf::converted(HORIZONTAL_POD_AUTOSCALERS, v1::to_stored, v1::from_stored),
    KIND,
);

struct HorizontalPodAutoscaler;

const CPU_PERCENT: i64 = 80;

impl Policy for HorizontalPodAutoscaler {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object.as_object_mut().and_then(|it| made(it, "spec")) else { return };
        fill(spec, "minReplicas", 1);
        if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            let target = json!({"type": "Utilization", "averageUtilization": CPU_PERCENT});
            spec.insert("metrics".into(), json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
        }
        let Some(behavior) = inner(spec, "behavior") else { return };
        if let Some(up) = made(behavior, "scaleUp") {
            fill(up, "stabilizationWindowSeconds", 0);
            scaling(
                up,
                json!([
                    {"type": "Pods", "value": 4, "periodSeconds": 15},
                    {"type": "Percent", "value": 100, "periodSeconds": 15}]),
            );
        }
        if let Some(down) = made(behavior, "scaleDown") {
            scaling(down, json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]));
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        let is_new = object["metadata"]["resourceVersion"].is_null();
        violations(object, |scaler| rules::spec(scaler.at("spec"), is_new))
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        let before = old["spec"]["scaleTargetRef"]["apiVersion"].as_str().unwrap_or_default();
        violations(new, |scaler| {
            if !rules::has_no_group(before) {
                rules::with_group(scaler.at("spec").at("scaleTargetRef").at("apiVersion"));
            }
        })
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, |scaler| {
            corten_validation::rules::counts(scaler.at("status"), &["currentReplicas", "desiredReplicas"]);
        })
    }

    fn has_generation(&self) -> bool {
        false
    }

    fn metadata_checks(&self) -> MetadataChecks {
        MetadataChecks::Change
    }
}

fn scaling(rules: &mut Object, policies: Value) {
    fill(rules, "selectPolicy", "Max");
    if is_absent(rules, "policies") {
        rules.insert("policies".into(), policies);
    }
}
