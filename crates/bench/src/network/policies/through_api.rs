//! The same behind a server: from before the API is written to until the kernel has it. The loop is the node's own, and asks the server
//! as it does on a machine that has joined; its sandboxes are names, since nothing is sent.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use corten_client::{BoxFuture, Client, https::HttpsTransport, kubeconfig::Kubeconfig};
use corten_machine::Layout;
use corten_meta::Time;
use corten_netpolicy::{PodMatch, PodSandbox, rules::Change};
use corten_network::PolicyRules;
use corten_runner::{JournalBook, NetworkPolicySettings, PolicyHands, TableHands, run_network_policy};
use corten_testbed::{Connection, ControlPlane, Data, Launcher, expect, text_field};
use hyper::{Method, StatusCode};
use serde_json::Value;
use tokio::{
    sync::{mpsc::UnboundedSender, oneshot},
    task::JoinSet,
};

use super::{super::namespace::Namespace, Row, Scale, Took, objects, row};

const CONNECTIONS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(60);
const RETRY: Duration = Duration::from_millis(20);
/// Who has said nothing for so long says nothing.
const SILENCE: Duration = Duration::from_millis(500);

pub(super) fn measure(program: &Path, scale: Scale, rows: &mut Vec<Row>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    rows.extend(runtime.block_on(all(program, scale))?);
    Ok(())
}

async fn all(program: &Path, scale: Scale) -> Result<Vec<Row>> {
    let Scale { policies, pods, changes, .. } = scale;
    let data = Data::new()?;
    let (server, _) = Launcher::new(program.to_owned())?.start(&data).await?;
    let plugged = fill(&server, policies, pods).await.context("filling the cluster")?;
    let mut table = KernelTable::start(&data.path().join("data/admin.kubeconfig"), plugged)?;
    table.next(PATIENCE).context("nothing came to the kernel at first")?;
    let mut writer = Writer { connection: server.connect().await?, table };

    // On other nodes: what comes and goes on this one has a sandbox, which is told of otherwise.
    let elsewhere: Vec<usize> = (pods..).filter(|it| !objects::is_here(*it)).take(changes).collect();
    let times = [
        ("a Pod has its address", writer.addresses(&elsewhere).await?),
        ("a Pod has other labels", writer.labels((0..changes).map(|it| it * 37 % pods)).await?),
        ("a policy says something else", writer.policies((0..changes).map(|it| it * 7 % policies)).await?),
        ("a Pod goes", writer.ends(&elsewhere).await?),
    ];
    server.stop()?;
    let of = format!("{policies} policies, {pods} Pods, from the API on");
    let rows = times.map(|(what, times)| {
        ensure!(!times.is_empty(), "{what}: the kernel was told of none");
        Ok(row(&format!("{of}: {what}, until the kernel has it"), "answered", &times))
    });
    rows.into_iter().collect()
}

/// Changes one thing after the other, each once the kernel has the one before.
struct Writer {
    connection: Connection,
    table: KernelTable,
}

impl Writer {
    async fn addresses(&mut self, pods: &[usize]) -> Result<Vec<Took>> {
        let mut times = Vec::new();
        for &n in pods {
            let body = objects::pod(n, n);
            let created = create(&mut self.connection, &pods_of(n), &body).await?;
            let (path, object) = (format!("{}/status", pod_path(n)), with_status(&created, &body)?);
            times.extend(self.table.changed(put(&mut self.connection, &path, &object)).await?);
        }
        Ok(times)
    }

    async fn labels(&mut self, pods: impl Iterator<Item = usize>) -> Result<Vec<Took>> {
        let mut times = Vec::new();
        for (it, n) in pods.enumerate() {
            let mut object: Value = serde_json::from_slice(&self.connection.get(&pod_path(n)).await?)?;
            object["metadata"]["labels"] =
                objects::pod(n, n + objects::NAMESPACES + it + 1)["metadata"]["labels"].take();
            times.extend(self.table.changed(put(&mut self.connection, &pod_path(n), &object)).await?);
        }
        Ok(times)
    }

    async fn policies(&mut self, policies: impl Iterator<Item = usize>) -> Result<Vec<Took>> {
        let mut times = Vec::new();
        for (it, n) in policies.enumerate() {
            let path = format!("{}/{}", policies_of(n), objects::policy_name(n));
            let mut object: Value = serde_json::from_slice(&self.connection.get(&path).await?)?;
            object["spec"] = objects::policy(n, it + 3)["spec"].take();
            times.extend(self.table.changed(put(&mut self.connection, &path, &object)).await?);
        }
        Ok(times)
    }

