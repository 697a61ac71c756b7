//! `scheduling.k8s.io`.

pub(crate) mod composite_pod_group;
mod group;
pub(crate) mod pod_group;
pub(crate) mod priority_class;
pub(crate) mod workload;
