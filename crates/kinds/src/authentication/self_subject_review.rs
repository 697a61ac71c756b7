//! Answers "who am I?".

use corten_api::resources::SELF_SUBJECT_REVIEWS;

use crate::{BuiltIn, Policy, Verb, columns::CREATED_AT};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: SELF_SUBJECT_REVIEWS,
    singular: "selfsubjectreview",
    short_names: &[],
    categories: &[],
    verbs: Verb::CREATE_ONLY,
    subresources: &[],
    schema: "io.k8s.api.authentication.v1.SelfSubjectReview",
    view_of: None,
    selectable_fields: &[],
    columns: &[CREATED_AT],
    policy: &SelfSubjectReview,
};

struct SelfSubjectReview;

/// The server answers in `status`; whatever the caller put there is dropped.
impl Policy for SelfSubjectReview {
    fn has_generation(&self) -> bool {
        false
    }
}
