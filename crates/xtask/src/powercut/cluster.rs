//! One machine with a cluster on it, and what must be there after every cut.

use std::{
    fs,
    process::{Child, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use corten_testbed::{Connection, ServerAddress, root};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    claims::Claim,
    plug::Machine,
    pods::{Restarts, complaints, is_rolled_out, restarts, waits_for, wrong},
};
use crate::{
    crash::{CONFIG_MAPS, List, NAMESPACE, Oracle},
    machine::not_ready,
};

/// What a real machine may take until all Pods are Ready again.
const READY_SECONDS: f64 = 60.0;
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
/// For one that does not answer at all.
const ANSWER_DEADLINE: Duration = Duration::from_secs(10);

pub(super) struct Cluster {
    pub(super) machine: Box<dyn Machine>,
    kubeconfig: TempDir,
    pub(super) truth: Arc<Mutex<Oracle>>,
    pub(super) claim: Claim,
    pub(super) slowness: f64,
    pub(super) patience: f64,
}

impl Cluster {
    /// Of a machine that is on.
    pub(super) fn new(machine: Box<dyn Machine>) -> Result<Self> {
        let (slowness, patience) = (machine.slowness()?, machine.patience()?);
        Ok(Self {
            machine,
            kubeconfig: tempfile::tempdir()?,
            truth: Arc::default(),
            claim: Claim::default(),
            slowness,
            patience,
        })
    }

    pub(super) fn remove(self) -> Result<()> {
        self.machine.remove()
    }

    /// Runs on its own in the machine, until the plug is pulled.
    pub(super) fn spawn(&self, script: &str) -> Result<Child> {
        let mut command = self.machine.command(&within(script)?);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().context("running a command in the machine")
    }

    pub(super) fn output(&self, script: &str) -> Result<String> {
        self.machine.output(&within(script)?)
    }

    /// Switches it on, and returns how long it took until it could be reached.
    pub(super) fn boot(&mut self) -> Result<Duration> {
        let begin = Instant::now();
        self.machine.boot(true)?;
        let took = begin.elapsed();
        self.slowness = self.machine.slowness()?;
        self.patience = self.machine.patience()?;
        Ok(took)
    }

    /// The machine's cluster, as it can be reached from here.
    pub(super) async fn connect(&self) -> Result<Connection> {
        let path = self.kubeconfig.path().join("config");
        if !path.exists() {
            let text = self.machine.output("cat /var/lib/corten/admin.kubeconfig")?;
            let server = text.lines().find(|it| it.contains("server:")).context("a kubeconfig names its server")?;
            fs::write(&path, text.replace(server, &format!("    server: {}", self.machine.server())))?;
        }
        let target = ServerAddress::from_kubeconfig(&path)?;
        let opening = Connection::open(&target);
        tokio::time::timeout(ANSWER_DEADLINE, opening).await.context("no answer")?
    }

    /// What the rounds play on, once for each machine. Once it is there it lies safely on the disk: what is lost was lost by
    /// what a round did.
    pub(super) async fn furnish(&self, n_images: usize) -> Result<()> {
        self.output("kubectl apply -f e2e/machine/kept.yaml -f e2e/machine/ended.yaml -f e2e/machine/claims.yaml")?;
        let grow = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "grow"},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [{
                "name": "main", "image": "busybox:1.35", "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.5; done"],
                "resources": {"requests": {"memory": "16Mi"}, "limits": {"memory": "32Mi"}},
            }]},
        });
        let mut connection = self.connect().await?;
        connection.create("/api/v1/namespaces/default/pods", grow.to_string().into()).await?;
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
        connection.create("/api/v1/namespaces", namespace.to_string().into()).await?;
        self.machine.fill_registry(n_images)?;
        self.wait_ready().await.context("the first Pods")?;
        self.output("sync")?;
        Ok(())
    }

    /// What the last cut has ended is made again.
    pub(super) async fn refresh(&self) -> Result<Restarts> {
        self.output("kubectl delete pod once --now --ignore-not-found && kubectl apply -f e2e/machine/ended.yaml")?;
        self.wait_ready().await?;
        Ok(restarts(&self.items("/api/v1/pods").await?))
    }

    /// Waits until every Pod is Ready and every Deployment has all of its own, for as long as a machine may take.
    pub(super) async fn wait_ready(&self) -> Result<Duration> {
        let begin = Instant::now();
        let booted = self.machine.booted()?;
        let patience = Duration::from_secs_f64(READY_SECONDS * self.patience);
        loop {
            let waiting = match tokio::time::timeout(ANSWER_DEADLINE, self.waiting(&booted)).await {
                Ok(Ok(waiting)) if waiting.is_empty() => return Ok(begin.elapsed()),
                Ok(Ok(waiting)) => waiting.join(", "),
                Ok(Err(error)) => format!("the API: {error:#}"),
                Err(_) => "the API: no answer".to_owned(),
            };
            if begin.elapsed() >= patience {
                bail!("after {:.0} s not Ready: {waiting}", patience.as_secs_f64());
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }

    async fn items(&self, path: &str) -> Result<Vec<Value>> {
        let list: Value = serde_json::from_slice(&self.connect().await?.get(path).await?)?;
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    async fn waiting(&self, booted: &str) -> Result<Vec<String>> {
        let pods = self.items("/api/v1/pods").await?;
        let nodes = self.items("/api/v1/nodes").await?;
        let deployments = self.items("/apis/apps/v1/deployments").await?;
        let lacking =
            deployments.iter().filter(|it| !is_rolled_out(it)).filter_map(|it| it["metadata"]["name"].as_str());
        let nodes_not_ready = nodes.iter().filter_map(|it| not_ready(it, booted));
        let node = nodes.is_empty().then_some("a node");
        let others = nodes_not_ready.chain(lacking).chain(node).map(str::to_owned);
        Ok(pods.iter().filter_map(|it| waits_for(it, booted)).chain(others).collect())
    }

    /// Every answered write is there, and nothing that nobody asked for.
    pub(super) async fn check_writes(&self) -> Result<()> {
        let list: Bytes = self.connect().await?.get(CONFIG_MAPS).await?;
        self.truth.lock().settle(&List::read(&list)?)
    }

    /// Every record that was written to a claim is there, and the claim is as large as it was.
    pub(super) fn check_claim(&mut self) -> Result<()> {
        let mut claim = std::mem::take(&mut self.claim);
        let checked = claim.check(self);
        self.claim = claim;
        checked
    }

    /// Counts and ends are those of so many cuts.
    pub(super) async fn check_pods(&self, before: &Restarts, n_cuts: u64) -> Result<()> {
        let now = self.machine.output("date -u +%Y-%m-%dT%H:%M:%SZ")?;
        let wrong = wrong(&self.items("/api/v1/pods").await?, before, n_cuts, &now);
        if !wrong.is_empty() {
            bail!("{}", wrong.join("; "));
        }
        Ok(())
    }

    /// It complains of nothing but what has ended and shall stay so, and claims whose Pods were not made before the cut.
    pub(super) fn check_why(&self) -> Result<()> {
        let said = self.machine.run(&within("corten why -A 2>&1")?)?;
        let text = String::from_utf8_lossy(&said.stdout);
        let complaints = complaints(&text);
        let waits_for_its_pod = |it: &str| text.contains(&format!("WaitForFirstConsumer: {it} "));
        let shall_be = |it: &str| matches!(it, "pod/failed" | "pod/once") || waits_for_its_pod(it);
        if complaints.is_some_and(|it| it.into_iter().all(shall_be)) {
            return Ok(());
        }
        bail!("all is Ready, and corten why says: {}", text.trim());
    }

    /// What somebody would look at.
    pub(super) fn state(&self) -> String {
        let look = format!(
            "exec 2>&1; kubectl get nodes,pods -A -o wide --request-timeout 20s; timeout 60 corten why -A; \
             tail -n 60 /var/lib/corten/log/corten.log; cat /proc/loadavg; {}",
            self.machine.look()
        );
        let seen = within(&look).and_then(|it| self.machine.run(&it));
        seen.map_or_else(|it| format!("{it:#}"), |it| String::from_utf8_lossy(&it.stdout).into_owned())
    }
}

pub(super) fn within(script: &str) -> Result<String> {
    Ok(format!("cd '{}' && export KUBECONFIG=/var/lib/corten/admin.kubeconfig\n{script}", root()?.display()))
}
