//! Who asks, and may they? Identities and the credentials that prove them, tokens, impersonation, RBAC and the node authorizer.
//!
//! An answer holds for the moment it is given: what goes on for hours is asked again, see `recheck.rs`.

#![expect(
    clippy::result_large_err,
    reason = "a Status is made once for each refused request; a box would burden every signature"
)]

mod access;
pub mod access_reviews;
mod answers;
mod authorization;
mod authorizer;
mod configuration;
pub mod credential;
pub mod default_roles;
mod evaluation;
mod hash;
pub mod held_rules;
pub mod identity;
pub mod impersonation;
mod issuers;
mod measured;
mod measures;
pub mod node;
mod problems;
mod question;
pub mod rbac;
mod recheck;
mod refusals;
mod reloads;
mod remote;
pub mod request_header;
mod rights_changed;
mod role_objects;
pub mod rule;
pub mod tokens;

pub use access::{Access, Clock};
pub use answers::Answers;
pub use authorization::{AuthorizationSettings, Options as AuthorizationOptions};
pub use authorizer::{Authorizer, Compiled};
pub use identity::{Identity, Peer};
pub use issuers::{Issuers, KeyFetch, Keys, Signed};
pub use problems::{ConfigError, LoadError};
pub use question::{Attributes, Decision, Denial, MASTERS, ResourceOrPath};
pub use recheck::{EVERY, Impersonation, Recheck, Request};
pub use reloads::Reloads;
pub use remote::Unanswering;
pub use rights_changed::RightsChanged;

#[cfg(test)]
mod tests;
