//! The claim that is made for each Pod that names it.

use corten_api::resources::{
    RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIM_TEMPLATES_V1BETA1, RESOURCE_CLAIM_TEMPLATES_V1BETA2,
};
use corten_meta::Violation;
use corten_schema::violations;
use corten_validation::{
    fill::inner,
    labels::{annotations, labels},
    rules,
};
use serde_json::Value;

use super::{request, v1beta1};
use crate::{BuiltIn, Policy, Verb, ViewOf, columns::AGE};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: RESOURCE_CLAIM_TEMPLATES,
    singular: "resourceclaimtemplate",
    short_names: &[],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.resource.v1.ResourceClaimTemplate",
    view_of: None,
    selectable_fields: &[],
    columns: &[AGE],
    policy: &ResourceClaimTemplate,
};

pub(crate) const V1BETA1: BuiltIn = BuiltIn::view(
    RESOURCE_CLAIM_TEMPLATES_V1BETA1,
    "io.k8s.api.resource.v1beta1.ResourceClaimTemplate",
    ViewOf::converted(RESOURCE_CLAIM_TEMPLATES, v1beta1::template_to_v1, v1beta1::template_from_v1),
    KIND,
);

pub(crate) const V1BETA2: BuiltIn = BuiltIn::view(
    RESOURCE_CLAIM_TEMPLATES_V1BETA2,
    "io.k8s.api.resource.v1beta2.ResourceClaimTemplate",
    ViewOf::same(RESOURCE_CLAIM_TEMPLATES),
    KIND,
);

struct ResourceClaimTemplate;

impl Policy for ResourceClaimTemplate {
    fn default(&self, object: &mut Value) {
        let spec = object.as_object_mut().and_then(|it| inner(it, "spec"));
        if let Some(spec) = spec.and_then(|it| inner(it, "spec")) {
            request::default(spec);
        }
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |template| {
            let spec = template.at("spec");
            labels(spec.at("metadata").at("labels"));
            annotations(spec.at("metadata").at("annotations"));
            request::validate(spec.at("spec"));
        })
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        violations(new, |template| rules::immutable(template.at("spec"), &old["spec"]))
    }

    fn has_generation(&self) -> bool {
        false
    }
}
