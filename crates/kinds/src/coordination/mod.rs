//! `coordination.k8s.io`.

pub(crate) mod lease;