    async fn ends(&mut self, pods: &[usize]) -> Result<Vec<Took>> {
        let mut times = Vec::new();
        for &n in pods {
            let path = format!("{}?gracePeriodSeconds=0", pod_path(n));
            times.extend(self.table.changed(ask(&mut self.connection, Method::DELETE, &path, Bytes::new())).await?);
        }
        Ok(times)
    }
}

fn pods_of(n: usize) -> String {
    format!("/api/v1/namespaces/{}/pods", objects::namespace_name(n))
}

fn pod_path(n: usize) -> String {
    format!("{}/{}", pods_of(n), objects::pod_name(n))
}

fn policies_of(n: usize) -> String {
    format!("/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies", objects::namespace_name(n))
}

/// All but what changes later; answers the sandboxes of this node.
async fn fill(server: &ControlPlane, policies: usize, pods: usize) -> Result<Vec<PodSandbox>> {
    let mut connection = server.connect().await?;
    for n in 0..objects::NODES {
        let node = serde_json::json!({"kind": "Node", "apiVersion": "v1", "metadata": {"name": format!("n{n}")}});
        create(&mut connection, "/api/v1/nodes", &node).await?;
    }
    for n in 0..objects::NAMESPACES {
        create(&mut connection, "/api/v1/namespaces", &objects::namespace(n)).await?;
    }
    let mut loops = JoinSet::new();
    for first in 0..CONNECTIONS {
        let mut connection = server.connect().await?;
        loops.spawn(async move {
            let mut plugged = Vec::new();
            for n in (first..policies).step_by(CONNECTIONS) {
                create(&mut connection, &policies_of(n), &objects::policy(n, n)).await?;
            }
            for n in (first..pods).step_by(CONNECTIONS) {
                let body = objects::pod(n, n);
                let created = create(&mut connection, &pods_of(n), &body).await?;
                if objects::is_here(n) {
                    plugged.push(objects::plugged(n, text_field(&created, "uid")?));
                }
                put(&mut connection, &format!("{}/status", pod_path(n)), &with_status(&created, &body)?).await?;
            }
            anyhow::Ok(plugged)
        });
    }
    let mut all = Vec::new();
    while let Some(plugged) = loops.join_next().await {
        all.extend(plugged??);
    }
    Ok(all)
}

/// In a namespace that is new nobody may run yet, for a moment.
async fn create(connection: &mut Connection, path: &str, object: &Value) -> Result<Bytes> {
    let mut object = object.clone();
    // The server names it.
    object["metadata"].as_object_mut().context("an object has metadata")?.remove("uid");
    let end = Instant::now() + PATIENCE;
    loop {
        match connection.send(Method::POST, path, object.to_string().into()).await? {
            (StatusCode::FORBIDDEN, _) if Instant::now() < end => tokio::time::sleep(RETRY).await,
            (status, body) => {
                expect(status, StatusCode::CREATED, path, &body)?;
                return Ok(body);
            }
        }
    }
}

fn with_status(created: &[u8], body: &Value) -> Result<Value> {
    let mut object: Value = serde_json::from_slice(created)?;
    object["status"] = body["status"].clone();
    Ok(object)
}

async fn put(connection: &mut Connection, path: &str, object: &Value) -> Result<()> {
    ask(connection, Method::PUT, path, object.to_string().into()).await
}

async fn ask(connection: &mut Connection, method: Method, path: &str, body: Bytes) -> Result<()> {
    let (status, answer) = connection.send(method, path, body).await?;
    expect(status, StatusCode::OK, path, &answer)
}

/// A transaction that the kernel has taken.
struct Taken {
    at: Instant,
    n_changes: usize,
}

/// The loop, and the kernel's table, in threads of their own.
struct KernelTable {
    taken: mpsc::Receiver<Taken>,
    _stop: oneshot::Sender<()>,
}

