//! Volumes of the built-in driver on machines that have joined: the control plane decides for each of those nodes what its driver is to
//! do, and asks it over the kubelet's API. A node is given no right for it, and what it answers is believed of itself alone.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use corten_client::{BoxFuture, Client};
use corten_kubelet::Secrets;
use corten_provisioner::{AttachedVolume, Created, Failure, Finality, Grown, Published, Request, Snapshotted, Taking};
use corten_runner::{
    BuiltIn, NodeDriver, ProvisionerSettings, Refusal, SharedStorage, SnapshotRefusal, Unchanged, VolumeHands,
};
use corten_volumes::{
    Code, CreateSnapshot, Fault, LOCAL_DRIVER,
    channel::{self, Answered, Asked},
    local_facts, local_topology,
};
use http::{Method, Request as HttpRequest};

use crate::volume_provisioner::{
    built_in_unexpanded, built_in_ungrown, grown, node_driver, refusal, snapshot_refusal, snapshotted, wanted,
};

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
    let begin = |node: &str| {
        let hands = RemoteVolumes::new(clients.nodes.clone(), node);
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
    let following = corten_runner::follow_joined_nodes(clients.provisioner.clone(), LOCAL_DRIVER, begin);
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

/// The built-in driver of one node on another machine.
pub(crate) struct RemoteVolumes {
    client: Client,
    node: String,
    is_told: AtomicBool,
}

pub(crate) fn unexpected() -> Fault {
    Fault::internal("the node answers what it was not asked")
}

impl RemoteVolumes {
    pub(crate) fn new(client: Client, node: &str) -> Self {
        let client = client.with_answers_up_to(channel::MESSAGE_BYTES_MAX);
        Self { client, node: node.to_owned(), is_told: AtomicBool::new(false) }
    }

    /// One question, with bytes of a volume where there are any; and its answer.
    pub(crate) async fn ask(&self, asked: &Asked, data: &[u8]) -> Result<(Answered, Bytes), Fault> {
        let message = channel::written(asked, data)?;
        let path = format!("/api/v1/nodes/{}/proxy{}", self.node, channel::PATH);
        let request = HttpRequest::builder().method(Method::POST).uri(path).body(Bytes::from(message));
        let request = request.map_err(Fault::internal)?;
        let unavailable = |why: String| Fault::new(Code::Unavailable, format!("node {}: {why}", self.node));
        let response = tokio::time::timeout(PATIENCE, self.client.request(request)).await;
        let response = response.map_err(|_| {
            Fault::new(Code::DeadlineExceeded, format!("node {} has not answered in {PATIENCE:?}", self.node))
        })?;
        let body = response.map_err(|it| unavailable(it.to_string()))?.into_body();
        let (answered, data) = channel::read::<Result<Answered, Fault>>(&body)?;
        let at = body.len() - data.len();
        Ok((answered?, body.slice(at..)))
    }

    async fn done(&self, asked: Asked) -> Result<(), Fault> {
        match self.ask(&asked, &[]).await?.0 {
            Answered::Done => Ok(()),
            _ => Err(unexpected()),
        }
    }

    async fn make(&self, request: Request) -> Result<Created, Fault> {
        let name = request.name.clone();
        let asked = Asked::Create(wanted(request, BTreeMap::new()));
        match self.ask(&asked, &[]).await?.0 {
            // The volume has the name it was asked for and is on this node, whatever is answered.
            Answered::Created(made) if made.handle == name => Ok(Created {
                handle: made.handle,
                bytes: made.bytes,
                context: BTreeMap::new(),
                topology: vec![local_topology(&self.node)],
                fs_type: made.fs_type,
                refused: None,
            }),
            _ => Err(unexpected()),
        }
    }

    async fn snapshot(&self, asked: Asked, handle: &str) -> Result<Option<Snapshotted>, Fault> {
        match self.ask(&asked, &[]).await?.0 {
            Answered::Snapshot(found) if found.as_ref().is_none_or(|it| it.handle == handle) => {
                Ok(found.map(snapshotted))
            }
            _ => Err(unexpected()),
        }
    }
}

fn not_offered<T: Send + 'static>() -> Result<T, Refusal> {
    Err(refusal(Fault::new(Code::Unimplemented, "the built-in driver does not do that")))
}

