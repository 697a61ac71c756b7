//! What is done to custom resources on their way into the store (`pkg/registry/customresource/strategy.go` of
//! apiextensions-apiserver). The rules are their schema's.

use std::{collections::BTreeSet, sync::Arc};

use corten_meta::{Rule, Violation};
use serde_json::Value;

use super::embedded;
use crate::{CustomSchema, Policy, UpdateRules, keep};

pub(super) struct CustomResource {
    pub(super) schema: Arc<CustomSchema>,
    pub(super) has_status: bool,
}

impl CustomResource {
    /// Rules in CEL rely on types and sizes: they are asked where nothing is wrong with those.
    fn violations(&self, new: &Value, old: Option<&Value>) -> Vec<Violation> {
        let schema = &self.schema.structural;
        let mut found = schema.validate(new, old);
        let before = old.map(|it| embedded::violations_of(schema, it)).unwrap_or_default();
        found.extend(embedded::violations_of(schema, new).into_iter().filter(|it| !before.contains(it)));
        if !schema.has_expressions() {
            return found;
        }
        if found.iter().any(forbids_expressions) {
            found.push(unasked());
        } else {
            found.extend(schema.validate_expressions(new, old));
        }
        found
    }
}

fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    object["metadata"]["finalizers"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// `hasBlockingErr` of apiextensions' registry.
fn forbids_expressions(violation: &Violation) -> bool {
    matches!(violation.rule, Rule::NotSupported | Rule::Required | Rule::TooLong | Rule::TooMany | Rule::TypeInvalid)
}

fn unasked() -> Violation {
    let detail = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    Violation::invalid("<nil>", "null", detail)
}

impl Policy for CustomResource {
    fn try_default(&self, object: &mut Value) -> Result<(), Violation> {
        let too_large = |it: corten_schema::structural::TooLarge| Violation::invalid("", "object", &it.to_string());
        self.schema.structural.default(object).map_err(too_large)
    }

    fn defaults_status(&self) -> bool {
        true
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

    fn status_keeps(&self) -> &'static [&'static str] {
        crate::policy::RESET_METADATA
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

    /// Names that others may choose, too (generateWarningsFromObj).
    fn warnings(&self, object: &Value, old: Option<&Value>) -> Vec<String> {
        const STANDARD: [&str; 3] = ["foregroundDeletion", "kubernetes", "orphan"];
        let before: BTreeSet<&str> = old.into_iter().flat_map(finalizers).collect();
        let added: BTreeSet<&str> = finalizers(object).filter(|it| !before.contains(it)).collect();
        let short = added.into_iter().filter(|it| !it.contains('/') && !STANDARD.contains(it));
        let told = short.map(|it| format!(
            "metadata.finalizers: {it:?}: prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers"
        ));
        told.collect()
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
