//! What is done to custom resources on their way into the store (`pkg/registry/customresource/strategy.go` of
//! apiextensions-apiserver). The rules are their schema's.

use std::sync::Arc;

use corten_meta::Violation;
use serde_json::Value;

use crate::{CustomSchema, Policy, UpdateRules, keep};

pub(super) struct CustomResource {
    pub(super) schema: Arc<CustomSchema>,
    pub(super) has_status: bool,
}

impl CustomResource {
    /// Rules in CEL rely on the types: they are asked where nothing else is wrong.
    fn violations(&self, new: &Value, old: Option<&Value>) -> Vec<Violation> {
        let schema = &self.schema.structural;
        let found = schema.validate(new, old);
        if found.is_empty() { schema.validate_expressions(new, old) } else { found }
    }
}

impl Policy for CustomResource {
    fn try_default(&self, object: &mut Value) -> Result<(), Violation> {
        let too_large = |it: corten_schema::structural::TooLarge| Violation::invalid("", "object", &it.to_string());
        self.schema.structural.default(object).map_err(too_large)
    }

    fn prepare_create(&self, object: &mut Value) {
        if let (true, Some(object)) = (self.has_status, object.as_object_mut()) {
            object.shift_remove("status");
        }
    }

    fn prepare_update(&self, new: &mut Value, old: &Value) {
        if self.has_status {
            keep(new, old, "status");
        }
    }

    /// A status brings nothing of metadata along (statusStrategy.PrepareForUpdate).
    fn prepare_status_update(&self, new: &mut Value, old: &Value) {
        keep(new, old, "metadata");
    }

    fn validate(&self, object: &Value) -> Vec<Violation> {
        self.violations(object, None)
    }

    fn validate_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        self.violations(new, Some(old))
    }

    fn validate_status_update(&self, new: &Value, old: &Value) -> Vec<Violation> {
        self.violations(new, Some(old))
    }

    /// What was stored may be as wrong as it was (KEP-4008).
    fn update_rules(&self) -> UpdateRules {
        UpdateRules::Change
    }

    fn takes_short_finalizers(&self) -> bool {
        true
    }

    fn counts_status(&self) -> bool {
        !self.has_status
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }
}
