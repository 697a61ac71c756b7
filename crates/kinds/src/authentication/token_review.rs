//! Answers "whose token is this?".

use corten_api::resources::TOKEN_REVIEWS;

use crate::{BuiltIn, Policy, Verb, columns::AGE};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: TOKEN_REVIEWS,
    singular: "tokenreview",
    short_names: &[],
    categories: &[],
    verbs: Verb::CREATE_ONLY,
    subresources: &[],
    schema: "io.k8s.api.authentication.v1.TokenReview",
    view_of: None,
    selectable_fields: &[],
    columns: &[AGE],
    policy: &TokenReview,
};

struct TokenReview;

impl Policy for TokenReview {}
