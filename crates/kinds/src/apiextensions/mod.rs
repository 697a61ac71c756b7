//! `apiextensions.k8s.io`.

pub(crate) mod custom_resource_definition;
mod names;
mod rules;
mod served_version;
mod structural_schema;
