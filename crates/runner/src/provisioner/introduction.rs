//! What the cluster is told of drivers: by a node of its own (its labels, its CSINode), and once for all nodes of the one that is
//! built in (its CSIDriver, its class, and the kinds of snapshots).

use std::time::Duration;

use corten_api::resources::{CSI_DRIVERS, CSI_NODES, NODES, STORAGE_CLASSES};
use corten_api::volumes::DRIVERS_OF_OTHERS;
use corten_client::{BoxFuture, Client, Error, PatchType};
use corten_meta::{Key, ObjectMeta};
use corten_provisioner::{csi_driver, csi_node, default_class, topology_labels};
use serde::Deserialize;
use serde_json::{Value, json};

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
/// What somebody has changed is put right.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// How the registration of drivers goes. Of attempts that fail in a row the first is logged as a warning.
#[derive(Default)]
struct RegistrationStatus {
    has_failed: bool,
    rejected: RejectedTopologies,
}

/// Why topologies that drivers tell of the node are rejected.
type RejectedTopologies = Vec<String>;

impl RegistrationStatus {
    /// When it is to be tried, or looked at, again.
    fn ended(&mut self, result: Result<RejectedTopologies, Error>) -> Duration {
        let error = match result {
            Err(error) => error,
            Ok(rejected) => {
                let new = rejected.iter().filter(|it| !self.rejected.contains(it));
                new.for_each(|why| tracing::warn!(why, "a driver says where the node is, and is not believed"));
                (self.has_failed, self.rejected) = (false, rejected);
                return LOOK_AGAIN;
            }
        };
        if std::mem::replace(&mut self.has_failed, true) {
            tracing::debug!(%error, "the cluster is not told of the node's drivers yet");
        } else {
            tracing::warn!(%error, "the cluster is not told of the node's drivers, which is tried again and again");
        }
        RETRY
    }
}

/// Again and again, until it was heard.
pub(super) async fn until_heard<F: Future<Output = Result<RejectedTopologies, Error>>>(attempt: impl Fn() -> F) {
    let mut status = RegistrationStatus::default();
    loop {
        let result = attempt().await;
        let is_heard = result.is_ok();
        let pause = status.ended(result);
        if is_heard {
            return;
        }
        tokio::time::sleep(pause).await;
    }
}

/// Of a node whose drivers were told already.
pub(super) async fn keep_told(own: &Client, node: &str, found: &[NodeDriver]) {
    let (mut status, mut pause) = (RegistrationStatus::default(), LOOK_AGAIN);
    loop {
        tokio::time::sleep(pause).await;
        pause = status.ended(of_node(own, node, found, false).await);
    }
}

/// Beside the control plane: of the built-in driver once in the life of the node's folder, of the node whenever drivers come and go.
pub(super) async fn of_node_here(
    (client, own): (&Client, &Client),
    hands: &dyn VolumeHands,
    node: &str,
    found: &[NodeDriver],
) -> Result<RejectedTopologies, Error> {
    let BuiltIn { driver, has_class, has_snapshots } = hands.built_in().await;
    there(client.create(&CSI_DRIVERS, "", &csi_driver(&driver)).await)?;
    if !has_class {
        there(client.create(&STORAGE_CLASSES, "", &default_class(&driver)).await)?;
        hands.class_is_made().await;
    }
    let rejected = of_node(own, node, found, false).await?;
    // Last of all: kinds take a while until they are served.
    if !has_snapshots {
        snapshots::introduce(client, &driver).await?;
        hands.snapshots_are_made().await;
    }
    Ok(rejected)
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

/// Labels and CSINode, as the node. What is there already is not written; a write that is late does not undo a later one.
async fn of_node(own: &Client, node: &str, found: &[NodeDriver], is_joined: bool) -> Result<RejectedTopologies, Error> {
    #[derive(Deserialize)]
    struct Node {
        metadata: ObjectMeta,
    }
    let held = own.get_as::<Node>(&NODES, &Key::cluster(node)).await?.metadata;
    let (missing, refused) = topology_labels(&held.labels, found.iter().map(|it| &it.facts));
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
    let held: Value = match own.get_as(&CSI_NODES, &Key::cluster(node)).await {
        Err(error) if error.is_not_found() => {
            if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
                annotations.retain(|_, it| !it.is_null());
            }
            return own.create(&CSI_NODES, "", &object).await.map(|_| refused);
        }
        held => held?,
    };
    if says(&held, &object) {
        return Ok(refused);
    }
    let metadata = &object["metadata"];
    let patch = json!({
        "metadata": {
            "ownerReferences": metadata["ownerReferences"],
            "annotations": metadata["annotations"],
            "resourceVersion": held["metadata"]["resourceVersion"],
        },
        "spec": object["spec"],
    });
    own.patch(&CSI_NODES, &Key::cluster(node), "", &PatchType::Merge, &patch).await.map(|_| refused)
}

/// Does the CSINode say all that it should?
fn says(held: &Value, wanted: &Value) -> bool {
    let (meta, of) = (&held["metadata"], &wanted["metadata"]);
    let annotations = of["annotations"].as_object();
    held["spec"]["drivers"] == wanted["spec"]["drivers"]
        && meta["ownerReferences"] == of["ownerReferences"]
        && annotations.is_none_or(|it| it.iter().all(|(name, value)| meta["annotations"][&**name] == *value))
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

/// On a machine that has joined: tells of its drivers whenever one comes or goes, and now and then, until `shutdown` is ready.
pub async fn run_node_drivers(
    own: Client,
    node: String,
    drivers: impl Fn() -> BoxFuture<'static, Vec<NodeDriver>> + Send,
    shutdown: impl Future<Output = ()> + Send,
) {
    let tell = async {
        let (mut found, mut next) = (drivers().await, drivers());
        let mut status = RegistrationStatus::default();
        loop {
            let pause = status.ended(of_node(&own, &node, &found, true).await);
            tokio::select! {
                came = &mut next => (found, next) = (came, drivers()),
                () = tokio::time::sleep(pause) => {}
            }
        }
    };
    tokio::select! {
        () = shutdown => {}
        () = tell => {}
    }
}
