//! The lease of a node that is kept up while its kubelet waits.

use std::time::Duration;

use corten_api::resources::LEASES;
use corten_client::{Client, PatchType};
use corten_meta::Key;
use serde_json::json;

use crate::Clock;

/// A kubelet renews its lease as often (`nodeLeaseDurationSeconds`, a quarter of it).
const RENEWAL: Duration = Duration::from_secs(10);

/// Renews the lease of a node that has one, whatever its kubelet waits for. Never returns.
pub(crate) async fn stay_alive(client: &Client, node_name: &str, clock: &Clock) {
    let key = Key::new("kube-node-lease", node_name);
    loop {
        let patch = json!({"spec": {"renewTime": clock().micro()}});
        if let Err(error) = client.patch(&LEASES, &key, "", &PatchType::Merge, &patch).await {
            tracing::debug!(%error, "cannot renew the node's lease");
        }
        tokio::time::sleep(RENEWAL).await;
    }
}
