//! MutatingWebhookConfiguration.

use corten_api::resources::MUTATING_WEBHOOK_CONFIGURATIONS;
use corten_meta::Violation;
use corten_schema::Cursor;
use corten_validation::{fill::fill_pointer, read::items};
use serde_json::{Value, json};

use super::webhooks;
use crate::{
    BuiltIn, Policy, Verb,
    columns::{AGE, integer},
};

pub(crate) const KIND: BuiltIn = BuiltIn {
    resource: MUTATING_WEBHOOK_CONFIGURATIONS,
    singular: "mutatingwebhookconfiguration",
    short_names: &[],
    categories: &["api-extensions"],
    verbs: Verb::ALL,
    subresources: &[],
    schema: "io.k8s.api.admissionregistration.v1.MutatingWebhookConfiguration",
    view_of: None,
    selectable_fields: &[],
    columns: &[
        integer("Webhooks", "How many webhooks it has.", |object, _| json!(items(object, "/webhooks").len())),
        AGE,
    ],
    policy: &MutatingWebhookConfiguration,
};

struct MutatingWebhookConfiguration;

impl Policy for MutatingWebhookConfiguration {
    fn default(&self, object: &mut Value) {
        webhooks::default(object, |it| fill_pointer(it, "reinvocationPolicy", "Never"));
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        webhooks::validate(object, reinvocation)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}

fn reinvocation(webhook: Cursor<'_>) {
    if webhook.at("reinvocationPolicy").exists() {
        webhook.at("reinvocationPolicy").one_of(&["IfNeeded", "Never"]);
    }
}
