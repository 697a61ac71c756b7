//! Answers "may I?".

use corten_api::resources::SELF_SUBJECT_ACCESS_REVIEWS;

use corten_meta::Violation;
use corten_schema::violations;
use serde_json::Value;

use crate::{BuiltIn, Policy, Verb, columns::CREATED_AT};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: SELF_SUBJECT_ACCESS_REVIEWS,
    singular: "selfsubjectaccessreview",
    short_names: &[],
    categories: &[],
    verbs: Verb::CREATE_ONLY,
    subresources: &[],
    schema: "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
    view_of: None,
    selectable_fields: &[],
    columns: &[CREATED_AT],
    policy: &SelfSubjectAccessReview,
};

struct SelfSubjectAccessReview;

/// The server answers in `status`; whatever the caller put there is dropped.
impl Policy for SelfSubjectAccessReview {
    fn validate(&self, object: &Value) -> Vec<Violation> {
        violations(object, |review| super::attributes(review.at("spec")))
    }

    fn has_generation(&self) -> bool {
        false
    }
}
