//! Volumes of drivers on machines that have joined: the control plane decides for each of those nodes what its drivers are to do, and asks
//! them over the kubelet's API. A node is given no right for it. What it answers of the built-in driver is believed of itself alone; what
//! a driver of somebody else's answers is believed of its own volumes, as upstream believes the driver's controller.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use corten_client::{BoxFuture, Client};
use corten_provisioner::{AttachedVolume, Failure};
use corten_runner::{BuiltIn, JoinedNodesSettings, NodeDriver, ProvisionerSettings, SharedStorage};
use corten_volumes::{
    Call, Code, CreatedVolume, Fault, LOCAL_DRIVER, Reply,
    channel::{self, Answered, Asked, AskedOfDriver},
    local_facts, local_topology,
};
use http::{Method, Request as HttpRequest};
use tokio::sync::{Mutex, watch};

use crate::volume_hands::{Hands, NodeDrivers, built_in_ungrown, node_driver, unexpected};

/// So long a node is waited for; what takes longer goes on there, and is asked for again.
const PATIENCE: Duration = Duration::from_secs(25);
/// Until a node is asked again that was not reached at first.
const UNREACHED_PAUSE: Duration = Duration::from_secs(2);

/// Runs the loops of all nodes that say they are asked in this way, until `stopping` is ready.
pub(crate) async fn run(
    clients: RemoteVolumeClients,
    clock: crate::process::Clock,
    stopping: impl Future<Output = ()> + Send,
) {
    let shared = SharedStorage::new(clients.provisioner.clone(), LOCAL_DRIVER);
    let begin = |node: &str, others| {
        let hands = Hands(RemoteVolumes::new(clients.nodes.clone(), node).with_drivers(others));
        let settings = ProvisionerSettings {
            node_name: node.to_owned(),
            client: clients.provisioner.clone(),
            node: None,
            viewer: clients.viewer.clone(),
            shared: Some(shared.clone()),
            hands: Arc::new(hands),
            clock: clock.clone(),
        };
        let loops: BoxFuture<'static, ()> =
            Box::pin(corten_runner::run_provisioner(settings, std::future::pending::<()>()));
        loops
    };
    let settings = JoinedNodesSettings {
        client: clients.provisioner.clone(),
        viewer: clients.viewer.clone(),
        driver: LOCAL_DRIVER,
    };
    let following = corten_runner::follow_joined_nodes(settings, begin);
    tokio::select! {
        () = stopping => {}
        () = following => {}
        () = shared.clone().run() => {}
    }
}

/// As whom the control plane acts for nodes on other machines.
pub(crate) struct RemoteVolumeClients {
    /// Who makes volumes and writes what came of it.
    pub(crate) provisioner: Client,
    /// Who asks nodes over the API server's proxy.
    pub(crate) nodes: Client,
    /// Who sees all Pods.
    pub(crate) viewer: Client,
}

/// The drivers of one node on another machine.
pub(crate) struct RemoteVolumes {
    client: Client,
    node: String,
    /// Those of others that are asked here; and whether the loop was told of any drivers yet.
    others: Mutex<(watch::Receiver<Vec<NodeDriver>>, bool)>,
}

impl RemoteVolumes {
    pub(crate) fn new(client: Client, node: &str) -> Self {
        let client = client.with_answers_up_to(channel::MESSAGE_BYTES_MAX);
        let others = Mutex::new((watch::channel(Vec::new()).1, false));
        Self { client, node: node.to_owned(), others }
    }

    fn with_drivers(self, others: watch::Receiver<Vec<NodeDriver>>) -> Self {
        Self { others: Mutex::new((others, false)), ..self }
    }

    /// One question, with bytes of a volume where there are any; and its answer.
    pub(crate) async fn ask(&self, asked: &Asked, data: &[u8]) -> Result<(Answered, Bytes), Fault> {
        let body = self.post(channel::PATH, channel::written(asked, data)?).await?;
        let (answered, data) = channel::read::<Result<Answered, Fault>>(&body)?;
        let at = body.len() - data.len();
        Ok((answered?, body.slice(at..)))
    }

