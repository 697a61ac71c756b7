//! What policies say of an object: those of its namespace (quota, ranges, level of pod security, disruption budgets), and those
//! that people write (which requests webhooks and admission policies are about).
//!
//! Admission, eviction and the quota loop ask here; none of it is a rule of the object's own kind.

pub mod admission_policy;
pub mod eviction;
pub mod limits;
pub mod matching;
pub mod pod_security;
pub mod quota;
