//! Which devices of ResourceSlices a ResourceClaim is given on a node: structured parameters (KEP-4381).
//!
//! A mind: the same slices, claims and node give the same devices. It tries devices in the order drivers list them, takes back
//! what leads nowhere, and gives up after so many tries.

mod constraint;
mod consumable;
mod counters;
mod inventory;
mod node;
mod request;
mod resource_classes;
mod search;
mod selector;
mod shortage;
mod taken;
#[cfg(test)]
mod tests;

pub use inventory::{DeviceId, Inventory, TaintRule};
pub use node::{TargetNode, selects};
pub use resource_classes::ResourceClasses;
pub use search::{Allocation, Refusal, allocate, check};
pub use selector::Selectors;
pub use shortage::{Shortage, selected_by, shortages};
pub use taken::Taken;
