//! Speaks to the API server, over HTTPS or in process: requests, watches, informers, leases.
//!
//! The two ways differ only in their [`Transport`]; the server's whole chain runs in both.

mod transport;

pub use transport::{Body, BoxFuture, Transport, TransportError};
