//! gRPC over sockets of this machine: asking plugins, and answering them.
//!
//! The other side is somebody else's program: what it sends has a size, and what it is asked has a time.

mod client;
mod server;

#[cfg(test)]
mod tests;

pub use client::Client;
pub use server::{Answer, Service, listen, one, serve};
pub use tonic::{Code, Status};
