//! What the aggregator asks of this server.

use std::sync::Arc;

use corten_aggregation::Host;
use corten_cacher::body::BoxFuture;
use corten_kinds::Kinds;
use corten_meta::{Status, Time};
use corten_openapi::Aggregated;
use http::Method;
use serde_json::Value;
use tokio::sync::watch;

use crate::{
    bootstrap,
    own_requests::{self, JSON},
    state::State,
};

impl Host for State {
    fn now(&self) -> Time {
        Self::now(self)
    }

    fn send(&self, method: Method, path: String, object: Value) -> BoxFuture<'_, Result<(), Status>> {
        Box::pin(
            async move { own_requests::send(self, method, &path, JSON, object.to_string().into()).await.map(drop) },
        )
    }

    fn publish_trust(&self) -> BoxFuture<'_, Result<(), Status>> {
        Box::pin(bootstrap::publish_trust(self))
    }

    fn kinds(&self) -> Arc<Kinds> {
        self.served().kinds().clone()
    }

    fn served_changes(&self) -> watch::Receiver<()> {
        self.changes_of_served()
    }

    fn serve(&self, aggregated: Aggregated) {
        self.serve_aggregated(aggregated);
    }
}
