//! The API server, as far as the aggregator needs it.

use std::sync::Arc;

use corten_cacher::body::BoxFuture;
use corten_kinds::Kinds;
use corten_meta::{Status, Time};
use corten_openapi::Aggregated;
use http::Method;
use serde_json::Value;
use tokio::sync::watch;

/// What the aggregator has the API server do.
pub trait Host: Send + Sync + 'static {
    fn now(&self) -> Time;
    /// Sends a request with this body through the whole request chain.
    fn send(&self, method: Method, path: String, object: Value) -> BoxFuture<'_, Result<(), Status>>;
    /// Makes what tells other servers whom to believe say so again, where it does not.
    fn publish_trust(&self) -> BoxFuture<'_, Result<(), Status>>;
    /// What this server itself serves.
    fn kinds(&self) -> Arc<Kinds>;
    /// Tells when that is something else.
    fn served_changes(&self) -> watch::Receiver<()>;
    /// From now on, these groups and versions are served by others.
    fn serve(&self, aggregated: Aggregated);
}
