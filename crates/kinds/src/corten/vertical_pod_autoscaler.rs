//! Gives the containers of a workload's Pods what they are seen to use.

use std::collections::BTreeSet;

use corten_api::resources::VERTICAL_POD_AUTOSCALERS;
use corten_meta::Violation;
use corten_schema::{Cursor, violations};
use corten_validation::{
    fill::{fill, made},
    read::{items, text},
    rules,
};
use serde_json::{Value, json};

use crate::{
    BuiltIn, Policy, Subresource, Verb,
    columns::{AGE, column, first_few},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: VERTICAL_POD_AUTOSCALERS,
    singular: "verticalpodautoscaler",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "dev.corten.v1.VerticalPodAutoscaler",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Reference", "Whose Pods it resizes.", |object, _| {
            let target = &object["spec"]["targetRef"];
            json!(format!("{}/{}", text(target, "/kind"), text(target, "/name")))
        }),
        column("Mode", "Auto resizes; Off recommends.", |object, _| json!(text(object, "/spec/mode"))),
        column("Targets", "What it recommends for each container.", |object, _| json!(targets(object))),
        column("Applied", "Whether all Pods have that.", |object, _| json!(applied(object))),
        AGE,
    ],
    policy: &VerticalPodAutoscaler,
};

/// How many recommendations are shown.
const SHOWN: usize = 2;

fn targets(scaler: &Value) -> String {
    let shown = |it: &Value| format!("{} {}: {}", text(it, "/container"), text(it, "/resource"), text(it, "/target"));
    let all: Vec<String> = items(scaler, "/status/recommendations").iter().map(shown).collect();
    if all.is_empty() { "<none>".into() } else { first_few(&all, SHOWN, ", ") }
}

fn applied(scaler: &Value) -> &str {
    let condition = items(scaler, "/status/conditions").iter().find(|it| it["type"] == "Applied");
    condition.and_then(|it| it["status"].as_str()).unwrap_or("Unknown")
}

struct VerticalPodAutoscaler;

const HEADROOM_PERCENT: i64 = 15;
const HEADROOM_PERCENT_MAX: i64 = 1000;
/// Each is looked at in every look.
const CONTAINERS_MAX: usize = 100;

impl Policy for VerticalPodAutoscaler {
    fn default(&self, object: &mut Value) {
        let Some(spec) = object.as_object_mut().and_then(|it| made(it, "spec")) else { return };
        fill(spec, "mode", "Auto");
        fill(spec, "headroomPercent", HEADROOM_PERCENT);
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |scaler| {
            let spec = scaler.at("spec");
            let target = spec.at("targetRef");
            rules::path_segment(target.at("kind"));
            rules::path_segment(target.at("name"));
            if target.at("apiVersion").str().split('/').count() > 2 {
                target.at("apiVersion").invalid("must be a group and a version");
            }
            spec.at("mode").one_of(&["Auto", "Off"]);
            spec.at("headroomPercent").int_between(0, HEADROOM_PERCENT_MAX);
            containers(spec.at("containers"));
        })
    }

    fn status_keeps(&self) -> &'static [&'static str] {
        crate::policy::RESET_METADATA
    }
}

fn containers(containers: Cursor<'_>) {
    if !containers.at_most(CONTAINERS_MAX) {
        return;
    }
    let mut names = BTreeSet::new();
    for container in containers.each() {
        let name = container.at("name");
        if name.required() && !names.insert(name.str()) {
            name.duplicate();
        }
        let (least, most) = (container.at("minAllowed"), container.at("maxAllowed"));
        for amounts in [least, most] {
            amounts.entries().for_each(|(resource, amount)| {
                if !["cpu", "memory"].contains(&resource) {
                    amount.unsupported(&["cpu", "memory"]);
                }
                amount.non_negative_quantity();
            });
        }
        for (resource, least) in least.entries() {
            let most = most.key(resource);
            if most.quantity().zip(least.quantity()).is_some_and(|(most, least)| most < least) {
                most.invalid("must not be less than minAllowed");
            }
        }
    }
}
