//! How many Pods of an application must stay while others are moved away on purpose.

use corten_api::resources::POD_DISRUPTION_BUDGETS;
use corten_meta::{Violation, field};
use corten_schema::violations;
use corten_validation::{
    labels,
    read::number,
    rules::{self, int_or_percent},
};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Subresource, Verb,
    columns::{AGE, column, integer},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: POD_DISRUPTION_BUDGETS,
    singular: "poddisruptionbudget",
    short_names: &["pdb"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.policy.v1.PodDisruptionBudget",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Min Available", "How many Pods must stay.", |object, _| {
            json!(share_text(&object["spec"]["minAvailable"]))
        }),
        column("Max Unavailable", "How many Pods may be away.", |object, _| {
            json!(share_text(&object["spec"]["maxUnavailable"]))
        }),
        integer("Allowed Disruptions", "How many Pods may go now.", |object, _| {
            json!(number(object, "/status/disruptionsAllowed"))
        }),
        AGE,
    ],
    policy: &PodDisruptionBudget,
};

struct PodDisruptionBudget;

fn share_text(share: &Value) -> String {
    match share {
        Value::Null => "N/A".into(),
        Value::String(percent) => percent.clone(),
        number => number.to_string(),
    }
}

impl Policy for PodDisruptionBudget {
    /// Its validation looks at no name: whatever can stand in a path is one.
    fn name_violations(&self, name: &str) -> Vec<String> {
        field::path_segment(name)
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |budget| {
            let spec = budget.at("spec");
            let (min, max) = (spec.at("minAvailable"), spec.at("maxUnavailable"));
            if min.exists() && max.exists() {
                spec.invalid("minAvailable and maxUnavailable cannot be both set");
            }
            for share in [min, max].into_iter().filter(|it| it.exists()) {
                int_or_percent::int_or_percent(share);
                int_or_percent::at_most_all(share);
            }
            if spec.at("selector").exists() {
                labels::label_selector(spec.at("selector"));
            }
            rules::optional_one_of(spec.at("unhealthyPodEvictionPolicy"), &["AlwaysAllow", "IfHealthyBudget"]);
        })
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, |budget| {
            let status = budget.at("status");
            rules::conditions(status.at("conditions"));
            rules::counts(status, &["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"]);
        })
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}