impl KernelTable {
    fn start(kubeconfig: &Path, plugged: Vec<PodSandbox>) -> Result<Self> {
        let (told, taken) = mpsc::channel();
        let (stop, stopped) = oneshot::channel::<()>();
        let target = Kubeconfig::load(kubeconfig)?.target(None)?;
        let hands = Hands { kernel: kernel()?, plugged, told };
        thread::Builder::new().name("policies".into()).spawn(move || {
            let ran = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(anyhow::Error::from);
            let ran = ran.and_then(|it| {
                it.block_on(async {
                    let settings = NetworkPolicySettings {
                        node_name: objects::HERE.into(),
                        pod_match: PodMatch::Bridge,
                        client: Client::new(Arc::new(HttpsTransport::new(&target)?)),
                        hands: Arc::new(hands),
                        clock: Arc::new(now),
                        journal: Arc::new(JournalBook::default()),
                    };
                    run_network_policy(settings, async { drop(stopped.await) }).await;
                    anyhow::Ok(())
                })
            });
            if let Err(error) = ran {
                eprintln!("the loop of policies ended: {error:#}");
            }
        })?;
        Ok(Self { taken, _stop: stop })
    }

    /// The next transaction, if one comes.
    fn next(&mut self, patience: Duration) -> Option<Taken> {
        self.taken.recv_timeout(patience).ok()
    }

    /// From before the request until the kernel has what follows from it. Nothing does where no policy of this node names the Pod.
    async fn changed(&mut self, request: impl Future<Output = Result<()>>) -> Result<Option<Took>> {
        if self.taken.try_iter().count() > 0 {
            bail!("the kernel was told something that nobody has changed");
        }
        let begun = Instant::now();
        request.await?;
        let before = begun.elapsed();
        Ok(self.next(SILENCE).map(|it| Took { whole: it.at - begun, before, n_changes: it.n_changes }))
    }
}

fn now() -> Time {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    Time::from_unix_seconds(0).after(since)
}

type Order = (Vec<Change>, oneshot::Sender<Result<(), String>>);

/// A thread in a network of its own, which says to the kernel what it is told, as long as somebody may tell it.
fn kernel() -> Result<UnboundedSender<Order>> {
    let (orders, mut ordered) = tokio::sync::mpsc::unbounded_channel::<Order>();
    let namespace = Namespace::new("behind-api")?;
    let folder = tempfile::tempdir()?;
    let rules = PolicyRules::new(&Layout::new(folder.path().join("data"), folder.path().join("run")));
    thread::Builder::new().name("kernel".into()).spawn(move || {
        let done = namespace.run_async(async || {
            while let Some((changes, answer)) = ordered.recv().await {
                // Who has asked may be gone.
                let _ = answer.send(rules.apply(changes).await.map_err(|it| it.to_string()));
            }
            Ok(())
        });
        if let Err(error) = done {
            eprintln!("the kernel's thread ended: {error:#}");
        }
    })?;
    Ok(orders)
}

struct Hands {
    kernel: UnboundedSender<Order>,
    plugged: Vec<PodSandbox>,
    told: mpsc::Sender<Taken>,
}

impl TableHands for Hands {
    fn is_there(&self) -> BoxFuture<'_, Result<bool, String>> {
        Box::pin(async { Ok(true) })
    }
}

impl PolicyHands for Hands {
    fn apply(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(async move {
            let n_changes = changes.len();
            if n_changes == 0 {
                return Ok(());
            }
            let (answer, answered) = oneshot::channel();
            self.kernel.send((changes, answer)).map_err(|it| it.to_string())?;
            answered.await.map_err(|it| it.to_string())??;
            // Nobody listens when all is measured.
            let _ = self.told.send(Taken { at: Instant::now(), n_changes });
            Ok(())
        })
    }

    fn plugged(&self) -> BoxFuture<'_, Result<Vec<PodSandbox>, String>> {
        Box::pin(async { Ok(self.plugged.clone()) })
    }

    fn sandboxes(&self) -> BoxFuture<'_, Result<BTreeSet<String>, String>> {
        Box::pin(async { Ok(self.plugged.iter().map(|it| it.sandbox.clone()).collect()) })
    }

    fn next_plugs(&self) -> BoxFuture<'_, Vec<Result<PodSandbox, String>>> {
        Box::pin(std::future::pending())
    }

    fn laid(&self, _: &BTreeSet<String>) {}

    fn refused(&self, why: Option<String>) {
        if let Some(why) = why {
            eprintln!("the kernel refuses rules of policies: {why}");
        }
    }

    fn gap(&self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async { None })
    }
}
