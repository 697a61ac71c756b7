//! `admissionregistration.k8s.io`: what the server asks about writes. Policies are defaulted, checked and stored, and take no part in
//! admission yet, which their authors are told with a warning.

mod binding;
mod matching;
pub(crate) mod mutating_admission_policy;
pub(crate) mod mutating_admission_policy_binding;
pub(crate) mod mutating_webhook_configuration;
mod params;
pub(crate) mod validating_admission_policy;
pub(crate) mod validating_admission_policy_binding;
pub(crate) mod validating_webhook_configuration;
mod variables;
mod webhooks;

use serde_json::Value;

/// What the author of any of these objects must know.
fn not_enforced(object: &Value) -> Vec<String> {
    let (kind, name) = (object["kind"].as_str(), object["metadata"]["name"].as_str());
    let (kind, name) = (kind.unwrap_or_default(), name.unwrap_or_default());
    vec![format!("{kind} {name:?} is stored but not enforced by this release")]
}
