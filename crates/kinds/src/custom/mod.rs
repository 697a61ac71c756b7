//! Kinds that CustomResourceDefinitions describe: the rows that a definition makes, and the rules that its objects follow.

mod accepted_names;
pub(crate) mod approval;
mod embedded;
mod policy;
mod rows;
mod status;
#[cfg(test)]
mod tests;

pub use accepted_names::{Names as DefinedNames, names_of};
pub use approval::approved_by;
pub use rows::{Rows, rows};
pub use status::{CLEANUP_FINALIZER, Condition, has_condition, with_condition, with_names};
