//! Pods that are scheduled together.

use corten_api::resources::{POD_GROUPS, POD_GROUPS_V1ALPHA3};
use corten_meta::Violation;
use corten_schema::violations;
use corten_validation::{
    read::{items, text},
    rules,
};
use serde_json::{Value, json};

use super::group;
use crate::{
    BuiltIn, Policy, Subresource, Verb, ViewOf,
    columns::{AGE, column, or_none},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: POD_GROUPS,
    singular: "podgroup",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.scheduling.v1beta1.PodGroup",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Policy", "How its Pods are scheduled.", |object, _| {
            json!(match &object["spec"]["schedulingPolicy"] {
                it if it["gang"].is_object() => "Gang",
                it if it["basic"].is_object() => "Basic",
                _ => "<none>",
            })
        }),
        column("Workload", "The Workload it was made from.", |object, _| {
            json!(or_none(text(object, "/spec/workloadRef/workloadName")))
        }),
        column("Status", "Whether its Pods have nodes.", |object, _| json!(status(object))),
        AGE,
    ],
    policy: &PodGroup,
};

pub(crate) const V1ALPHA3: BuiltIn =
    BuiltIn::view(POD_GROUPS_V1ALPHA3, "io.k8s.api.scheduling.v1alpha3.PodGroup", ViewOf::same(POD_GROUPS), KIND);

fn status(group: &Value) -> &str {
    let scheduled = items(group, "/status/conditions").iter().find(|it| it["type"] == "PodGroupInitiallyScheduled");
    match scheduled {
        Some(it) if it["status"] == "True" => "Scheduled",
        Some(it) => it["reason"].as_str().unwrap_or("Pending"),
        None => "Pending",
    }
}

struct PodGroup;

impl Policy for PodGroup {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |it| {
            group::origin(it.at("spec"));
            group::validate(it.at("spec"), "minCount");
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |it| rules::immutable(it.at("spec"), &old["spec"]))
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, |it| rules::conditions(it.at("status").at("conditions")))
    }

    fn status_keeps(&self) -> &'static [&'static str] {
        crate::policy::RESET_METADATA
    }
}
