//! Answers "may they, here?".

use corten_api::resources::LOCAL_SUBJECT_ACCESS_REVIEWS;
use corten_meta::Violation;
use corten_schema::violations;
use serde_json::Value;

use crate::{BuiltIn, Policy, Verb, columns::AGE};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: LOCAL_SUBJECT_ACCESS_REVIEWS,
    singular: "localsubjectaccessreview",
    short_names: &[],
    categories: &[],
    verbs: Verb::CREATE_ONLY,
    subresources: &[],
    schema: "io.k8s.api.authorization.v1.LocalSubjectAccessReview",
    view_of: None,
    selectable_fields: &[],
    columns: &[AGE],
    policy: &LocalSubjectAccessReview,
};

struct LocalSubjectAccessReview;

/// The namespace of the question is that of the review, so that rights in a namespace suffice to ask.
impl Policy for LocalSubjectAccessReview {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |review| {
            let spec = review.at("spec");
            super::attributes(spec);
            super::subject(spec);
            let (resource, path) = (spec.at("resourceAttributes"), spec.at("nonResourceAttributes"));
            if resource.exists() && resource.at("namespace").str() != review.at("metadata").at("namespace").str() {
                resource.at("namespace").invalid("must match metadata.namespace");
            }
            if path.exists() {
                path.invalid("disallowed on this kind of request");
            }
        })
    }

    fn has_generation(&self) -> bool {
        false
    }
}
