//! What the policies of a namespace say of an object: its quota, its ranges, its level of pod security, its disruption budgets.
//!
//! Admission, eviction and the quota loop ask here; none of it is a rule of the object's own kind.

pub mod eviction;
pub mod limits;
pub mod pod_security;
pub mod quota;
