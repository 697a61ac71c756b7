//! The type table. `cargo xtask codegen` writes `index` and the files by group and version; `apidiscovery_v2`, `corten_v1`
//! and `metrics_v1beta1` are written by hand.

mod admissionregistration_v1;
mod admissionregistration_v1alpha1;
mod admissionregistration_v1beta1;
mod apidiscovery_v2;
mod apiextensions_v1;
mod apiregistration_v1;
mod apiserverinternal_v1alpha1;
mod apps_v1;
mod authentication_v1;
mod authorization_v1;
mod autoscaling_v1;
mod autoscaling_v2;
mod batch_v1;
mod build;
mod certificates_v1;
mod certificates_v1beta1;
mod coordination_v1;
mod coordination_v1alpha2;
mod coordination_v1beta1;
mod core_v1;
mod corten_v1;
mod discovery_v1;
mod events_v1;
mod flowcontrol_v1;
mod index;
mod lifecycle_v1alpha1;
mod meta_v1;
mod metrics_v1beta1;
mod networking_v1;
mod node_v1;
mod policy_v1;
mod rbac_v1;
mod resource_v1;
mod resource_v1alpha3;
mod resource_v1beta1;
mod resource_v1beta2;
mod scheduling_v1;
mod scheduling_v1alpha3;
mod scheduling_v1beta1;
mod storage_v1;
mod storagemigration_v1;
mod storagemigration_v1beta1;

pub(crate) use apidiscovery_v2::API_GROUP_DISCOVERY_LIST;
pub use index::TYPES;
