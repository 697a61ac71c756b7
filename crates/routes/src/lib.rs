//! What a method, a path and the options of a request mean, decided once. The server authorizes, audits and does what a [`RequestInfo`] says; nothing
//! after it looks at the path again.
//!
//! The paths are read off [`corten_kinds::KINDS`]: [`patterns`] lists them all, [`RequestInfo::read`] finds the one a
//! request names.

#![expect(
    clippy::result_large_err,
    reason = "a Status is an answer, not a failure: it is built once and sent, and boxing it would only cost an allocation"
)]

mod connect_options;
pub mod continue_token;
mod delete_options;
pub mod list_options;
mod log_options;
mod pattern;
mod query;
mod request_info;
pub mod write_options;

pub use delete_options::{DeleteOptions, Propagation};
pub use log_options::log_query;
pub use pattern::{PathForm, Pattern, patterns};
pub use query::{Query, is_true};
pub use request_info::{BadPath, RequestInfo};

use corten_kinds::{KindRef, Subresource, Verb};

/// What is to be done, and to what kind. The namespace and the name stand in [`RequestInfo`].
#[derive(Clone, Default)]
pub enum Route {
    /// A path of the server itself, such as `/healthz`: it is authorized as a path.
    #[default]
    NonResource,
    /// A path below `/api` or `/apis` whose resource is in no row of the table: 404 for those who may ask.
    UnknownResource,
    /// A path of a group and version that another server serves: passed on to it. It is authorized as a resource, but for the
    /// path of the group and version itself.
    Aggregated { is_resource: bool },
    /// The kind has no such path: another scope, no such subresource. 404 for everybody.
    NoSuchPath(KindRef),
    /// The path exists, the method means nothing there: 405 for those who may ask.
    NoSuchMethod(KindRef),
    /// All objects of the kind in one namespace, or in the cluster. The verb is `list`, `watch`, `create` or
    /// `deletecollection`.
    Collection(KindRef, Verb),
    /// One object. The verb is `get`, `update`, `patch`, `delete` or `watch`.
    Object(KindRef, Verb),
    /// A subresource of one object. There is no verb where a proxy is sent a method that has none in RBAC.
    Subresource(KindRef, Subresource, Option<Verb>),
}

impl Route {
    pub fn kind(&self) -> Option<&KindRef> {
        match self {
            Self::NonResource | Self::UnknownResource | Self::Aggregated { .. } => None,
            Self::NoSuchPath(kind)
            | Self::NoSuchMethod(kind)
            | Self::Collection(kind, _)
            | Self::Object(kind, _)
            | Self::Subresource(kind, ..) => Some(kind),
        }
    }

    /// `None` where the path leads to no subresource that the kind has.
    pub fn subresource(&self) -> Option<Subresource> {
        match self {
            Self::Subresource(_, subresource, _) => Some(*subresource),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
