//! `node.k8s.io`.

pub(crate) mod runtime_class;
