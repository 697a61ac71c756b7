//! `resource.k8s.io`.

mod capacity;
mod device;
pub(crate) mod device_class;
pub(crate) mod device_taint_rule;
mod names;
mod request;
pub(crate) mod resource_claim;
pub(crate) mod resource_claim_template;
pub(crate) mod resource_pool_status_request;
pub(crate) mod resource_slice;
mod v1beta1;
