//! Claims for devices (KEP-4381): made for pods from templates, and given back when their users are gone.

mod made;
mod projections;
mod release;

pub use made::DeviceClaims;
pub use release::DeviceClaimRelease;
