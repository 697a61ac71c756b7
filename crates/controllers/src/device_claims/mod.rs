//! Claims for devices (KEP-4381): made for pods from templates, given back when their users are gone, and taken from pods whose
//! devices are tainted (KEP-5055).

mod made;
mod projections;
mod release;
mod rule_status;
mod taint_eviction;
mod tainted;

pub use made::DeviceClaims;
pub use release::DeviceClaimRelease;
pub use rule_status::DeviceTaintRuleStatus;
pub use taint_eviction::DeviceTaintEviction;
