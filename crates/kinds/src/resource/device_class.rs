//! Which devices a claim may name by a class, and how they are configured.

use corten_api::resources::{DEVICE_CLASSES, DEVICE_CLASSES_V1BETA1, DEVICE_CLASSES_V1BETA2};
use corten_meta::{Violation, field};
use corten_schema::violations;
use serde_json::Value;

use super::{names::at_most, request};
use crate::{BuiltIn, Policy, Verb, ViewOf, columns::AGE};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: DEVICE_CLASSES,
    singular: "deviceclass",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.resource.v1.DeviceClass",
    view_of: None,
    selectable_fields: &[],
    columns: &[AGE],
    policy: &DeviceClass,
};

pub(crate) const V1BETA1: BuiltIn = BuiltIn::view(
    DEVICE_CLASSES_V1BETA1,
    "io.k8s.api.resource.v1beta1.DeviceClass",
    ViewOf::same(DEVICE_CLASSES),
    KIND,
);

pub(crate) const V1BETA2: BuiltIn = BuiltIn::view(
    DEVICE_CLASSES_V1BETA2,
    "io.k8s.api.resource.v1beta2.DeviceClass",
    ViewOf::same(DEVICE_CLASSES),
    KIND,
);

struct DeviceClass;

const CONFIGURATIONS_MAX: usize = 32;

impl Policy for DeviceClass {
    fn name_violations(&self, name: &str) -> Vec<String> {
        field::long_name(name)
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |class| {
            let spec = class.at("spec");
            request::selectors(spec.at("selectors"));
            spec.list("config").for_each(request::configuration);
            at_most(spec.at("config"), CONFIGURATIONS_MAX);
            let extended = spec.at("extendedResourceName");
            if extended.exists() {
                extended.follows(field::qualified_name);
                if !extended.str().contains('/') || extended.str().starts_with("requests.") {
                    extended.invalid("must be a fully qualified extended resource name");
                }
            }
        })
    }
}
