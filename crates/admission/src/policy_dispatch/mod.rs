//! ValidatingAdmissionPolicy and MutatingAdmissionPolicy: expressions in CEL that are asked about a write.
//!
//! A request that no policy can be about costs a comparison of four revisions and a lookup by its resource.

mod mutating;
mod params;
mod policy_request;
mod validating;

pub(crate) use mutating::MutatingPolicies;
pub(crate) use validating::ValidatingPolicies;
