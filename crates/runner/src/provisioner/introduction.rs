//! What the cluster is told of drivers: by a node of its own (its labels, its CSINode), and once for all nodes of the one that is
//! built in (its CSIDriver, its class, and the kinds of snapshots).

use std::time::Duration;

use corten_api::resources::{CSI_DRIVERS, CSI_NODES, NODES, STORAGE_CLASSES};
use corten_api::volumes::DRIVERS_OF_OTHERS;
use corten_client::{BoxFuture, Client, Error, PatchType};
use corten_meta::{Key, ObjectMeta};
use corten_provisioner::{csi_driver, csi_node, default_class, topology_labels};
use serde::Deserialize;
use serde_json::json;

use super::{
    hands::{BuiltIn, NodeDriver, VolumeHands},
    jobs::there,
    snapshots,
};

/// The annotation of a CSINode whose machine has joined: the control plane asks its built-in driver over the kubelet's API.
pub(crate) const MADE_BY_CONTROL_PLANE: &str = "local.corten.dev/asked-by-control-plane";
/// Annotations have room for 256 KiB. One driver takes about 500 bytes.
const DRIVERS_BYTES_MAX: usize = 128 << 10;
const RETRY: Duration = Duration::from_secs(2);

/// Again and again, until it was heard.
pub(super) async fn until_heard<F: Future<Output = Result<(), Error>>>(attempt: impl Fn() -> F) {
    while let Err(error) = attempt().await {
        tracing::debug!(%error, "the cluster is not told of the node's drivers yet");
        tokio::time::sleep(RETRY).await;
    }
}

/// Beside the control plane: of the built-in driver once in the life of the node's folder, of the node whenever drivers come and go.
pub(super) async fn of_node_here(
    (client, own): (&Client, &Client),
    hands: &dyn VolumeHands,
    node: &str,
    found: &[NodeDriver],
) -> Result<(), Error> {
    let BuiltIn { driver, has_class, has_snapshots } = hands.built_in().await;
    there(client.create(&CSI_DRIVERS, "", &csi_driver(&driver)).await)?;
    if !has_class {
        there(client.create(&STORAGE_CLASSES, "", &default_class(&driver)).await)?;
        hands.class_is_made().await;
    }
    of_node(own, node, found, false).await?;
    // Last of all: kinds take a while until they are served.
    if !has_snapshots {
        snapshots::introduce(client, &driver).await?;
        hands.snapshots_are_made().await;
    }
    Ok(())
}

/// For nodes on other machines: that there is the CSIDriver says that the rest was made once, and is its users' since then.
pub(super) async fn of_cluster(client: &Client, hands: &dyn VolumeHands) -> Result<(), Error> {
    let driver = hands.built_in().await.driver;
    match client.get(&CSI_DRIVERS, &Key::cluster(driver.as_str())).await {
        Err(error) if error.is_not_found() => {}
        other => return other.map(drop),
    }
    there(client.create(&STORAGE_CLASSES, "", &default_class(&driver)).await)?;
    snapshots::introduce(client, &driver).await?;
    there(client.create(&CSI_DRIVERS, "", &csi_driver(&driver)).await)
}

/// Labels and CSINode, as the node.
async fn of_node(own: &Client, node: &str, found: &[NodeDriver], is_joined: bool) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct Node {
        metadata: ObjectMeta,
    }
    let held = own.get_as::<Node>(&NODES, &Key::cluster(node)).await?.metadata;
    let (missing, refused) = topology_labels(&held.labels, found.iter().map(|it| &it.facts));
    refused.iter().for_each(|why| tracing::warn!(why, "a driver says where the node is, and is not believed"));
    if !missing.is_empty() {
        let patch = json!({ "metadata": { "labels": missing } });
        own.patch(&NODES, &Key::cluster(node), "", &PatchType::Merge, &patch).await?;
    }
    let told: Vec<_> = found.iter().map(|it| (it.facts.clone(), it.node_id.clone(), it.limit)).collect();
    let mut object = csi_node(node, &held.uid, &told);
    // Nothing of before: the machine may have begun a cluster of its own under this name.
    object["metadata"]["annotations"] = json!({
        MADE_BY_CONTROL_PLANE: is_joined.then_some("true"),
        DRIVERS_OF_OTHERS: if is_joined { of_others(found) } else { None },
    });
    let metadata = &object["metadata"];
    let patch = json!({
        "metadata": { "ownerReferences": metadata["ownerReferences"], "annotations": metadata["annotations"] },
        "spec": object["spec"],
    });
    match own.patch(&CSI_NODES, &Key::cluster(node), "", &PatchType::Merge, &patch).await {
        Err(error) if error.is_not_found() => {
            if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
                annotations.retain(|_, it| !it.is_null());
            }
            there(own.create(&CSI_NODES, "", &object).await)
        }
        other => other.map(drop),
    }
}

fn of_others(found: &[NodeDriver]) -> Option<String> {
    let others: Vec<&NodeDriver> = found.iter().filter(|it| !it.facts.is_built_in()).collect();
    let told = serde_json::to_string(&others).ok().filter(|_| !others.is_empty())?;
    if told.len() > DRIVERS_BYTES_MAX {
        tracing::warn!(drivers = others.len(), "too many drivers: only sidecars make volumes with those of this node");
        return None;
    }
    Some(told)
}

/// On a machine that has joined: tells of its drivers whenever one comes or goes, until `shutdown` is ready.
pub async fn run_node_drivers(
    own: Client,
    node: String,
    drivers: impl Fn() -> BoxFuture<'static, Vec<NodeDriver>> + Send,
    shutdown: impl Future<Output = ()> + Send,
) {
    let tell = async {
        let mut found = drivers().await;
        loop {
            let told = until_heard(|| of_node(&own, &node, &found, true));
            let mut next = drivers();
            // What is there now is told, not what was there when the telling began.
            found = tokio::select! {
                found = &mut next => found,
                () = told => next.await,
            };
        }
    };
    tokio::select! {
        () = shutdown => {}
        () = tell => {}
    }
}
