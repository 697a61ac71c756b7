//! `rbac.authorization.k8s.io`: roles and who has them.

pub(crate) mod cluster_role;
pub(crate) mod cluster_role_binding;
pub(crate) mod role;
pub(crate) mod role_binding;
mod rules;
mod subjects;