    async fn post(&self, path: &str, message: Vec<u8>) -> Result<Bytes, Fault> {
        let path = format!("/api/v1/nodes/{}/proxy{path}", self.node);
        let request = HttpRequest::builder().method(Method::POST).uri(path).body(Bytes::from(message));
        let request = request.map_err(Fault::internal)?;
        let unavailable = |why: String| Fault::new(Code::Unavailable, format!("node {}: {why}", self.node));
        let response = tokio::time::timeout(PATIENCE, self.client.request(request)).await;
        let response = response.map_err(|_| {
            Fault::new(Code::DeadlineExceeded, format!("node {} has not answered in {PATIENCE:?}", self.node))
        })?;
        Ok(response.map_err(|it| unavailable(it.to_string()))?.into_body())
    }

    /// One call of a driver of somebody else's.
    async fn ask_driver(&self, driver: String, call: Call) -> Result<Reply, Fault> {
        let message = channel::written(&AskedOfDriver { driver, call }, &[])?;
        let body = self.post(channel::DRIVERS_PATH, message).await?;
        channel::read::<Result<Reply, Fault>>(&body)?.0?.checked()
    }

    /// One of the built-in driver. What it makes has the name and the size it was asked for and is on this node, whatever is answered.
    async fn ask_built_in(&self, call: Call) -> Result<Reply, Fault> {
        let (named, bytes) = match &call {
            Call::Create(it) => (it.name.clone(), it.required_bytes),
            Call::CreateSnapshot(it) => (it.name.clone(), 0),
            Call::FindSnapshot { handle, .. } => (handle.clone(), 0),
            _ => (String::new(), 0),
        };
        let not_offered = || Fault::new(Code::Unimplemented, "the built-in driver does not do that");
        let asked = Asked::of(call).ok_or_else(not_offered)?;
        match self.ask(&asked, &[]).await?.0.reply().ok_or_else(unexpected)? {
            Reply::Created(made) if made.handle == named && made.bytes >= bytes && is_fs_type(&made.fs_type) => {
                Ok(Reply::Created(CreatedVolume {
                    handle: named,
                    bytes: made.bytes,
                    fs_type: made.fs_type,
                    topology: vec![local_topology(&self.node)],
                    ..CreatedVolume::default()
                }))
            }
            Reply::Snapshot(Some(it)) if it.handle != named => Err(unexpected()),
            Reply::Created(_) => Err(unexpected()),
            other => Ok(other),
        }
    }
}

/// Of the built-in driver.
fn is_fs_type(name: &str) -> bool {
    matches!(name, "" | "ext4" | "xfs")
}

impl NodeDrivers for RemoteVolumes {
    fn drivers(&self) -> BoxFuture<'_, Vec<NodeDriver>> {
        Box::pin(async {
            let mut guard = self.others.lock().await;
            let (others, are_told) = &mut *guard;
            if *are_told && others.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            // A machine that has just joined has no certificate to serve with yet.
            while !*are_told && let Err(error) = self.ask(&Asked::Capacity, &[]).await {
                tracing::debug!(%error, node = self.node, "a node's driver is not reached yet");
                tokio::time::sleep(UNREACHED_PAUSE).await;
            }
            *are_told = true;
            let mut drivers = others.borrow_and_update().clone();
            drivers.push(node_driver(LOCAL_DRIVER, local_facts(&self.node)));
            drivers
        })
    }

    fn call(&self, driver: String, call: Call) -> BoxFuture<'_, Result<Reply, Fault>> {
        Box::pin(async move {
            match &*driver {
                LOCAL_DRIVER => self.ask_built_in(call).await,
                _ => self.ask_driver(driver, call).await,
            }
        })
    }

    fn expand_on_node(
        &self,
        AttachedVolume { handle, .. }: AttachedVolume,
        bytes: u64,
    ) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            let grown = match self.ask(&Asked::ExpandOnNode { handle, bytes }, &[]).await {
                Ok((Answered::Done, _)) => Ok(()),
                Ok(_) => Err(unexpected()),
                Err(fault) => Err(fault),
            };
            grown.map_err(|it| built_in_ungrown(&it))
        })
    }

    fn built_in(&self) -> BoxFuture<'_, BuiltIn> {
        let driver = LOCAL_DRIVER.to_owned();
        Box::pin(async { BuiltIn { driver, has_class: true, has_snapshots: true } })
    }

    fn class_is_made(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    fn snapshots_are_made(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
