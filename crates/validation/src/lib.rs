//! Rules and defaults that several kinds share, first of all those of a Pod's spec, which all workloads have in a template.
//!
//! What only one kind has stands in its file in `kinds`.

pub mod admission_expressions;
mod difference;
pub mod fill;
pub mod json_path;
pub mod labels;
pub mod pod_spec;
pub mod read;
pub mod rules;
pub mod volume_claim;
pub mod warnings;

pub use difference::difference;
