//! What the server knows of each kind: names, scope, verbs, columns, policy. [`KINDS`] is the table; the server, discovery,
//! `kubectl get` tables, RBAC defaults, the command line and the tests are read off its rows.

mod policy;
mod row;

pub use policy::Policy;
pub use row::{Cell, Column, Kind, Subresource, Verb};
