//! Values as kube-apiserver stores them: protobuf in an envelope for built-in kinds, JSON for all others, each in the version that
//! Kubernetes stores it in. What is above [`KubernetesForm`] sees the JSON that Corten works with.

mod cbor;
mod changes;
mod custom_resource_definition;
mod form;
mod go_json;
mod in_flight;
mod kubernetes_form;
mod predecessors;
mod ranges;
mod shared;
mod whole;

pub use form::{from_stored, to_stored};
pub use kubernetes_form::KubernetesForm;
pub use whole::as_kubernetes;

#[cfg(test)]
mod tests;
