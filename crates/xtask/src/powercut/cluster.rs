//! One machine with a cluster on it, and what must be there after every cut.

use std::{
    fs,
    process::{Child, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    crash::{CONFIG_MAPS, List, NAMESPACE, Truth},
    machine::{Boot, Guest, not_ready, slowness},
    real::{Connection, Target},
    tidy::root,
};

/// Where the API is served in the machine.
pub(super) const PORT: u16 = 6443;
/// What a real machine may take until all Pods are Ready again.
const READY_SECONDS: f64 = 60.0;
/// A registry of the machine's own, for everybody and without encryption: Debian's configuration asks for a password.
const REGISTRY: &str = "printf '%s\n' 'version: 0.1' 'storage: {filesystem: {rootdirectory: /var/lib/docker-registry}}' \
                        'http: {addr: \"127.0.0.1:5000\"}' > /etc/docker/registry/config.yml && \
                        systemctl enable -q docker-registry && systemctl restart docker-registry && sync";
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

pub(super) struct Cluster {
    guest: Guest,
    port: u16,
    kubeconfig: TempDir,
    pub(super) truth: Arc<Mutex<Truth>>,
    pub(super) slowness: f64,
}

impl Cluster {
    /// A machine that is on, and on which Corten has never run.
    pub(super) fn new(mut guest: Guest) -> Result<Self> {
        let port = guest.port(PORT).context("the API's port is forwarded")?;
        guest.boot(&Boot::default())?;
        let slowness = slowness(&guest)?;
        guest.output(REGISTRY)?;
        Ok(Self { guest, port, kubeconfig: tempfile::tempdir()?, truth: Arc::default(), slowness })
    }

    pub(super) fn remove(self) -> Result<()> {
        self.guest.remove()
    }

    pub(super) fn name(&self) -> String {
        self.guest.name()
    }

    /// Runs on its own in the machine, until the plug is pulled.
    pub(super) fn spawn(&self, script: &str) -> Result<Child> {
        let mut command = self.guest.command(&within(script)?);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().context("running ssh")
    }

    pub(super) fn output(&self, script: &str) -> Result<String> {
        self.guest.output(&within(script)?)
    }

    pub(super) fn cut(&mut self) -> Result<()> {
        self.guest.cut()
    }

    /// Switches it on, and returns how long it took until it could be reached.
    pub(super) fn boot(&mut self) -> Result<Duration> {
        let begin = Instant::now();
        self.guest.boot(&Boot::default())?;
        let took = begin.elapsed();
        self.slowness = slowness(&self.guest)?;
        Ok(took)
    }

    /// Is there something that starts the cluster at boot?
    pub(super) fn starts_at_boot(&self) -> bool {
        let units = self.guest.output("systemctl list-unit-files --no-legend --state=enabled 'corten*'");
        units.is_ok_and(|it| !it.is_empty())
    }

    /// The machine's cluster, as it can be reached from here.
    pub(super) async fn connect(&self) -> Result<Connection> {
        let path = self.kubeconfig.path().join("config");
        if !path.exists() {
            let text = self.guest.output("cat /var/lib/corten/admin.kubeconfig")?;
            let server = text.lines().find(|it| it.contains("server:")).context("a kubeconfig names its server")?;
            fs::write(&path, text.replace(server, &format!("    server: https://127.0.0.1:{}", self.port)))?;
        }
        Connection::open(&Target::from_kubeconfig(&path)?).await
    }

    /// What the rounds play on, once for each machine.
    pub(super) async fn furnish(&self, n_images: usize) -> Result<()> {
        self.output("kubectl apply -f e2e/machine/kept.yaml")?;
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
        self.output(&format!("e2e/machine/fill-registry /usr/local/share/corten/images/demo.tar {n_images} && sync"))?;
        Ok(())
    }

    /// Waits until every Pod is Ready and every Deployment has all of its own, for as long as a machine may take.
    pub(super) async fn wait_ready(&self) -> Result<Duration> {
        let begin = Instant::now();
        let booted = self.guest.booted()?;
        let patience = Duration::from_secs_f64(READY_SECONDS * self.slowness);
        loop {
            let waiting = match self.waiting(&booted).await {
                Ok(waiting) if waiting.is_empty() => return Ok(begin.elapsed()),
                Ok(waiting) => waiting.join(", "),
                Err(error) => format!("the API: {error:#}"),
            };
            if begin.elapsed() >= patience {
                bail!("after {:.0} s not Ready: {waiting}", patience.as_secs_f64());
            }
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }

    async fn waiting(&self, booted: &str) -> Result<Vec<String>> {
        let mut connection = self.connect().await?;
        let mut items = async |path: &str| -> Result<Vec<Value>> {
            let list: Value = serde_json::from_slice(&connection.get(path).await?)?;
            Ok(list["items"].as_array().cloned().unwrap_or_default())
        };
        let pods = items("/api/v1/pods").await?;
        let nodes = items("/api/v1/nodes").await?;
        let deployments = items("/apis/apps/v1/deployments").await?;
        let not_ready = pods.iter().chain(&nodes).filter_map(|it| not_ready(it, booted));
        let lacks = |it: &&Value| it["status"]["availableReplicas"] != it["spec"]["replicas"];
        let lacking = deployments.iter().filter(lacks).filter_map(|it| it["metadata"]["name"].as_str());
        let node = nodes.is_empty().then_some("a node");
        Ok(not_ready.chain(lacking).chain(node).map(str::to_owned).collect())
    }

    /// Every answered write is there, and nothing that nobody asked for.
    pub(super) async fn check_writes(&self) -> Result<()> {
        let list: Bytes = self.connect().await?.get(CONFIG_MAPS).await?;
        self.truth.lock().settle(&List::read(&list)?)
    }

    /// What somebody would look at.
    pub(super) fn state(&self) -> String {
        let look = "exec 2>&1; kubectl get nodes,pods -A -o wide --request-timeout 20s; corten why -A; \
                    tail -n 60 /var/lib/corten/log/corten.log; df -h /; journalctl -q -b -p warning --no-pager | tail -n 20";
        let seen = within(look).and_then(|it| self.guest.run(&it));
        seen.map_or_else(|it| format!("{it:#}"), |it| String::from_utf8_lossy(&it.stdout).into_owned())
    }
}

fn within(script: &str) -> Result<String> {
    Ok(format!("cd '{}' && export HOME=/root KUBECONFIG=/var/lib/corten/admin.kubeconfig\n{script}", root()?.display()))
}
