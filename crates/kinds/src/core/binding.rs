//! A scheduler's decision, sent to the server and never stored: it becomes the Pod's node. Its rules are where it is written.

use corten_api::resources::BINDINGS;

use crate::{BuiltIn, Policy, Verb, columns::AGE};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: BINDINGS,
    singular: "binding",
    short_names: &[],
    categories: &[],
    verbs: Verb::CREATE_ONLY,
    subresources: &[],
    schema: "io.k8s.api.core.v1.Binding",
    view_of: None,
    selectable_fields: &[],
    columns: &[AGE],
    policy: &Binding,
};

struct Binding;

impl Policy for Binding {}
