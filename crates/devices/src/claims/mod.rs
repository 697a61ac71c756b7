//! Claims for devices whose drivers are programs of others (dynamic resource allocation, KEP-4381).
//!
//! Before a driver is asked to prepare a claim it is written down for whom: whatever comes between, it is asked to take that
//! back. What two Pods share is taken back with the last of them.

mod drivers;
pub(crate) mod messages;
pub(crate) mod records;
mod registration;
#[cfg(test)]
mod tests;

pub use drivers::ClaimDrivers;