impl VolumeHands for RemoteVolumes {
    fn drivers(&self) -> BoxFuture<'_, Vec<NodeDriver>> {
        Box::pin(async {
            if self.is_told.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            // A machine that has just joined has no certificate to serve with yet.
            while let Err(error) = self.ask(&Asked::Capacity, &[]).await {
                tracing::debug!(%error, node = self.node, "a node's driver is not reached yet");
                tokio::time::sleep(UNREACHED_PAUSE).await;
            }
            self.is_told.store(true, Ordering::Relaxed);
            vec![node_driver(LOCAL_DRIVER, local_facts(&self.node))]
        })
    }

    fn create(&self, request: Request, _: Secrets) -> BoxFuture<'_, Result<Created, Refusal>> {
        Box::pin(async move { self.make(request).await.map_err(refusal) })
    }

    fn delete(&self, _: String, handle: String, _: Secrets) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { self.done(Asked::Delete { handle }).await.map_err(refusal) })
    }

    fn expand(
        &self,
        _: String,
        AttachedVolume { handle, .. }: AttachedVolume,
        bytes: u64,
        _: Secrets,
    ) -> BoxFuture<'_, Result<Grown, Refusal>> {
        Box::pin(async move {
            match self.ask(&Asked::Expand { handle, bytes }, &[]).await.map_err(built_in_unexpanded)?.0 {
                Answered::Expanded(it) => Ok(grown(it)),
                _ => Err(refusal(unexpected())),
            }
        })
    }

    fn attach(
        &self,
        _: String,
        _: AttachedVolume,
        _: String,
        _: Secrets,
    ) -> BoxFuture<'_, Result<BTreeMap<String, String>, Refusal>> {
        Box::pin(async { not_offered() })
    }

    fn detach(&self, _: String, _: String, _: String, _: Secrets) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async { not_offered() })
    }

    fn expand_on_node(
        &self,
        AttachedVolume { handle, .. }: AttachedVolume,
        bytes: u64,
    ) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            let grown = self.done(Asked::ExpandOnNode { handle, bytes }).await;
            grown.map_err(|it| built_in_ungrown(&it))
        })
    }

    fn create_snapshot(&self, taking: Taking, _: Secrets) -> BoxFuture<'_, Result<Snapshotted, SnapshotRefusal>> {
        Box::pin(async move {
            let Taking { name, volume: source, parameters, .. } = taking;
            let handle = name.clone();
            let asked = CreateSnapshot { name, source, parameters, secrets: BTreeMap::new() };
            let taken = self.snapshot(Asked::CreateSnapshot(asked), &handle).await;
            taken.and_then(|it| it.ok_or_else(unexpected)).map_err(|it| snapshot_refusal(&it))
        })
    }

    fn delete_snapshot(&self, _: String, handle: String, _: Secrets) -> BoxFuture<'_, Result<(), Refusal>> {
        Box::pin(async move { self.done(Asked::DeleteSnapshot { handle }).await.map_err(refusal) })
    }

    fn find_snapshot(
        &self,
        _: String,
        handle: String,
        _: Secrets,
    ) -> BoxFuture<'_, Result<Option<Snapshotted>, Refusal>> {
        Box::pin(async move {
            self.snapshot(Asked::FindSnapshot { handle: handle.clone() }, &handle).await.map_err(refusal)
        })
    }

    fn conditions(
        &self,
        _: String,
        _: BTreeSet<String>,
    ) -> BoxFuture<'_, Result<BTreeMap<String, Option<String>>, Refusal>> {
        Box::pin(async { not_offered() })
    }

    fn modify(&self, _: String, _: String, _: BTreeMap<String, String>) -> BoxFuture<'_, Result<(), Unchanged>> {
        let message = "the built-in driver does not change volumes".to_owned();
        Box::pin(async { Err(Unchanged { message, finality: Finality::Infeasible }) })
    }

    fn capacity(&self, _: Published) -> BoxFuture<'_, Option<(u64, Option<u64>)>> {
        Box::pin(async {
            let told = self.ask(&Asked::Capacity, &[]).await;
            let told = told.inspect_err(|error| tracing::debug!(%error, node = self.node, "no capacity is told"));
            match told.ok()?.0 {
                Answered::Capacity(it) => it.map(|it| (it.available_bytes, it.maximum_bytes)),
                _ => None,
            }
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
