//! What both bindings of admission policies have: a policy, its parameters, and what it is limited to.

use corten_schema::Cursor;
use corten_validation::fill::{inner, made};
use serde_json::Value;

use super::{matching, params};

pub(super) fn default(binding: &mut Value) {
    let Some(spec) = binding.as_object_mut().and_then(|it| made(it, "spec")) else { return };
    if let Some(matched) = inner(spec, "matchResources") {
        matching::default_resources(matched);
    }
}

pub(super) fn validate(spec: Cursor<'_>) {
    params::policy_name(spec.at("policyName"));
    params::reference(spec.at("paramRef"));
    if spec.at("matchResources").exists() {
        matching::resources(spec.at("matchResources"));
    }
}
