//! A simulated node's sign of life: its lease every ten seconds, and its word that it is ready where others doubt it.

use std::time::Duration;

use corten_api::resources::{LEASES, NODES};
use corten_client::{Client, Error, PatchType};
use corten_meta::{Key, MicroTime};
use corten_runner::Clock;
use serde_json::{Value, json};

use crate::node;

const EVERY: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_secs(1);
const NAMESPACE: &str = "kube-node-lease";

/// Beats for ever.
pub(crate) async fn beat(client: Client, name: String, clock: Clock) {
    loop {
        let pause = match once(&client, &name, &clock).await {
            Ok(()) => EVERY,
            Err(error) => {
                tracing::debug!(%error, "a node cannot renew its lease");
                RETRY
            }
        };
        tokio::time::sleep(pause).await;
    }
}

async fn once(client: &Client, name: &str, clock: &Clock) -> Result<(), Error> {
    let key = Key::new(NAMESPACE, name);
    let now: MicroTime = (clock)().micro();
    let spec = json!({ "holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now });
    match client.patch(&LEASES, &key, "", &PatchType::Merge, &json!({ "spec": spec })).await {
        Err(error) if error.is_not_found() => {
            let metadata = json!({ "name": name, "namespace": NAMESPACE });
            let lease =
                json!({ "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec });
            client.create(&LEASES, NAMESPACE, &lease).await?;
        }
        other => drop(other?),
    }
    let held: Value = client.get_as(&NODES, &Key::cluster(name)).await?;
    let mut conditions = held["status"]["conditions"].as_array().into_iter().flatten();
    if conditions.any(|it| it["type"] == "Ready" && it["status"] != "True") {
        client.patch(&NODES, &Key::cluster(name), "status", &PatchType::Merge, &node::ready((clock)())).await?;
    }
    Ok(())
}
