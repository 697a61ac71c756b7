//! The API server: every request passes one readable chain of filters, every kind shares one set of verbs, and every read
//! is answered from bytes that were encoded once.
//!
//! Only this crate (and the binary that builds it) touches the store.

#![expect(
    clippy::result_large_err,
    reason = "a Status is made once for each refused request; a box would burden every signature"
)]

pub mod access;
pub mod admission;
mod answer;
pub mod bootstrap;
pub mod chain;
mod codec;
mod connect;
mod discovery;
mod filters;
mod health;
mod limits;
mod metrics;
mod openapi;
mod recheck;
pub mod request;
mod reviews;
mod serve;
mod server;
mod services;
mod table;
#[cfg(test)]
mod tests;
mod tokens;
mod usage;
mod verbs;
mod versions;
mod warnings;
pub mod watch_cache;

pub use connect::KubeletClient;
pub use filters::audit::{FileLog, Policy as AuditPolicy, PolicyError as AuditPolicyError, Rotation, Sink};
pub use limits::Limits;
pub use request::{Body, Context, Identity};
pub use serve::ServeError;
pub use server::{Clock, Config, Guard, JournalSource, LoopQueue, Machine, Server, StartError, Uids};
pub use tokens::{StaticTokens, TokenFileError};
