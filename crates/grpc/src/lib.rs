//! gRPC over sockets of this machine: asking plugins, answering them, and learning which there are.
//!
//! The other side is somebody else's program: what it sends has a size, and what it is asked has a time.

mod client;
mod plugins;
mod server;

#[cfg(test)]
mod tests;

pub use client::Client;
pub use plugins::{Admission, GET_INFO, NOTIFY, PLUGINS, PluginInfo, PluginType, RegistrationStatus, follow_plugins};
pub use server::{Answer, Service, listen, one, read, serve};
pub use tonic::{Code, Status};
