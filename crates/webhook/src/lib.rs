//! The one way to ask a server that somebody else runs: an admission or conversion webhook, an aggregated API server, a webhook
//! that authenticates or authorizes.
//!
//! Such a server may hang, lie, redirect or answer without end. Whatever it does costs its caller no more than the time and the
//! bytes that the caller gave it, and leads to no address that [`reach`] does not allow.

mod client;
mod client_config;
mod clients;
mod connection;
mod error;
mod excerpt;
mod kubeconfig;
mod outcomes;
mod reach;
mod review;
mod service;
mod stream;
#[cfg(test)]
mod tests;
mod trust;

pub use client::{Client, Document, Question};
pub use client_config::{ClientConfig, ConfigError, Location, Proof};
pub use clients::Clients;
pub use connection::Dial;
pub use error::Error;
pub use excerpt::excerpt;
pub use outcomes::Outcomes;
pub use review::{Review, check_uid};
pub use service::{Endpoint, NoEndpoint, TargetRef, each_ready, endpoints, port_name};
pub use stream::Stream;
