//! The shape of one row of the table.

use corten_meta::{Resource, Time};
use serde_json::Value;

use crate::Policy;

/// Everything the server knows of one resource.
pub struct Kind {
    pub resource: Resource,
    pub singular: &'static str,
    pub short_names: &'static [&'static str],
    pub categories: &'static [&'static str],
    pub verbs: &'static [Verb],
    pub subresources: &'static [Subresource],
    /// The name of its type in `corten_schema`'s table, for example `io.k8s.api.core.v1.Pod`.
    pub schema: &'static str,
    /// Paths a field selector may name beside `metadata.name` and `metadata.namespace`: `spec.nodeName`.
    pub selectable_fields: &'static [&'static str],
    /// The columns of `kubectl get` between Name (always first) and nothing: Age is a column like others.
    pub columns: &'static [Column],
    pub policy: &'static dyn Policy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    Create,
    Delete,
    DeleteCollection,
    Get,
    List,
    Patch,
    Update,
    Watch,
}

impl Verb {
    /// As discovery and RBAC write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Get => "get",
            Self::List => "list",
            Self::Patch => "patch",
            Self::Update => "update",
            Self::Watch => "watch",
        }
    }
}

/// A path below an object that has a meaning of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subresource {
    Status,
    Scale,
    Binding,
    Finalize,
    Eviction,
    Log,
    Exec,
    Attach,
    PortForward,
}

impl Subresource {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Scale => "scale",
            Self::Binding => "binding",
            Self::Finalize => "finalize",
            Self::Eviction => "eviction",
            Self::Log => "log",
            Self::Exec => "exec",
            Self::Attach => "attach",
            Self::PortForward => "portforward",
        }
    }
}

/// One column of the table that `kubectl get` prints.
pub struct Column {
    pub name: &'static str,
    /// `string`, `integer`, `boolean`, `date`, `number`.
    pub column_type: &'static str,
    pub format: &'static str,
    pub description: &'static str,
    /// 0: always; 1: with `-o wide`.
    pub priority: u8,
    pub cell: Cell,
}

/// Computes a cell from the whole object. Ages are relative to the given time.
pub type Cell = fn(&Value, Time) -> Value;
