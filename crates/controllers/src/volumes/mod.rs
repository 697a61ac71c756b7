//! The controllers of storage: who gets which volume, who may keep it, and where it is attached.
//!
//! [`projections`] is what they read; each other file is one controller, or a part of the binder.

mod attachments;
mod binder;
mod binding;
mod claim_use;
mod claims;
mod classes;
mod ephemeral;
mod projections;
mod protection;
mod released;

pub use attachments::AttachDetach;
pub use binder::VolumeBinder;
pub use ephemeral::EphemeralVolumes;
pub(crate) use projections::{Claim, Volume};
pub use protection::{AttributesClassProtection, ClaimProtection, VolumeProtection};
