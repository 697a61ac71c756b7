//! Devices that programs of others offer to containers: device plugins, which register at a socket of the kubelet.
//!
//! What they answer is not believed: it has a size and a time, and what they prefer counts only where it is among what they
//! were asked about. Which devices a container gets is decided by the kubelet's mind.

mod call;
pub mod cdi;
mod claims;
mod endpoint;
mod messages;
mod plugins;
mod pod_resources;
mod records;
mod registration;
#[cfg(any(test, feature = "sample"))]
pub mod sample;
#[cfg(any(test, feature = "sample"))]
pub mod sample_driver;
mod state;

#[cfg(test)]
mod tests;

pub use claims::ClaimDrivers;
pub use plugins::DevicePlugins;
pub use pod_resources::{PodResourcesServer, PodsProvider, RunningPods};
