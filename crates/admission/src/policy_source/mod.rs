//! The cluster's admission policies as they are held between requests: compiled, with the parameters that were read for them, and
//! what is counted of them.

mod compiled;
mod failing;
mod measures;
mod misconfigured;
mod read_params;

pub use compiled::Policies;
pub(crate) use compiled::{BoundPolicies, BoundPolicy};
pub(crate) use failing::PolicyFault;
pub use failing::{FailingPolicy, PolicyTrouble};
