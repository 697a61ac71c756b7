//! The API server: every request passes one readable chain of filters, every kind shares one set of verbs, and every read
//! is answered from bytes that were encoded once.
//!
//! Only this crate (and the binary that builds it) touches the store.

#![expect(
    clippy::result_large_err,
    reason = "a Status is made once for each refused request; a box would burden every signature"
)]

mod aggregation;
mod bootstrap;
pub mod chain;
mod connect;
pub mod context;
mod debug_fairness;
mod debug_flags;
mod definitions;
mod filters;
mod flow_control_objects;
mod health;
mod journals;
mod log_filter;
mod metrics;
mod own_requests;
mod progress;
mod router;
mod serve;
mod server;
mod state;
mod state_metrics;
#[cfg(test)]
mod tests;
mod verbs;
mod version;

pub use context::Context;
pub use corten_audit::{FileLog, Policy as AuditPolicy, PolicyError as AuditPolicyError, Rotation, Sink};
pub use corten_cacher::fence::Fence;
pub use corten_fairness::Limits;
pub use corten_kubelets::KubeletClient;
pub use journals::JournalSource;
pub use log_filter::LogFilter;
pub use serve::ServeError;
pub use server::{Server, StartError};
pub use state::{Config, Guard, State};
