//! What a schema lets you do to an object: check types, find unknown fields, prune, and patch (JSON, merge, strategic merge).
//!
//! The types of all built-in kinds are a constant table that `cargo xtask codegen` writes; nothing is built at start-up.

pub mod apply;
mod check;
mod complete;
mod cursor;
mod declared;
mod described;
mod duplicates;
#[cfg(feature = "extremes")]
pub mod extremes;
mod ordered;
pub mod patch;
pub mod proto;
mod prune;
mod shape;
pub mod structural;
mod table;
#[cfg(feature = "extremes")]
pub mod wide;

pub use check::{Findings, WrongType, check, go_kind};
pub use complete::complete;
pub use cursor::{Cursor, violations};
pub use declared::{declared, declared_custom};
pub use described::{FieldType, Struct};
pub use duplicates::{duplicates, in_document_order, read};
pub use ordered::Ordered;
pub use prune::prune;
pub use shape::{Apply, Default, Field, Merge, Patch, Shape, Type};
pub use table::TYPES;

/// The type named `io.k8s.api.core.v1.Pod`.
pub fn find(name: &str) -> Option<&'static Type> {
    TYPES.binary_search_by(|it| it.name.cmp(name)).ok().map(|at| TYPES[at])
}

#[cfg(test)]
mod differential;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod tests;
