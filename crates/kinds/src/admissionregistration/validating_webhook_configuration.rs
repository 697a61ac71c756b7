//! ValidatingWebhookConfiguration.

use corten_api::resources::VALIDATING_WEBHOOK_CONFIGURATIONS;
use corten_meta::Violation;
use corten_validation::read::items;
use serde_json::{Value, json};

use super::webhooks;
use crate::{
    BuiltIn, Policy, Verb,
    columns::{AGE, integer},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: VALIDATING_WEBHOOK_CONFIGURATIONS,
    singular: "validatingwebhookconfiguration",
    short_names: &[],
    categories: &["api-extensions"],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.admissionregistration.v1.ValidatingWebhookConfiguration",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        integer("Webhooks", "How many webhooks it has.", |object, _| json!(items(object, "/webhooks").len())),
        AGE,
    ],
    policy: &ValidatingWebhookConfiguration,
};

struct ValidatingWebhookConfiguration;

impl Policy for ValidatingWebhookConfiguration {
    fn default(&self, object: &mut Value) {
        webhooks::default(object, |_| {});
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        webhooks::validate(object, |_| {})
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}
