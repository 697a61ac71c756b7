//! The one way to a server that somebody else runs: an admission or conversion webhook, an aggregated API server, a webhook that
//! authenticates or authorizes. What is passed on to an aggregated server goes over a connection of this client in `aggregation`.
//!
//! Such a server may hang, lie, redirect or answer without end. Whatever it does costs its caller no more than the time and the
//! bytes that the caller gave it, and leads to no address that [`reach`] does not allow.

mod client;
mod client_config;
mod clients;
mod connection;
mod error;
mod excerpt;
mod idle;
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
pub use connection::{Dial, HEADERS_BYTES_MAX, in_gos_words};
pub use error::Error;
pub use excerpt::{excerpt, told};
pub use idle::{IDLE_CONNECTIONS_MAX, IDLE_MAX, Idle, Reusable, Reuse};
pub use outcomes::Outcomes;
pub use review::{Review, check_uid};
pub use service::{Endpoint, NoEndpoint, TargetRef, each_ready, endpoints, port_name};
pub use stream::{Socket, Stream};
