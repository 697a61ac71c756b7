//! Kinds that CustomResourceDefinitions describe: the rows that a definition makes, and the rules that its objects follow.

mod accepted_names;
mod column;
mod json_path;
mod policy;
mod rows;
mod status;
#[cfg(test)]
mod tests;

pub use accepted_names::{Names as DefinedNames, names_of};
pub use column::PathColumn;
pub use json_path::JsonPath;
pub(crate) use rows::converts_by_webhook;
pub use rows::{Rows, Scale, rows};
pub use status::{CLEANUP_FINALIZER, Condition, has_condition, with_condition, with_names};
