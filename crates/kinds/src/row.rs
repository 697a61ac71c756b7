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
    /// The columns of `kubectl get` after Name; Age is a column like others. A row that has a column called Name (events have)
    /// places it there instead of first.
    pub columns: &'static [Column],
    pub policy: &'static dyn Policy,
}

impl Kind {
    /// Are there objects of this kind in the store? Reviews and journals are answered without one.
    pub fn is_stored(&self) -> bool {
        self.allows(Verb::List)
    }

    pub fn allows(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }

    pub fn has(&self, subresource: Subresource) -> bool {
        self.subresources.contains(&subresource)
    }
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
    pub const ALL: &'static [Self] = &[
        Self::Create,
        Self::Delete,
        Self::DeleteCollection,
        Self::Get,
        Self::List,
        Self::Patch,
        Self::Update,
        Self::Watch,
    ];
    /// Namespaces are deleted one by one.
    pub const WITHOUT_COLLECTION: &'static [Self] =
        &[Self::Create, Self::Delete, Self::Get, Self::List, Self::Patch, Self::Update, Self::Watch];
    /// Reviews: answered, never stored.
    pub const CREATE_ONLY: &'static [Self] = &[Self::Create];
    pub const GET_ONLY: &'static [Self] = &[Self::Get];

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
