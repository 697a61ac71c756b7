//! Answers "may they?".

use corten_api::resources::SUBJECT_ACCESS_REVIEWS;

use corten_meta::Violation;
use corten_schema::violations;
use serde_json::Value;

use crate::{BuiltIn, Policy, Verb, columns::CREATED_AT};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: SUBJECT_ACCESS_REVIEWS,
    singular: "subjectaccessreview",
    short_names: &[],
    categories: &[],
    verbs: Verb::CREATE_ONLY,
    subresources: &[],
    schema: "io.k8s.api.authorization.v1.SubjectAccessReview",
    view_of: None,
    selectable_fields: &[],
    columns: &[CREATED_AT],
    policy: &SubjectAccessReview,
};

struct SubjectAccessReview;

/// The server answers in `status`; whatever the caller put there is dropped.
impl Policy for SubjectAccessReview {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |review| {
            super::attributes(review.at("spec"));
            super::subject(review.at("spec"));
        })
    }

    fn has_generation(&self) -> bool {
        false
    }
}
