//! ValidatingAdmissionPolicy and MutatingAdmissionPolicy: compiled once when they change, and what they say of one object.
//!
//! Which policies and parameters a request meets is found by whoever has them; here one policy, bound once, looks at one object.

mod binding;
mod mutating;
mod policy;
pub mod type_checking;
mod validating;

pub use binding::{Action, Binding, ParamKind, ParamRef};
pub use mutating::{MutatingPolicy, ObjectType, Unmutated};
pub use policy::Policy;
pub use validating::{Annotation, Decision, Evaluation, Unevaluated, ValidatingPolicy};

#[cfg(test)]
mod tests;
