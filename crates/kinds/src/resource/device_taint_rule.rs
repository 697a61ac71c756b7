//! A taint on all devices that a selector fits.

use corten_api::resources::{DEVICE_TAINT_RULES, DEVICE_TAINT_RULES_V1ALPHA3, DEVICE_TAINT_RULES_V1BETA2};
use corten_meta::Violation;
use corten_schema::violations;
use corten_validation::{
    fill::{fill, inner},
    read::text,
    rules,
};
use serde_json::{Value, json};

use super::{
    names::{label, pool},
    request::taint,
};
use crate::{
    BuiltIn, Policy, Subresource, Verb, ViewOf,
    age::since,
    columns::{AGE, column},
    keep,
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: DEVICE_TAINT_RULES,
    singular: "devicetaintrule",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Status],
    schema: "io.k8s.api.resource.v1.DeviceTaintRule",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        column("Key", "The key of its taint.", |object, _| json!(text(object, "/spec/taint/key"))),
        column("Value", "The value of its taint.", |object, _| json!(text(object, "/spec/taint/value"))),
        column("Effect", "What its taint does.", |object, _| json!(text(object, "/spec/taint/effect"))),
        column("TimeAdded", "How long ago the taint was added.", |object, now| {
            json!(since(text(object, "/spec/taint/timeAdded"), now))
        }),
        AGE,
    ],
    policy: &DeviceTaintRule,
};

pub(crate) const V1ALPHA3: BuiltIn = BuiltIn::view(
    DEVICE_TAINT_RULES_V1ALPHA3,
    "io.k8s.api.resource.v1alpha3.DeviceTaintRule",
    ViewOf::same(DEVICE_TAINT_RULES),
    KIND,
);

pub(crate) const V1BETA2: BuiltIn = BuiltIn::view(
    DEVICE_TAINT_RULES_V1BETA2,
    "io.k8s.api.resource.v1beta2.DeviceTaintRule",
    ViewOf::same(DEVICE_TAINT_RULES),
    KIND,
);

struct DeviceTaintRule;

impl Policy for DeviceTaintRule {
    fn prepare_create(&self, object: &mut Value) {
        let now = object["metadata"]["creationTimestamp"].clone();
        let Some(rule) = object.as_object_mut() else { return };
        rule.shift_remove("status");
        let taint = inner(rule, "spec").and_then(|it| inner(it, "taint"));
        if let Some(taint) = taint.filter(|_| !now.is_null()) {
            fill(taint, "timeAdded", now);
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        keep(new, old, "status");
        let added = &old["spec"]["taint"]["timeAdded"];
        let taint = new.as_object_mut().and_then(|it| inner(it, "spec")).and_then(|it| inner(it, "taint"));
        if let Some(taint) = taint.filter(|_| !added.is_null()) {
            fill(taint, "timeAdded", added.clone());
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |rule| {
            let selector = rule.at("spec").at("deviceSelector");
            if selector.at("driver").exists() {
                rules::driver_name(selector.at("driver"));
            }
            if selector.at("pool").exists() {
                pool(selector.at("pool"));
            }
            if selector.at("device").exists() {
                label(selector.at("device"));
            }
            taint(rule.at("spec").at("taint"));
        })
    }

    fn validate_status_update(&self, new: &Value, _old: &Value) -> Vec<Violation> {
        violations(new, |rule| rules::conditions(rule.at("status").at("conditions")))
    }

    fn status_keeps(&self) -> &'static [&'static str] {
        crate::policy::RESET_METADATA
    }
}
