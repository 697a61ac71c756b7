//! `admissionregistration.k8s.io`: what the server asks about writes. Policies are defaulted, checked and stored, and take no part in
//! admission yet, which their authors are told with a warning.

mod binding;
mod expressions;
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
