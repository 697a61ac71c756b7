//! Workloads: `apps`.

pub(crate) mod deployment;
pub(crate) mod replica_set;
mod workload;
