//! Answers "what may I?".

use corten_api::resources::SELF_SUBJECT_RULES_REVIEWS;

use crate::{BuiltIn, Policy, Verb, columns::AGE};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: SELF_SUBJECT_RULES_REVIEWS,
    singular: "selfsubjectrulesreview",
    short_names: &[],
    categories: &[],
    verbs: Verb::CREATE_ONLY,
    subresources: &[],
    schema: "io.k8s.api.authorization.v1.SelfSubjectRulesReview",
    view_of: None,
    selectable_fields: &[],
    columns: &[AGE],
    policy: &SelfSubjectRulesReview,
};

struct SelfSubjectRulesReview;

impl Policy for SelfSubjectRulesReview {}
