//! Drivers that are programs of somebody else's: the Container Storage Interface, version 1, over gRPC at a socket.
//!
//! What they answer is not believed: it has a size and a time, and where it names a place, that is not looked at.

mod client;
mod controller;
mod controller_messages;
mod driver;
mod messages;
mod registration;
mod root;
#[cfg(any(test, feature = "sample"))]
mod sample;

pub use registration::CsiPlugins;
pub use root::{drivers_root, forget_drivers_root};
#[cfg(any(test, feature = "sample"))]
pub use sample::{SampleDriver, SampleSettings};

#[cfg(test)]
mod tests;
