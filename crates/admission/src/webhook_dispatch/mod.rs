//! Mutating and validating admission webhooks: servers of others that are asked about a write.
//!
//! A request that no configuration can be about costs a comparison of two revisions and a lookup by its resource.

pub mod answer;
mod call;
mod dispatch;
mod first;
mod large;
mod mutating;
mod patch;
mod validating;

pub(crate) use mutating::MutatingWebhook;
pub(crate) use validating::ValidatingWebhook;
