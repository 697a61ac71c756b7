//! The identity of processes in Pods.

use corten_api::resources::SERVICE_ACCOUNTS;
use corten_validation::warnings;
use serde_json::Value;

use crate::{BuiltIn, Policy, Subresource, Verb, columns::AGE};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: SERVICE_ACCOUNTS,
    singular: "serviceaccount",
    short_names: &["sa"],
    categories: &[],
    verbs: Verb::ALL,
    subresources: &[Subresource::Token],
    schema: "io.k8s.api.core.v1.ServiceAccount",
    view_of: None,
    selectable_fields: &[],
    columns: &[AGE],
    policy: &ServiceAccount,
};

struct ServiceAccount;

impl Policy for ServiceAccount {
    fn has_generation(&self) -> bool {
        false
    }

    fn warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        warnings::service_account(new, old)
    }
}
