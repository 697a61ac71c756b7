//! Plugins that change or refuse a write. Each is one file and one row of [`PLUGINS`].

mod default_toleration_seconds;
mod namespace_lifecycle;
mod priority;
mod refusal;
mod service_account;

use corten_kinds::{Kind, Subresource};
use corten_meta::Status;
use serde_json::Value;

use crate::{
    access::escalation::Escalation,
    request::{BoxFuture, Context},
};

/// In the order they are asked.
pub const PLUGINS: &[&dyn Admission] = &[
    &namespace_lifecycle::NamespaceLifecycle,
    &service_account::ServiceAccount,
    &priority::Priority,
    &default_toleration_seconds::DefaultTolerationSeconds,
    &Escalation,
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Create,
    Update,
    Delete,
    Connect,
}

/// What is asked for. The path's parts are in `ctx.info`.
pub struct Attributes<'a> {
    pub ctx: &'a Context,
    pub operation: Operation,
    pub kind: &'static Kind,
    pub subresource: Option<Subresource>,
    pub namespace: &'a str,
    /// May be empty for a create with `generateName`.
    pub name: &'a str,
    /// What is stored now: for updates and deletes.
    pub old: Option<&'a Value>,
    pub dry_run: bool,
}

/// One plugin. Both halves do nothing unless a plugin says otherwise.
pub trait Admission: Send + Sync {
    fn name(&self) -> &'static str;

    /// May change the object (`null` for a delete); called after defaulting, before validation.
    fn admit<'a>(&'a self, _request: &'a Attributes<'a>, _object: &'a mut Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async { Ok(()) })
    }

    /// May only refuse; called after validation.
    fn validate<'a>(&'a self, _request: &'a Attributes<'a>, _object: &'a Value) -> BoxFuture<'a, Result<(), Status>> {
        Box::pin(async { Ok(()) })
    }
}
